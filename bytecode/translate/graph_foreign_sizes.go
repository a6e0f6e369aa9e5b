package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// The class of a foreign operation's result is unknown, but its shape, dtype and device often follow from rules. The
// shape of a DTensor is that of the whole tensor, so torch's operations have the same rules for DTensors as for plain
// tensors. What each rank holds of a DTensor depends on its placements and its mesh. The functions that convert between
// whole tensors and what a rank holds have rules of their own, named in python/godynamo/_translator/foreign.py.

// foreignNodes is what is known about foreign nodes. The maps are nil until there is one.
type foreignNodes struct {
	// outside is the frame that calls an operation with functions that may contain foreign operations, while such a
	// function is captured; sampling is set while its arguments are made. results says what such operations return.
	outside  *InstructionTranslator
	sampling bool
	results  map[*fxgraph.Node]foreignResult
	any, ran bool                       // whether there are any; whether one is an operation
	rules    map[*fxgraph.Node]string   // the rule, or "", of each call of a function or method of torch.distributed
	dtensors map[*fxgraph.Node]*dtensor // nil: the node is not known to be a DTensor
	locals   map[*fxgraph.Node]bool     // whether the node is known not to be a DTensor
	arrays   map[*fxgraph.Node]bool     // the arrays of numpy
	// repeatable has the operations that may run again, see CallRepeatable.
	repeatable map[*fxgraph.Node]bool
}

// dtensor is what is known of a DTensor apart from its shape: the node of its mesh, and its placements. Either may be
// null.
type dtensor struct {
	mesh       *fxgraph.Node
	placements py.Object
}

// known reports whether the placements are known.
func (d *dtensor) known() bool { return d != nil && d.mesh != nil && !d.placements.IsNull() }

// foreignResult is what is known about a result of a function that runs foreign operations.
type foreignResult struct {
	sizes *shapes.Tensor
	whole *dtensor
	local bool
}

// GiveForeign implements variables.Output.
func (o *OutputGraph) GiveForeign(n *fxgraph.Node, like variables.ForeignResult) {
	if o.foreign.results == nil {
		o.foreign.results = map[*fxgraph.Node]foreignResult{}
	}
	o.foreign.results[n] = like.(foreignResult)
	o.foreign.rules[n] = "body"
	o.sizes.done = min(o.sizes.done, n.Index) // the rules may have passed the node
}

// ForeignLike implements variables.Output.
func (o *OutputGraph) ForeignLike(n, like *fxgraph.Node) { o.GiveForeign(n, o.foreignEnd(like)) }

// found records that the graph has a foreign node.
func (f *foreignNodes) found() {
	if !f.any {
		f.any, f.rules = true, map[*fxgraph.Node]string{}
		f.repeatable, f.arrays = map[*fxgraph.Node]bool{}, map[*fxgraph.Node]bool{}
		f.dtensors, f.locals = map[*fxgraph.Node]*dtensor{}, map[*fxgraph.Node]bool{}
	}
}

// ForeignRule implements variables.Output.
func (o *OutputGraph) ForeignRule(n *fxgraph.Node, rule string) { o.foreign.rules[n] = rule }

// isSpecial reports whether a node calls a function or method that torch's own rules do not cover.
func (f *foreignNodes) isSpecial(n *fxgraph.Node) bool {
	_, special := f.rules[n]
	return special
}

// classify records whether a node is a DTensor. What torch's operations return is a DTensor if an operand is one.
func (f *foreignNodes) classify(o *OutputGraph, n *fxgraph.Node) {
	if !n.Foreign {
		return
	}
	if in, ok := o.inputOf[n]; ok {
		if name := py.TypeName(in.Example.Type()); strings.HasSuffix(name, "DTensor") {
			f.dtensors[n] = &dtensor{}
		} else {
			f.locals[n] = true
		}
		return
	}
	if f.isSpecial(n) || n.Op == fxgraph.CallFunction && !ofTorch(n.Target.Text) {
		return // its rule records the class, or the class is unknown
	}
	var whole *dtensor
	local := true
	n.EachInput(func(in *fxgraph.Node) {
		if d := f.dtensors[in]; d != nil && (whole == nil || whole.mesh == nil) {
			whole = &dtensor{mesh: d.mesh} // all operands are on one mesh
		}
		local = local && (!in.Foreign || f.locals[in])
	})
	if whole != nil {
		f.dtensors[n] = whole
	} else if local {
		f.locals[n] = true
	}
}

