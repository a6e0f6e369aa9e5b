package translate

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Python operations of the graph (optimize's python_ops) are calls that cannot be captured, and all operations on the
// results of such calls. Their targets are functions of godynamo._backends.python_ops. They stay in program order and
// are never removed or moved (Node.Inplace). A backend that takes whole graphs gets them as call_function nodes.
//
//	%py_constant = call_function[target=prim::PyConstant](args = (<python object>,), kwargs = {})
//	%py_object_call = call_function[target=^<PyObjectCall>()](args = (%py_constant, %x), kwargs = {})
//	%getattr_1 = call_function[target=^getattr()](args = (%py_object_call, 'read'), kwargs = {})
//
// A Python operation may raise after it had an effect, so it cannot run twice. If a handler in the frame would catch
// its exception, the graph breaks at the operation instead.

// pythonNodes is an OutputGraph's state for Python operations.
type pythonNodes struct {
	module  py.Object
	objects map[*fxgraph.Node]variables.VariableTracker // placeholders of real objects
	known   map[variables.VariableTracker]*variables.OpaqueVariable
	example map[*fxgraph.Node]py.Object
	counts  []PythonOp
	types   map[py.Object]py.Object // code object → its annotations, see graph_python_types.go
}

// PythonOp counts the Python operations that call one callee.
type PythonOp struct {
	Callee string
	Count  int
}

func (p *pythonNodes) used() bool { return len(p.counts) > 0 }

func (p *pythonNodes) count(callee string) {
	for i := range p.counts {
		if p.counts[i].Callee == callee {
			p.counts[i].Count++
			return
		}
	}
	p.counts = append(p.counts, PythonOp{callee, 1})
}

// idle reports whether the frame has no tensor and no torch operation, so that there is nothing to capture. Python
// operations alone are worth a graph only in a function that the user has optimized, not in a function that it calls.
// Seeds are worth none: a program that is served from outside begins with one and then builds its model.
func (o *OutputGraph) idle() bool {
	return !o.sawTensor && (o.frame.Inner || !slices.ContainsFunc(o.events, func(e *event) bool {
		return e.node != nil && !e.node.State && !seeds(e.node)
	}))
}

// seeds reports whether a node only makes or seeds a generator.
func seeds(n *fxgraph.Node) bool {
	switch n.Target.Text {
	case "torch.manual_seed", "torch.manual_seed_all", "torch.set_rng_state", "torch.Generator", "manual_seed":
		return true
	}
	return false
}

// isPythonNode reports whether a node is a Python operation.
func isPythonNode(n *fxgraph.Node) bool {
	return strings.HasPrefix(n.Target.Text, "^") || strings.HasPrefix(n.Target.Text, "prim::")
}

// pythonTarget returns the target of a Python operation's node. The target has the function of
// godynamo._backends.python_ops that the node calls, and the text under which the graph prints it.
func (o *OutputGraph) pythonTarget(op string) (fxgraph.Target, error) {
	if o.python.module.IsNull() {
		m, err := o.scope.Import("godynamo._backends.python_ops")
		if err != nil {
			return fxgraph.Target{}, err
		}
		o.python.module = m
	}
	fn, err := o.scope.GetAttr(o.python.module, op)
	if err != nil {
		return fxgraph.Target{}, err
	}
	text := "^" + op + "()"
	switch op {
	case variables.PythonCallOp:
		text = "^<PyObjectCall>()"
	case "PyConstant", "CastFromPython":
		text = "prim::" + op
	}
	return fxgraph.Target{Pool: o.Const(fn).Index, Text: text}, nil
}

// PythonOp implements variables.Output.
func (o *OutputGraph) PythonOp(tx variables.Translator, op string, args []variables.VariableTracker,
	kwargs []variables.Kw) (*variables.OpaqueVariable, error) {
	callee := o.callee(op, args)
	if alone, asks := asksFrame[callee[strings.LastIndexByte(callee, '.')+1:]]; asks &&
		(!alone || len(args)+len(kwargs) == 1) {
		return nil, &exc.Unsupported{Code: exc.CallUnsupported, Context: callee, Frame: true}
	}
	v, err := o.pythonNode(tx, op, args, kwargs)
	if err != nil {
		return nil, err
	}
	v.Node.Inplace = true
	o.world.Calls++
	o.python.count(callee)
	o.account.pythonCalls(o.current, callee)
	return variables.NewOpaque(v.Node, callee+"()"), nil
}

// asksFrame lists callables that inspect their caller's frame. If a graph called them, that frame would not be the
// user's. The value is true if a callable inspects the frame only when it is called without arguments.
var asksFrame = map[string]bool{"locals": false, "globals": false, "vars": true, "dir": true, "eval": false,
	"exec": false, "super": true,
	"breakpoint": false, "_getframe": false, "_getframemodulename": false, "currentframe": false}

// callee returns the name under which reports show the callable of an operation.
func (o *OutputGraph) callee(op string, args []variables.VariableTracker) string {
	if op != variables.PythonCallOp {
		return op
	}
	fn := args[0]
	if l, ok := fn.(*variables.LazyVariable); ok {
		if !l.Realized() {
			return o.world.CallableName(o.scope, l.Peek())
		}
		fn = l.Real()
	}
	switch x := fn.(type) {
	case *variables.OpaqueVariable:
		if object := o.python.example[x.Node]; !object.IsNull() {
			return o.world.CallableName(o.scope, object)
		}
		return x.Callee()
	case *variables.BuiltinVariable:
		return o.world.CallableName(o.scope, x.Fn)
	case *variables.BoundBuiltin:
		return "." + x.Name()
	case *variables.FunctionVariable:
		if !x.Fn.IsNull() {
			return o.world.CallableName(o.scope, x.Fn)
		}
		return x.QualName
	}
	if c, ok := variables.AsConstant(o.current, fn); ok {
		return o.world.CallableName(o.scope, c)
	}
	return fn.Kind()
}

// pythonNode adds a node without counting it as a Python operation. It is for operations that do not call the user's
// code and whose execution cannot be observed.
func (o *OutputGraph) pythonNode(tx variables.Translator, op string, args []variables.VariableTracker,
	kwargs []variables.Kw) (*variables.OpaqueVariable, error) {
	if !o.opts.PythonOps {
		return nil, exc.Break(exc.CallUnsupported, "%s", op)
	}
	if tx.InsideTry() {
		return nil, exc.Break(exc.InsideBlock, "a Python operation (%s) whose exception has a handler", op)
	}
	if !o.state.entry.IsNull() {
		return nil, exc.Break(exc.CallUnsupported, "a Python operation (%s) where the function switches torch's modes",
			op)
	}
	target, err := o.pythonTarget(op)
	if err != nil {
		return nil, err
	}
	a, err := o.pythonOperands(tx, args)
	if err != nil {
		return nil, err
	}
	var k []fxgraph.Kwarg
	for _, kw := range kwargs {
		v, err := o.pythonOperand(tx, kw.Value)
		if err != nil {
			return nil, err
		}
		k = append(k, fxgraph.Kwarg{Name: kw.Name, Value: v})
	}
	return variables.NewOpaque(o.added(o.graph.CallFunction(target, a, k)), ""), nil
}

func (o *OutputGraph) pythonOperands(tx variables.Translator, vs []variables.VariableTracker) ([]fxgraph.Arg, error) {
	out := make([]fxgraph.Arg, len(vs))
	for i, v := range vs {
		a, err := o.pythonOperand(tx, v)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

// pythonOperand returns a value as an operand of a Python operation. If its real object exists, the operand is that
// object.
func (o *OutputGraph) pythonOperand(tx variables.Translator, v variables.VariableTracker) (fxgraph.Arg, error) {
	if l, ok := v.(*variables.LazyVariable); ok && !l.Realized() && !o.world.IsTensor(l.Peek()) {
		return o.objectArg(tx, l)
	}
	v, err := variables.Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if out := variables.Outside(v); out != nil {
		return out.Node, nil
	}
	switch x := v.(type) {
	case *variables.OpaqueVariable:
		return x.Node, nil
	case *variables.TensorVariable, *variables.TensorSequence:
		return variables.AsProxy(tx, v)
	case *variables.ConstantVariable:
		if x.Src == nil {
			return x.AsProxy(tx)
		}
	case *variables.TupleVariable:
		if t, err := x.PythonType(tx); err == nil && t == o.world.TupleType && !variables.Materialized(v) {
			items, err := x.Items(tx)
			if err != nil {
				return nil, err
			}
			a, err := o.pythonOperands(tx, items)
			return fxgraph.Tuple{Items: a}, err
		}
	case *variables.SliceVariable:
		if !variables.Materialized(v) {
			a, err := o.pythonOperands(tx, x.Parts())
			if err != nil {
				return nil, err
			}
			return fxgraph.Slice{Start: a[0], Stop: a[1], Step: a[2]}, nil
		}
	case *variables.BoundBuiltin:
		r, err := variables.PythonAttr(tx, x.Object(), x.Name())
		if err != nil {
			return nil, err
		}
		return r.(*variables.OpaqueVariable).Node, nil
	case *variables.MethodVariable:
		if x.Src == nil {
			bind := variables.NewConstant(o.world.MethodType, nil)
			r, err := o.pythonNode(tx, variables.PythonCallOp, []variables.VariableTracker{bind, x.Fn, x.Self}, nil)
			if err != nil {
				return nil, err
			}
			return r.Node, nil
		}
	}
	return o.objectArg(tx, v)
}

func (o *OutputGraph) objectArg(tx variables.Translator, v variables.VariableTracker) (fxgraph.Arg, error) {
	n, err := o.ObjectNode(tx, v)
	if err != nil {
		return nil, err
	}
	return n.Node, nil
}

// ObjectNode implements variables.Output. An object given to the frame becomes an input of the graph, without a guard.
// The value of a global name becomes a constant (PyConstant), and a guard checks its identity. An object that the
// user's code made is built by an operation of the graph or, with an inline backend, by the transformed function
// between the operations.
func (o *OutputGraph) ObjectNode(tx variables.Translator,
	v variables.VariableTracker) (*variables.OpaqueVariable, error) {
	if n, ok := o.python.known[v]; ok {
		return n, nil
	}
	n, err := o.objectNode(tx, v)
	if err != nil {
		return nil, err
	}
	if o.python.known == nil {
		o.python.known = map[variables.VariableTracker]*variables.OpaqueVariable{}
	}
	o.python.known[v] = n
	return n, nil
}

// ObjectInput implements variables.Output.
func (o *OutputGraph) ObjectInput(v variables.VariableTracker) (*fxgraph.Node, error) {
	if o.bodies > 0 {
		return nil, exc.Break(exc.CallUnsupported, "%s in a function given to an operation", v.Kind())
	}
	n, ok := o.python.known[v]
	if !ok {
		n = o.placeholder(v, sanitize(v.Source().Name()))
		if o.python.known == nil {
			o.python.known = map[variables.VariableTracker]*variables.OpaqueVariable{}
		}
		o.python.known[v] = n
	}
	return n.Node, nil
}

// ObjectOperand implements variables.Output.
func (o *OutputGraph) ObjectOperand(tx variables.Translator,
	v variables.VariableTracker) (*variables.OpaqueVariable, error) {
	if o.bodies > 0 || o.tentative > 0 || !o.backend.Inline() {
		return nil, exc.Break(exc.CallUnsupported, "%s in a function given to an operation", v.Kind())
	}
	if err := o.Freeze(tx, v); err != nil {
		return nil, err
	}
	n := o.placeholder(v, "object")
	n.Node.Foreign = true
	return variables.NewForeign(n.Node, ""), nil
}

func (o *OutputGraph) objectNode(tx variables.Translator,
	v variables.VariableTracker) (*variables.OpaqueVariable, error) {
	if variables.SlotOf(v) == nil {
		switch src := v.Source().(type) {
		case *guards.ConstSource:
			return o.pyConstant(o.pool[src.Const.Index])
		case *guards.GlobalSource, *guards.BuiltinSource, *guards.ModuleAttrSource, *guards.TypeAttrSource:
			if obj := o.realObject(v); !obj.IsNull() {
				o.AddGuards(guards.IDMatch(src, o.Const(obj), guards.KeepStrong))
				return o.pyConstant(obj)
			}
		}
		if v.Source() != nil {
			return o.placeholder(v, sanitize(v.Source().Name())), nil
		}
	}
	if op, parts := variables.BuildsAnew(v); op != "" && !o.backend.Inline() {
		return o.built(tx, v, op, parts)
	}
	if c, ok := variables.AsConstant(tx, v); ok && variables.SlotOf(v) == nil {
		return o.pyConstant(c)
	}
	if !o.backend.Inline() {
		return nil, exc.Break(exc.Reconstruct, "%s in a whole graph given to a backend", v.Kind())
	}
	if err := o.Freeze(tx, v); err != nil {
		return nil, err
	}
	if variables.SlotOf(v) == nil {
		return nil, exc.Break(exc.Reconstruct, "%s as operand of a Python operation", v.Kind())
	}
	return o.placeholder(v, "object"), nil
}

// built adds a node that builds a container made by the user's code. From then on, the container's tracker represents
// the node's result.
func (o *OutputGraph) built(tx variables.Translator, v variables.VariableTracker, op string,
	parts [][]variables.VariableTracker) (*variables.OpaqueVariable, error) {
	if o.freezing[v] {
		return nil, exc.Break(exc.Reconstruct, "%s refers to itself", v.Kind())
	}
	o.freezing[v] = true
	defer delete(o.freezing, v)
	var args []variables.VariableTracker
	for _, p := range parts {
		args = append(args, variables.NewTuple(p, nil))
	}
	n, err := o.pythonNode(tx, op, args, nil)
	if err == nil {
		variables.SetOutside(v, n)
	}
	return n, err
}

// pyConstant adds a PyConstant node whose result is obj.
func (o *OutputGraph) pyConstant(obj py.Object) (*variables.OpaqueVariable, error) {
	target, err := o.pythonTarget("PyConstant")
	if err != nil {
		return nil, err
	}
	node := o.added(o.graph.CallFunction(target,
		[]fxgraph.Arg{fxgraph.Lit{Pool: o.Const(obj).Index, Text: "<python object>"}}, nil))
	n := variables.NewOpaque(node, "")
	o.exampleOf(node, obj)
	return n, nil
}

func (o *OutputGraph) exampleOf(node *fxgraph.Node, obj py.Object) {
	if o.python.example == nil {
		o.python.example = map[*fxgraph.Node]py.Object{}
	}
	o.python.example[node] = obj
}

func (o *OutputGraph) placeholder(v variables.VariableTracker, name string) *variables.OpaqueVariable {
	node := o.graph.Placeholder(name)
	if o.python.objects == nil {
		o.python.objects = map[*fxgraph.Node]variables.VariableTracker{}
	}
	o.python.objects[node] = v
	o.exampleOf(node, o.realObject(v))
	return variables.NewOpaque(node, "")
}

// realObject returns the real object of a value of the frame. It returns null if the object is unknown.
func (o *OutputGraph) realObject(v variables.VariableTracker) py.Object {
	if l, ok := v.(*variables.LazyVariable); ok {
		return l.Peek()
	}
	var found py.Object
	o.world.Tracked(func(obj py.Object, t variables.VariableTracker) {
		if t == v {
			found = obj
		}
	})
	if c, ok := variables.AsConstant(o.current, v); ok && found.IsNull() {
		found = c
	}
	return found
}

// graphInputs returns, for each placeholder of the graph in order, a function that loads the input, and the current
// value.
func (o *OutputGraph) graphInputs(c *Codegen) ([]func() error, []py.Object, error) {
	var loads []func() error
	from := func(src guards.Source) { loads = append(loads, func() error { return c.loadSource(src) }) }
	var objects []py.Object
	for _, n := range o.graph.Nodes() {
		if n.Op != fxgraph.Placeholder {
			continue
		}
		if in, ok := o.inputOf[n]; ok {
			if in.Real.IsNull() {
				from(in.Source())
			} else {
				loads = append(loads, func() error { return c.plainInput(n, in) })
			}
			objects = append(objects, in.Example)
			continue
		}
		if v, ok := o.symbols.values[n]; ok {
			hint, _ := o.world.Env().Hint(v.Size)
			loads = append(loads, func() error { return c.Load(v) })
			objects = append(objects, o.scope.Int(hint))
			continue
		}
		if x, ok := o.computed.numbers[n]; ok {
			example, err := o.numberExample(x)
			if err != nil {
				return nil, nil, err
			}
			loads = append(loads, func() error { return c.Load(x) })
			objects = append(objects, example)
			continue
		}
		if example, ok := o.computed.examples[n]; ok {
			loads = append(loads, func() error { c.loadComputed(n); return nil })
			objects = append(objects, example)
			continue
		}
		v := o.python.objects[n]
		if v == nil || v.Source() == nil {
			return nil, nil, exc.Break(exc.Reconstruct, "a graph input that no guard reads")
		}
		example := o.python.example[n]
		if example.IsNull() {
			example = py.None()
		}
		from(v.Source())
		objects = append(objects, example)
	}
	return loads, objects, nil
}

// loadOpaque loads a Python operation's result, or a placeholder's object.
func (c *Codegen) loadOpaque(n *fxgraph.Node) error {
	v, ok := c.out.python.objects[n]
	if !ok {
		c.loadNode(n)
		return nil
	}
	if variables.SlotOf(v) == nil && v.Source() != nil {
		return c.loadSource(v.Source())
	}
	return c.Load(v)
}
