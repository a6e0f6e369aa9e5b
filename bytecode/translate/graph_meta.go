package translate

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// metaSession computes metadata of graph nodes when it is read, with torch's FakeTensor
// (python/godynamo/_translator/fake.py). It runs each node once, in order, and only the nodes that a value depends on
// (graph_needed.go).
type metaSession struct {
	object py.Object
	done   []bool // whether the session has received the node with this number
	// hinted has the sizes that were passed to the session with their values in this call, without the condition that
	// they have these values.
	hinted []*variables.SymNodeVariable
}

// Meta implements variables.Output.
func (o *OutputGraph) Meta(tx variables.Translator, t *variables.TensorVariable) (*variables.TensorMeta, error) {
	v, err := o.sample(t)
	for range o.graph.Nodes() { // each turn foresees the size of another node
		if err == nil {
			break
		}
		known, failed := o.foreseeSize(tx, t.Node)
		if failed != nil {
			return nil, failed
		}
		if !known {
			break
		}
		v, err = o.sample(t)
	}
	if err != nil {
		return nil, err
	}
	m, err := o.readMeta(v)
	if err == nil && v == t.Example {
		m.Shape, err = o.shapeOf(t, m.Shape)
	}
	return m, err
}

// RequiresGrad implements variables.Output.
func (o *OutputGraph) RequiresGrad(tx variables.Translator, t *variables.TensorVariable) (bool, error) {
	on, err := o.gradFact(t, "requires_grad")
	if err == nil || o.isForeign(t.Node) {
		return on, err
	}
	m, err := o.Meta(tx, t)
	if err != nil {
		return false, err
	}
	return m.RequiresGrad, nil
}

// fakeWith returns the fake tensor of a computed tensor, and guards these fields of the inputs on which it depends. It
// makes no size a constant.
func (o *OutputGraph) fakeWith(t *variables.TensorVariable, fields uint16) (py.Object, error) {
	if o.isForeign(t.Node) {
		return py.Object{}, foreignMetadata(t.Node)
	}
	needed := o.needed(t.Node)
	o.needOf(needed, fields)
	if err := o.runWithHints(needed); err != nil {
		return py.Object{}, err
	}
	return o.fakeOf(t.Node)
}

// gradFact returns requires_grad or is_leaf of a computed tensor. It makes no size a constant.
func (o *OutputGraph) gradFact(t *variables.TensorVariable, name string) (bool, error) {
	v, err := o.fakeWith(t, fieldsOfGrad)
	if err != nil {
		return false, err
	}
	flag, err := o.scope.GetAttr(v, name)
	return flag == py.True(), err
}

// IsContiguous implements variables.Output.
func (o *OutputGraph) IsContiguous(t *variables.TensorVariable) (bool, error) {
	v, err := o.fakeWith(t, fieldsOfSizes)
	if err != nil {
		return false, err
	}
	holds, err := o.scope.CallMethod(v, "is_contiguous")
	return holds == py.True(), err
}

// SameTensor implements variables.Output.
func (o *OutputGraph) SameTensor(a, b *fxgraph.Node) (bool, error) {
	o.world.Asked.Meta++
	x, err := o.fake(a)
	if err != nil {
		return false, err
	}
	y, err := o.fake(b)
	return x == y, err
}

// InputOf implements variables.Output.
func (o *OutputGraph) InputOf(n *fxgraph.Node) *variables.TensorVariable { return o.inputOf[n] }

// Sample implements variables.Output. It counts as a read of the tensor's origin, since the caller may read anything
// from the sample.
func (o *OutputGraph) Sample(t *variables.TensorVariable) (py.Object, error) {
	if t.Example.IsNull() || t.Changed {
		o.world.Asked.Origin++
	}
	return o.sample(t)
}

func (o *OutputGraph) sample(t *variables.TensorVariable) (py.Object, error) {
	if !t.Example.IsNull() && !t.Changed {
		return t.Example, nil
	}
	return o.fake(t.Node)
}

// NodeType implements variables.Output.
func (o *OutputGraph) NodeType(n *fxgraph.Node) (py.Object, error) {
	if shapes.GivesTuple(n.Target.Text) {
		return o.world.TupleType, nil
	}
	o.world.Asked.Meta++
	if _, ok := o.openValue(n).(shapes.List); ok {
		o.needOfAll(fieldsOfSizes)
		return o.sequenceType(n)
	}
	v, err := o.fake(n)
	if err != nil {
		return py.Object{}, err
	}
	return v.Type(), nil
}