// ofTorch reports whether a function, given by its name in graphs, is one of torch's operations. An autograd.Function
// or a function of the program may return a tensor of any class.
func ofTorch(name string) bool {
	module, _, _ := strings.Cut(name, ".")
	known := module == "torch" || module == "operator" || module == "godynamo"
	return known && !strings.HasSuffix(name, ".apply")
}

// distributed returns the result of a function or method of torch.distributed.
func (o *OutputGraph) distributed(n *fxgraph.Node) shapes.Value {
	f, k := &o.foreign, len(n.Args)
	args, kwargs := o.operandsOf(n, false)
	tensor := func(i int) (*fxgraph.Node, *shapes.Tensor) {
		if i < 0 || i >= k {
			return nil, nil
		}
		a, v := n.Args[i], args[i]
		if items, ok := a.(fxgraph.Tuple); ok && len(items.Items) > 0 { // a module's arguments
			a, v = items.Items[0], v.(shapes.List)[0]
		}
		node, _ := a.(*fxgraph.Node)
		t, _ := v.(*shapes.Tensor)
		return node, t
	}
	rule := f.rules[n]
	if rule == "body" {
		like := f.results[n]
		f.dtensors[n], f.locals[n] = like.whole, like.local
		if like.sizes == nil {
			return shapes.Unknown{}
		}
		return like.sizes
	}
	of, t := tensor(0)
	if rule == "" || t == nil && rule != "input" && rule != "output" {
		return shapes.Unknown{}
	}
	for _, kw := range kwargs {
		if _, plain := kw.Value.(shapes.Bool); !plain && kw.Name != "placements" {
			return shapes.Unknown{} // such as another dtype
		}
	}
	switch rule {
	case "same":
		if f.dtensors[of] != nil {
			return shapes.Unknown{}
		}
		f.locals[n] = true
		return t
	case "full":
		f.locals[n] = true
		return t
	case "local":
		f.locals[n] = true
		return o.localPart(t, f.dtensors[of])
	case "redistribute":
		f.dtensors[n] = &dtensor{placements: o.placementsArg(n, 2)}
		if k > 1 {
			f.dtensors[n].mesh = o.nodeArg(n, 1)
		} else if d := f.dtensors[of]; d != nil {
			f.dtensors[n].mesh = d.mesh
		}
		return t
	case "whole":
		return o.wholeOf(n, of, t, o.nodeArg(n, 1), o.placementsArg(n, 2), o.placementsArg(n, 2))
	case "input": // (input_layouts, [desired_input_layouts,] module, inputs, mesh)
		of, t = tensor(k - 2)
		if t == nil || k < 4 {
			return shapes.Unknown{}
		}
		return o.wholeOf(n, of, t, o.nodeArg(n, k-1), o.placementsArg(n, 0), o.placementsArg(n, k-4))
	case "output": // ([output_layouts,] use_local_output, module, outputs, mesh)
		of, t = tensor(k - 2)
		if t == nil || k < 4 {
			return shapes.Unknown{}
		}
		d := f.dtensors[of]
		if k == 5 {
			d = &dtensor{o.nodeArg(n, k-1), o.placementsArg(n, 0)}
		}
		if args[k-4] == shapes.Bool(true) {
			f.locals[n] = true
			return o.localPart(t, d)
		}
		f.dtensors[n] = d
		return t
	}
	return shapes.Unknown{}
}

