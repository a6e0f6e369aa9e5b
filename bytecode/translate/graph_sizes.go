package translate

import (
	"slices"

	"math"
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// sizeSession follows sizes, dtypes and devices through the graph by rules (fxgraph/shapes), when they are read. A
// node to which no rule applies is Unknown, and so is every value computed from it. FakeTensor computes these values
// (graph_meta.go).
type sizeSession struct {
	context shapes.Context
	// off is set once the rules no longer apply, because a mode was switched or an operation may have changed a
	// tensor's sizes in place.
	off bool
	// autocast has the device types for which autocast is on; it is nil until captured code switches autocast.
	// While autocast is on, FakeTensor computes the dtypes of results instead of the rules.
	autocast map[string]bool
	follows  *fxgraph.Node          // the node whose rule is running
	done     int                    // number of graph nodes processed so far
	asked    map[*fxgraph.Node]bool // operations for which torch's symbolic shapes have been asked
	values   map[*fxgraph.Node]shapes.Value
	given    map[*fxgraph.Node]*shapes.Tensor // results of nodes without a rule
	known    map[py.Object]shapes.Value       // values of constants whose conversion calls Python
	// numbers has the nodes that made a tensor of a number computed from sizes (graph_tensor_sizes.go). While counting
	// is set, sizeOperand returns the number for such a node.
	numbers  map[*fxgraph.Node]shapes.Size
	counting bool
	dtypes   map[shapes.Dtype]py.Object
	devices  map[shapes.Device]py.Object
	strided  py.Object
	// layoutNodes counts the nodes that torch has run for the strides of computed tensors; see maxLayoutNodes.
	layoutNodes int
}

// blocks lists the functions of godynamo._called.torch_state that enter and leave modes which affect no size, dtype or
// device: profiler blocks, inference mode, the choice of kernels for attention, and modes without __torch_function__.
var blocks = map[string]bool{"enter_record": true, "enter_inference_mode": true, "enter_sdpa_kernel": true,
	"enter_functions_off": true, "enter_all_functions_off": true, "leave_entered": true}

// gradModes lists switches of grad mode, which affect no value.
var gradModes = map[string]bool{"torch._set_grad_enabled": true, "torch._C._set_grad_enabled": true,
	"torch.set_grad_enabled": true}

// byRule returns what the rules yield for a node.
func (o *OutputGraph) byRule(n *fxgraph.Node) shapes.Value {
	if o.sizes == nil {
		o.sizes = o.newSizeSession()
	}
	s := o.sizes
	nodes := o.graph.Nodes()
	for ; s.done < len(nodes); s.done++ {
		s.values[nodes[s.done]] = o.follow(nodes[s.done])
	}
	return s.values[n]
}

// Sizes implements variables.Output.
func (o *OutputGraph) Sizes(t *variables.TensorVariable) (*variables.TensorMeta, bool) {
	o.world.Asked.Sizes++
	v, ok := o.tensorSizes(t.Node)
	s := o.sizes
	layout := s.strided
	if !ok {
		if v, layout, ok = o.sparseSizes(t.Node); !ok {
			return nil, false
		}
	}
	dtype, ok := s.dtype(o.scope, v.Dtype)
	if !ok {
		return nil, false
	}
	return &variables.TensorMeta{Shape: v.Shape, Dtype: dtype, Device: s.devices[v.Device], Layout: layout}, true
}

func (o *OutputGraph) newSizeSession() *sizeSession {
	s := &sizeSession{
		values: map[*fxgraph.Node]shapes.Value{}, given: map[*fxgraph.Node]*shapes.Tensor{},
		known:  map[py.Object]shapes.Value{},
		dtypes: map[shapes.Dtype]py.Object{}, devices: map[shapes.Device]py.Object{},
	}
	if m, ok := py.Answered(o.scope.Import("godynamo._translator.fake")); ok {
		if state, ok := py.Answered(o.scope.CallMethod(m, "plain_state", orNone(o.state.entry))); ok &&
			state.Kind() == py.Tuple {
			items := o.scope.Items(state)
			s.context = shapes.Context{DefaultDtype: s.dtypeName(o.scope, items[0]), CPU: "cpu", Env: o.world.Env(),
				Trues: map[*shapes.Tensor]shapes.Size{}}
			s.devices["cpu"], s.strided = items[1], items[2]
			return s
		}
	}
	s.off = true
	return s
}

// follow applies the rules to one node.
func (o *OutputGraph) follow(n *fxgraph.Node) shapes.Value {
	s := o.sizes
	if in, ok := o.inputOf[n]; ok {
		return o.inputSizes(in)
	}
	if d, ok := o.declared[n]; ok {
		return o.declaredSizes(d)
	}
	if v, ok := o.loops.rows[n]; ok {
		return v
	}
	if v := o.sizeOfNode(n); v != nil {
		return shapes.Int{Size: v.Size}
	}
	if x := o.computed.numbers[n]; x != nil {
		return numberValue(o.world, x)
	}
	if t, ok := o.writesInto(n); ok {
		s.forgetData() // the tensor has other data now
		return t
	}
	special := o.foreign.isSpecial(n) && !o.world.IsDispatched(n)
	if n.State && s.switchesAutocast(n) {
		return shapes.Unknown{}
	}
	if n.State && !gradModes[n.Target.Text] && !blocks[n.Target.Text] ||
		n.Inplace && !n.State && !special && !shapes.KeepsSizes(n.Target.Text) {
		s.off = true
		clear(s.values) // the values known so far may have changed
		s.forgetData()
	}
	if n.Foreign && n.Inplace {
		s.forgetData() // it may have received other data
	}
	o.foreign.classify(o, n)
	if special && !s.off {
		return o.distributed(n)
	}
	if s.off || len(s.autocast) > 0 || n.State || special ||
		(n.Op != fxgraph.CallFunction && n.Op != fxgraph.CallMethod) {
		return shapes.Unknown{}
	}
	if t := s.given[n]; t != nil {
		return t
	}
	args, kwargs := o.operandsOf(n, o.bodies == 0 && shapes.TakesSizes(n.Target.Text))
	if n.Target.Text == "operator.getitem" && o.isList(n.Args[1]) {
		return shapes.Unknown{} // a list, unlike a tuple, is an advanced index
	}
	if n.Target.Text == "builtins.getattr" {
		if list, ok := args[0].(shapes.List); ok {
			return o.field(n.Args[0], list, args[1])
		}
	}
	rule, name := shapes.Function, n.Target.Text
	if n.Op == fxgraph.CallMethod {
		rule = shapes.Method
	}
	if name == variables.MakeWrapper { // it looks like torch.empty(size, dtype=..., device=...)
		name, args = "torch.empty", args[1:]
		kwargs = slices.DeleteFunc(kwargs, func(k shapes.Kwarg) bool { return k.Name == "strides" })
	}
	s.context.Why = o.userLine()
	s.context.Untraced = o.backend.Inline() && o.bodies == 0
	s.context.Fresh = !n.Foreign && (!o.forCompiler() || o.takesUnbacked()) && o.bodies == 0 && o.symbolizes()
	s.follows = n
	v, known := rule(s.context, name, args, kwargs)
	if t, ok := o.sizeInTensor(n); ok && !known {
		v, known = t, true
	}
	s.follows = nil
	if n.Inplace || !known {
		clear(s.context.Trues)
		if len(s.numbers) > 0 && shapes.MayChange(args, kwargs) {
			clear(s.numbers)
		}
	}
	o.adoptSymbols(n, v)
	return v
}

// forgetData makes unknown what is known of tensors' data.
func (s *sizeSession) forgetData() {
	clear(s.numbers)
	clear(s.context.Trues)
}

// autocastModes lists the switches of autocast other than torch.set_autocast_enabled.
var autocastModes = map[string]bool{"torch.set_autocast_dtype": true, "torch.set_autocast_cache_enabled": true,
	"torch.autocast_increment_nesting": true, "torch.autocast_decrement_nesting": true,
	"torch.clear_autocast_cache": true}

// switchesAutocast follows autocast, and reports whether n switches it.
func (s *sizeSession) switchesAutocast(n *fxgraph.Node) bool {
	if n.Target.Text != "torch.set_autocast_enabled" || len(n.Args) != 2 {
		return autocastModes[n.Target.Text]
	}
	device, named := n.Args[0].(fxgraph.Lit)
	switch on := isLiteral(n.Args[1], "True"); {
	case !named || !on && !isLiteral(n.Args[1], "False"):
		return false
	case on:
		if s.autocast == nil {
			s.autocast = map[string]bool{}
		}
		s.autocast[device.Text] = true
	default:
		delete(s.autocast, device.Text)
	}
	return true
}

// writesInto returns the tensor given as out=, if it has the sizes, dtype and device of the operation's result. Then
// the operation changes none of these. Others resize the tensor or convert the result.
func (o *OutputGraph) writesInto(n *fxgraph.Node) (*shapes.Tensor, bool) {
	into, ok := outOf(n).(*fxgraph.Node)
	if !ok || o.sizes.off || n.Foreign || n.Op != fxgraph.CallFunction {
		return nil, false
	}
	t, ok := o.sizes.values[into].(*shapes.Tensor)
	if !ok {
		return nil, false
	}
	args, kwargs := o.operandsOf(n, false)
	kwargs = slices.DeleteFunc(kwargs, func(k shapes.Kwarg) bool { return k.Name == "out" })
	o.sizes.context.Fresh = false
	v, _ := shapes.Function(o.sizes.context, n.Target.Text, args, kwargs)
	r, ok := v.(*shapes.Tensor)
	return t, ok && slices.Equal(r.Shape, t.Shape) && r.Dtype == t.Dtype && r.Device == t.Device
}

// outOf returns the operand out=, or nil if there is none.
func outOf(n *fxgraph.Node) fxgraph.Arg {
	for _, k := range n.Kwargs {
		if k.Name == "out" {
			return k.Value
		}
	}
	return nil
}

// field returns the result that is read by attribute name from an operation's several results, such as x.sort().values.
func (o *OutputGraph) field(of fxgraph.Arg, results shapes.List, name shapes.Value) shapes.Value {
	n, ok := of.(*fxgraph.Node)
	if !ok {
		return shapes.Unknown{}
	}
	class, err := o.sequenceType(n)
	if err != nil {
		return shapes.Unknown{}
	}
	fields, ok := py.Answered(o.scope.GetAttr(class, "__match_args__"))
	if !ok || fields.Kind() != py.Tuple {
		return shapes.Unknown{}
	}
	for i, f := range o.scope.Items(fields) {
		if text, ok := name.(shapes.Str); ok && i < len(results) && py.GoString(f) == string(text) {
			return results[i]
		}
	}
	return shapes.Unknown{}
}

// numberValue returns, as an operand for a rule, a number whose value is unknown.
func numberValue(w *variables.World, x *variables.ComputedVariable) shapes.Value {
	switch x.Type {
	case w.Builtin("float"):
		return shapes.Float(math.NaN())
	case w.Builtin("int"):
		return shapes.Int{Size: sym.Unknown()}
	}
	return shapes.Unknown{}
}

func (o *OutputGraph) isList(a fxgraph.Arg) bool {
	lit, is := a.(fxgraph.Lit)
	if is {
		return lit.Pool >= 0 && o.pool[lit.Pool].Kind() == py.List
	}
	_, is = a.(fxgraph.List)
	return is
}

// inputSizes returns the shape, dtype and device of a dense strided torch.Tensor or Parameter, or of a foreign tensor.
// It returns Unknown for other tensors.
func (o *OutputGraph) inputSizes(in *variables.TensorVariable) shapes.Value {
	w, s := o.world, o.sizes
	if typ := in.Example.Type(); typ != w.TensorType && typ != w.ParameterType && !in.Node.Foreign {
		return shapes.Unknown{}
	}
	m, err := o.readMeta(in.Example)
	if err != nil || m.Layout != s.strided {
		return shapes.Unknown{}
	}
	d, ok := s.constant(o.scope, m.Device).(shapes.Device)
	if !ok {
		return shapes.Unknown{}
	}
	name := s.dtypeName(o.scope, m.Dtype)
	if !name.Known() {
		return shapes.Unknown{}
	}
	shape, err := o.shapeOf(in, m.Shape)
	if err != nil {
		return shapes.Unknown{}
	}
	return &shapes.Tensor{Shape: shape, Dtype: name, Device: d}
}

// operandsOf converts a node's operands for a rule. If counting is set, tensors with a known number become ints, except
// the tensor of a method.
func (o *OutputGraph) operandsOf(n *fxgraph.Node, counting bool) ([]shapes.Value, []shapes.Kwarg) {
	args := make([]shapes.Value, len(n.Args))
	for i, a := range n.Args {
		o.sizes.counting = counting && (i > 0 || n.Op != fxgraph.CallMethod)
		args[i] = o.sizeOperand(a)
	}
	var kwargs []shapes.Kwarg
	for _, kw := range n.Kwargs {
		kwargs = append(kwargs, shapes.Kwarg{Name: kw.Name, Value: o.sizeOperand(kw.Value)})
	}
	o.sizes.counting = false
	return args, kwargs
}

func (o *OutputGraph) sizeOperand(a fxgraph.Arg) shapes.Value {
	switch x := a.(type) {
	case *fxgraph.Node:
		if number, ok := o.sizes.numbers[x]; ok && o.sizes.counting {
			return shapes.Int{Size: number}
		}
		return o.sizes.values[x]
	case fxgraph.Lit:
		if x.Pool < 0 {
			return shapes.Unknown{}
		}
		return o.sizes.constant(o.scope, o.pool[x.Pool])
	case fxgraph.List:
		return o.sizeOperands(x.Items)
	case fxgraph.Tuple:
		return o.sizeOperands(x.Items)
	case fxgraph.Slice:
		return shapes.Slice{Start: o.sizeOperand(x.Start), Stop: o.sizeOperand(x.Stop), Step: o.sizeOperand(x.Step)}
	}
	return shapes.Unknown{}
}

func (o *OutputGraph) sizeOperands(items []fxgraph.Arg) shapes.Value {
	out := make(shapes.List, len(items))
	for i, it := range items {
		out[i] = o.sizeOperand(it)
	}
	return out
}

// constant converts an object of the pool to a value of package shapes.
func (s *sizeSession) constant(scope *py.Scope, obj py.Object) shapes.Value {
	switch obj.Kind() {
	case py.NoneKind:
		return shapes.None{}
	case py.BoolKind:
		return shapes.Bool(obj == py.True())
	case py.Int:
		if n, ok := py.AsInt(obj); ok {
			return shapes.Constant(int(n))
		}
	case py.Float:
		v, ok := s.known[obj]
		if !ok {
			f, _ := strconv.ParseFloat(scope.Repr(obj), 64)
			v = shapes.Float(f)
			s.known[obj] = v
		}
		return v
	case py.Str:
		return shapes.Str(py.GoString(obj))
	case py.EllipsisKind:
		return shapes.Ellipsis{}
	case py.Tuple, py.List, py.TupleSub:
		items := scope.Items(obj)
		out := make(shapes.List, len(items))
		for i, it := range items {
			out[i] = s.constant(scope, it)
		}
		return out
	case py.Other:
		v, ok := s.known[obj]
		if !ok {
			v = s.named(scope, obj)
			s.known[obj] = v
		}
		return v
	}
	return shapes.Unknown{}
}

// named converts a dtype or a device to a value of package shapes.
func (s *sizeSession) named(scope *py.Scope, obj py.Object) shapes.Value {
	switch py.TypeName(obj.Type()) {
	case "torch.dtype":
		return s.dtypeName(scope, obj)
	case "torch.layout":
		if obj == s.strided {
			return shapes.Strided{}
		}
	case "torch.device":
		text, ok := py.Answered(scope.CallMethod(obj, "__str__"))
		if !ok {
			break
		}
		d, known := shapes.DeviceNamed(py.GoString(text))
		if known && string(d) != py.GoString(text) { // the index is dropped
			obj, known = py.Answered(scope.Call(obj.Type(), scope.Str(string(d))))
		}
		if !known {
			break
		}
		if _, ok := s.devices[d]; !ok {
			s.devices[d] = obj
		}
		return d
	}
	return shapes.Unknown{}
}

func (s *sizeSession) dtypeName(scope *py.Scope, obj py.Object) shapes.Dtype {
	d := shapes.Dtype(strings.TrimPrefix(scope.Repr(obj), "torch."))
	s.dtypes[d] = obj
	return d
}

// dtype returns the torch object for a dtype of a rule. It returns false if torch has no dtype of that name.
func (s *sizeSession) dtype(scope *py.Scope, d shapes.Dtype) (py.Object, bool) {
	if obj, ok := s.dtypes[d]; ok {
		return obj, true
	}
	m, ok := py.Answered(scope.Import("torch"))
	if !ok {
		return py.Object{}, false
	}
	obj, ok := py.Answered(scope.GetAttr(m, string(d)))
	if !ok {
		return py.Object{}, false
	}
	s.dtypes[d] = obj
	return obj, true
}