// sequenceType returns the type of the sequence in which an operation of torch returns several results. This is the
// operation's class in torch.return_types, such as torch.return_types.sort, or tuple.
func (o *OutputGraph) sequenceType(n *fxgraph.Node) (py.Object, error) {
	m, err := o.scope.Import("torch.return_types")
	if err != nil {
		return py.Object{}, err
	}
	name := n.Target.Text[strings.LastIndexByte(n.Target.Text, '.')+1:]
	if class, ok := py.Answered(o.scope.GetAttr(m, name)); ok {
		return class, nil
	}
	return o.world.TupleType, nil
}

// NodeValue implements variables.Output.
func (o *OutputGraph) NodeValue(_ variables.Translator, n *fxgraph.Node) (py.Object, error) {
	if list, ok := o.openValue(n).(shapes.List); ok {
		o.world.Asked.Sizes++
		o.needOfAll(fieldsOfSizes)
		return o.scope.Int(int64(len(list))), nil
	}
	o.world.Asked.Meta++
	v, err := o.fake(n)
	if err != nil {
		return py.Object{}, err
	}
	k, err := o.scope.Len(v)
	if err != nil {
		return py.Object{}, err
	}
	return o.scope.Int(int64(k)), nil
}

func (o *OutputGraph) readMeta(tensor py.Object) (*variables.TensorMeta, error) {
	s := o.scope
	m := &variables.TensorMeta{}
	var err error
	ints := func(v py.Object, e error) []int {
		if e != nil {
			err = e
			return nil
		}
		var out []int
		for _, it := range s.Items(v) {
			n, ok := py.AsInt(it)
			if !ok {
				err = exc.Break(exc.TensorMetadata, "a size that is not an integer")
			}
			out = append(out, int(n))
		}
		return out
	}
	attr := func(name string) py.Object {
		v, e := s.GetAttr(tensor, name)
		if e != nil {
			err = e
		}
		return v
	}
	m.Shape = shapes.Sizes(ints(s.GetAttr(tensor, "shape"))...)
	m.Stride = ints(s.CallMethod(tensor, "stride"))
	m.Dtype, m.Device, m.Layout = attr("dtype"), attr("device"), attr("layout")
	m.RequiresGrad = attr("requires_grad") == py.True()
	if err != nil {
		if _, ok := err.(*exc.Unsupported); !ok {
			err = exc.Break(exc.TensorMetadata, "%v", err)
		}
		return nil, err
	}
	return m, nil
}

// NodeResult implements variables.Output.
func (o *OutputGraph) NodeResult(_ variables.Translator, n *fxgraph.Node, bodies bool) (py.Object, error) {
	if o.isForeign(n) {
		return py.Object{}, exc.Break(exc.UnknownResult, "%s of a tensor whose class computes it", n.Target.Text)
	}
	o.world.Asked.Origin++
	fields, run := uint16(fieldAll), o.runFakes
	if bodies {
		fields, run = fieldsOfGrad, o.runWithHints
	}
	o.needOfAll(fields)
	if err := run(o.before(n)); err != nil {
		return py.Object{}, err
	}
	s := o.scope
	row, err := NodeRow(s, n, o.pool, o.refClass())
	if err != nil {
		return py.Object{}, err
	}
	r, err := s.CallMethod(o.meta.object, "result", s.Int(int64(n.Index)), row)
	if err != nil {
		return py.Object{}, exc.Break(exc.UnknownResult, "%s: %v", n.Name, err)
	}
	return r, nil
}

// fake returns the fake value of a node, which depends on all fields of the inputs from which it is computed. It first
// runs the nodes that are needed and have not run yet.
func (o *OutputGraph) fake(n *fxgraph.Node) (py.Object, error) {
	if o.isForeign(n) {
		return py.Object{}, foreignMetadata(n)
	}
	needed := o.needed(n)
	o.needOf(needed, fieldAll)
	if err := o.runFakes(needed); err != nil {
		return py.Object{}, err
	}
	return o.fakeOf(n)
}

func (o *OutputGraph) fakeOf(n *fxgraph.Node) (py.Object, error) {
	s := o.scope
	v, err := s.CallMethod(o.meta.object, "value", s.Int(int64(n.Index)))
	if err != nil {
		return py.Object{}, exc.Break(exc.TensorMetadata, "%s: %v", n.Name, err)
	}
	return v, nil
}