// wholeOf returns the DTensor that is made of what each rank holds, with the placements `made`, and then redistributed
// to the placements `placed`. A DTensor keeps its shape.
func (o *OutputGraph) wholeOf(n, of *fxgraph.Node, t *shapes.Tensor, mesh *fxgraph.Node,
	made, placed py.Object) shapes.Value {
	f := &o.foreign
	f.dtensors[n] = &dtensor{mesh, placed}
	if f.dtensors[of] != nil {
		return t
	}
	if of.Foreign && !f.locals[of] {
		return shapes.Unknown{}
	}
	parts, ok := o.parts(&dtensor{mesh, made}, len(t.Shape))
	if !ok {
		return shapes.Unknown{}
	}
	whole := *t
	whole.Shape = make([]sym.Size, len(parts))
	for i, n := range parts {
		if whole.Shape[i] = o.world.Env().Mul(t.Shape[i], sym.Const(n)); whole.Shape[i].IsUnknown() {
			return shapes.Unknown{}
		}
	}
	return &whole
}

// localPart returns what a rank holds of a DTensor. It is known if all ranks hold equally much.
func (o *OutputGraph) localPart(t *shapes.Tensor, d *dtensor) shapes.Value {
	parts, ok := o.parts(d, len(t.Shape))
	if !ok {
		return shapes.Unknown{}
	}
	env, local := o.world.Env(), *t
	local.Shape = make([]sym.Size, len(parts))
	for i, n := range parts {
		local.Shape[i] = t.Shape[i]
		if n == 1 {
			continue
		}
		even, ok := env.Decide(env.Eq(env.Mod(t.Shape[i], sym.Const(n)), sym.Const(0)), o.userLine())
		if local.Shape[i] = env.FloorDiv(t.Shape[i], sym.Const(n)); !ok || !even || local.Shape[i].IsUnknown() {
			return shapes.Unknown{}
		}
	}
	return &local
}

// parts returns into how many parts each of a DTensor's dimensions is split. A guard checks the mesh.
func (o *OutputGraph) parts(d *dtensor, dims int) ([]int64, bool) {
	if !d.known() {
		return nil, false
	}
	mesh, ok := o.python.example[d.mesh]
	if !ok {
		return nil, false
	}
	s := o.scope
	m, ok := py.Answered(s.Import("godynamo._translator.foreign"))
	if !ok {
		return nil, false
	}
	found, ok := py.Answered(s.CallMethod(m, "parts", d.placements, mesh, s.Int(int64(dims))))
	if !ok || found.Kind() != py.Tuple {
		return nil, false
	}
	var out []int64
	for _, it := range s.Items(found) {
		n, _ := py.AsInt(it)
		out = append(out, n)
	}
	if v := o.python.objects[d.mesh]; v != nil {
		o.AddGuards(guards.IDMatch(v.Source(), o.Const(mesh), guards.KeepWeak))
	}
	return out, true
}

// nodeArg returns the node that is a positional argument, or nil.
func (o *OutputGraph) nodeArg(n *fxgraph.Node, i int) *fxgraph.Node {
	if i >= len(n.Args) {
		return nil
	}
	node, _ := n.Args[i].(*fxgraph.Node)
	return node
}

// placementsArg returns the argument `placements`, which is at a position or a keyword, if it is a constant.
func (o *OutputGraph) placementsArg(n *fxgraph.Node, i int) py.Object {
	var a fxgraph.Arg
	if i < len(n.Args) {
		a = n.Args[i]
	}
	for _, kw := range n.Kwargs {
		if kw.Name == "placements" {
			a = kw.Value
		}
	}
	if a == nil {
		return py.Object{}
	}
	constant := true
	fxgraph.EachNode(a, func(*fxgraph.Node) { constant = false })
	if !constant {
		return py.Object{}
	}
	found, _ := py.Answered(argObject(o.scope, a, o.pool, o.refClass()))
	return found
}

// ForeignKind implements variables.Output. An AsyncCollectiveTensor is waited for by each operation that does not
// return a view of it, and the result of such an operation is plain.
func (o *OutputGraph) ForeignKind(n *fxgraph.Node) string {
	o.byRule(n)
	f := &o.foreign
	switch {
	case n.Op == fxgraph.Placeholder:
		return ""
	case f.dtensors[n] != nil:
		return "whole"
	case !f.locals[n]:
		return ""
	case !f.isSpecial(n) && o.world.MakesNew(o.scope, n.Target.Text):
		return "plain"
	}
	return "local"
}