// runFakes runs, on fake tensors, those of the nodes that have not run yet. Sizes among their operands become
// constants.
func (o *OutputGraph) runFakes(nodes []*fxgraph.Node) error {
	if o.meta != nil {
		for _, v := range o.meta.hinted {
			if _, err := v.Fixed(o.current); err != nil {
				return err
			}
		}
		o.meta.hinted = nil
	}
	return o.runNodes(nodes, func(v *variables.SymNodeVariable) (py.Object, error) {
		c, err := v.Fixed(o.current)
		if err != nil {
			return py.Object{}, err
		}
		return c.Value, nil
	})
}

// runWithHints runs nodes as runFakes does, but no size becomes a constant. The sizes of the results hold in this call
// only.
func (o *OutputGraph) runWithHints(nodes []*fxgraph.Node) error {
	return o.runNodes(nodes, func(v *variables.SymNodeVariable) (py.Object, error) {
		n, ok := o.world.Env().Hint(v.Size)
		if !ok {
			return py.Object{}, variables.DataDependent(o.world.Env().Text(v.Size))
		}
		o.meta.hinted = append(o.meta.hinted, v)
		return o.scope.Int(n), nil
	})
}

// runNodes runs nodes on fake tensors. valueOf returns the value of a size.
func (o *OutputGraph) runNodes(nodes []*fxgraph.Node,
	valueOf func(*variables.SymNodeVariable) (py.Object, error)) error {
	s := o.scope
	if o.meta == nil {
		m, err := s.Import("godynamo._translator.fake")
		if err != nil {
			return err
		}
		obj, err := s.CallMethod(m, "Session")
		if err != nil {
			return err
		}
		o.meta = &metaSession{object: obj}
		if !o.state.entry.IsNull() {
			if _, err := s.CallMethod(obj, "set_state", o.state.entry); err != nil {
				return err
			}
		}
	}
	m := o.meta
	for _, n := range nodes {
		if n.Index < len(m.done) && m.done[n.Index] {
			continue
		}
		if err := o.runNode(n, valueOf); err != nil {
			return err
		}
		for len(m.done) <= n.Index {
			m.done = append(m.done, false)
		}
		m.done[n.Index] = true
	}
	return nil
}

// forget lets the session receive the n-th node and all later ones again.
func (m *metaSession) forget(n int) { m.done = m.done[:min(n, len(m.done))] }

// runNode runs one node on fake tensors. An input, or a value known only at run time, is passed as an example.
func (o *OutputGraph) runNode(n *fxgraph.Node, valueOf func(*variables.SymNodeVariable) (py.Object, error)) error {
	s, session, index := o.scope, o.meta.object, o.scope.Int(int64(n.Index))
	known := func(example py.Object, err error) error {
		if err == nil {
			_, err = s.CallMethod(session, "input", index, example)
		}
		if err != nil {
			return exc.Break(exc.TensorMetadata, "%v", err)
		}
		return nil
	}
	in, given := o.inputOf[n]
	if o.isForeign(n) && n.Target.Text != gradCall {
		return o.runForeign(n)
	}
	if given {
		return known(in.Example, nil)
	}
	if d, ok := o.declared[n]; ok && d.Of == nil {
		return o.runDeclared(n, d)
	}
	if g, ok := o.python.objects[n].(*variables.GeneratorVariable); ok {
		return known(o.realObject(g), nil)
	}
	if v, ok := o.symbols.values[n]; ok {
		return known(valueOf(v))
	}
	if _, ok := o.loops.rows[n]; ok {
		if _, err := s.CallMethod(session, "unknown", index); err != nil {
			return exc.Break(exc.TensorMetadata, "%v", err)
		}
		return nil
	}
	if example, ok, err := o.computedExample(n); ok || err != nil {
		return known(example, err)
	}
	row, err := NodeRow(s, n, o.pool, o.refClass())
	if err != nil {
		return err
	}
	devices, err := s.CallMethod(session, "run", index, row)
	if err != nil {
		return exc.Break(exc.TensorMetadata, "%s: %v", n.Name, err)
	}
	return o.guardDevices(devices)
}

// guardDevices guards the current devices on which an operation has made fake tensors without naming an index. `found`
// is what Session.run has returned.
func (o *OutputGraph) guardDevices(found py.Object) error {
	s := o.scope
	if found.Kind() != py.List {
		return nil
	}
	for _, row := range s.Items(found) {
		torch, err := s.Import("torch")
		if err != nil {
			return err
		}
		parts := s.Items(row)
		o.AddGuards(guards.PyCheck(guards.NewConstSource(o.Const(torch), "___torch"), o.Const(parts[0]),
			py.GoString(parts[1])))
	}
	return nil
}

// RefClass returns the Python class Ref, which represents nodes in the operands of node rows
// (python/godynamo/_backends/rows.py).
func RefClass(s *py.Scope) (py.Object, error) {
	m, err := s.Import("godynamo._backends.rows")
	if err != nil {
		return py.Object{}, err
	}
	return s.GetAttr(m, "Ref")
}

func (o *OutputGraph) refClass() py.Object {
	r, err := RefClass(o.scope)
	if err != nil {
		panic(err)
	}
	return r
}

// NodeRow converts a node to a flat row: (op, name, target, args, kwargs, stack_trace, source_range). Python builds
// FX nodes from such rows. An operand that is a node is Ref(index).
func NodeRow(s *py.Scope, n *fxgraph.Node, pool []py.Object, ref py.Object) (py.Object, error) {
	args := make([]py.Object, len(n.Args))
	var err error
	for i, a := range n.Args {
		if args[i], err = argObject(s, a, pool, ref); err != nil {
			return py.Object{}, err
		}
	}
	var pairs [][2]py.Object
	for _, kw := range n.Kwargs {
		v, err := argObject(s, kw.Value, pool, ref)
		if err != nil {
			return py.Object{}, err
		}
		pairs = append(pairs, [2]py.Object{s.Name(kw.Name), v})
	}
	kwargs, err := s.Dict(pairs...)
	if err != nil {
		return py.Object{}, err
	}
	target := s.Name(n.Target.Text)
	if n.Op == fxgraph.Placeholder && n.Expression {
		target = s.Name(n.Name)
	}
	if n.Op == fxgraph.CallFunction {
		target = pool[n.Target.Pool]
	}
	return s.Tuple(s.Name(n.Op.String()), s.Str(n.Name), target, s.Tuple(args...), kwargs, s.Str(stackTrace(n.Stack)),
		s.Str(sourceRange(n))), nil
}

func argObject(s *py.Scope, a fxgraph.Arg, pool []py.Object, ref py.Object) (py.Object, error) {
	list := func(items []fxgraph.Arg) ([]py.Object, error) {
		out := make([]py.Object, len(items))
		for i, it := range items {
			v, err := argObject(s, it, pool, ref)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}
	switch x := a.(type) {
	case *fxgraph.Node:
		return s.Call(ref, s.Int(int64(x.Index)))
	case fxgraph.Lit:
		return pool[x.Pool], nil
	case fxgraph.List:
		items, err := list(x.Items)
		return s.List(items...), err
	case fxgraph.Tuple:
		items, err := list(x.Items)
		return s.Tuple(items...), err
	case fxgraph.Slice:
		items, err := list([]fxgraph.Arg{x.Start, x.Stop, x.Step})
		if err != nil {
			return py.Object{}, err
		}
		m, err := s.Import("builtins")
		if err != nil {
			return py.Object{}, err
		}
		return s.CallMethod(m, "slice", items...)
	case fxgraph.Dict:
		keys, err := list(x.Keys)
		if err != nil {
			return py.Object{}, err
		}
		values, err := list(x.Values)
		if err != nil {
			return py.Object{}, err
		}
		var pairs [][2]py.Object
		for i := range keys {
			pairs = append(pairs, [2]py.Object{keys[i], values[i]})
		}
		return s.Dict(pairs...)
	}
	return py.Object{}, exc.Break(exc.Reconstruct, "graph operand %T", a)
}

// sourceRange returns file:line:column for a Python operation, and "" for any other node.
func sourceRange(n *fxgraph.Node) string {
	if !isPythonNode(n) || len(n.Stack) == 0 {
		return ""
	}
	f := n.Stack[0]
	return f.File + ":" + itoa(f.Line) + ":" + itoa(f.Col)
}

func stackTrace(frames []fxgraph.Frame) string {
	out := ""
	for i := len(frames) - 1; i >= 0; i-- {
		f := frames[i]
		out += "  File \"" + f.File + "\", line " + itoa(f.Line) + ", in " + f.Name + "\n"
	}
	return out
}

// MayBeNegative implements variables.Output.
func (o *OutputGraph) MayBeNegative() (bool, error) {
	for _, t := range o.inputs {
		if t.Example.IsNull() {
			return true, nil
		}
		negative, err := o.scope.CallMethod(t.Example, "is_neg")
		if err != nil || negative == py.True() {
			return true, err
		}
	}
	return slices.ContainsFunc(o.graph.Nodes(), func(n *fxgraph.Node) bool {
		name := n.Target.Text
		return name == "builtins.getattr" || strings.Contains(name, "imag") || strings.Contains(name, "_neg_view")
	}), nil
}
