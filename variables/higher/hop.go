package higher

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// hopForm describes the arguments of one of torch's higher-order operators. Its numbers are positions of arguments. The
// operator calls its functions with these tensors, in order: those of `whole`, slices of those of `sliced`, those of
// `behind`.
type hopForm struct {
	functions []int // the functions
	whole     []int // lists of tensors that are passed unchanged
	sliced    []int // lists of tensors whose slices along the first dimension are passed
	twice     bool  // whether the slices are passed twice
	behind    []int // lists of tensors that are passed unchanged, after the slices
	outside   int   // the argument that holds the tensors that functions read from outside
	unused    bool  // whether tensors that no function reads are operands as well
}

var hopForms = map[string]hopForm{
	"cond":             {functions: []int{1, 2}, whole: []int{3}, outside: 3},
	"while_loop":       {functions: []int{0, 1}, whole: []int{2}, outside: 3, unused: true},
	"scan":             {functions: []int{0}, whole: []int{1}, sliced: []int{2}, outside: 3, unused: true},
	"associative_scan": {functions: []int{0}, sliced: []int{1}, twice: true, outside: 2, unused: true},
	"map_impl":         {functions: []int{0}, sliced: []int{1}, behind: []int{2}, outside: 2, unused: true},
}

// hopCall is a call of a higher-order operator that is being translated.
type hopCall struct {
	*higher
	op       string // the operator's name: cond, scan, ...
	form     hopForm
	args     []variables.VariableTracker
	fs       []*function // the captured functions, in the order of form.functions
	random   string      // "_random" if a function draws random numbers
	operands []hopOperand
	sliced   int      // number of tensors of which each call of the function gets a slice
	turns    sym.Size // number of these slices
}

// hop implements a call of one of torch's higher-order operators (torch.cond, scan, ...). The call becomes an operation
// whose functions are graphs, as in torch.compile. Eager mode does the same, since torch runs these operators through
// torch.compile there as well. A call that torch.compile rejects breaks the graph.
func hop(tx variables.Translator, t *variables.TorchVariable, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	text, err := tx.Scope().GetAttr(t.Fn, "_name")
	if err != nil {
		return nil, err
	}
	op := py.GoString(text)
	h, err := newHigher(tx, "torch.ops.higher_order."+op)
	if err != nil {
		return nil, err
	}
	if op == "wrap" && len(args) > 0 {
		return variables.Call(tx, args[0], args[1:], kwargs) // as in eager mode
	}
	if op == "flex_attention" {
		return h.flexAttention(t, args, kwargs)
	}
	c, err := h.newHopCall(op, args, kwargs)
	if err != nil {
		return nil, err
	}
	if c.op == "cond" {
		branch, operands, err := c.knownBranch()
		if err != nil {
			return nil, err
		}
		if branch != nil {
			return variables.Call(tx, branch, operands, nil)
		}
	}
	if err := c.translateFunctions(); err != nil {
		return nil, err
	}
	if err := c.collectOperands(); err != nil {
		return nil, err
	}
	node, err := c.nodeArgs()
	if err != nil {
		return nil, err
	}
	r, err := variables.CallBodies(tx, t.Fn, c.name+c.random, node, nil)
	if err != nil {
		return nil, err
	}
	return c.results(r)
}

// newHopCall returns the state of a call of an operator. It refuses operators without a hopForm, and arguments that do
// not match the form.
func (h *higher) newHopCall(name string, args []variables.VariableTracker,
	kwargs []variables.Kw) (*hopCall, error) {
	if len(kwargs) == 1 && kwargs[0].Name == "additional_inputs" {
		args, kwargs = append(slices.Clone(args), kwargs[0].Value), nil
	}
	form, known := hopForms[name]
	out, loop := h.tx.Output(), name == "while_loop" && !h.tx.World().Exporting
	if loop && out.WholeGraph() && !out.RunsUnchanged() {
		return nil, h.refused("in a graph for a backend, whose fake tensors may have no symbols")
	}
	if !known || len(kwargs) > 0 || len(args) < form.outside+1 {
		return nil, h.refused("with these arguments")
	}
	return &hopCall{higher: h, op: name, form: form, args: args}, nil
}

// knownBranch returns the function that a cond calls and its arguments, if the condition is known. If it is a tensor or
// not decided, branch is nil.
func (c *hopCall) knownBranch() (branch variables.VariableTracker, operands []variables.VariableTracker, err error) {
	pred, err := variables.Realize(c.tx, c.args[0])
	if err != nil {
		return nil, nil, err
	}
	if x, ok := pred.(*variables.TensorVariable); ok {
		if c.tx.World().Exporting { // the operation checks it when torch.export traces it
			return nil, nil, nil
		}
		if m, err := x.Sizes(c.tx); err != nil || !oneElement(c.tx, m.Shape) {
			return nil, nil, c.refused("on a tensor of several elements")
		}
		x.Need(c.tx, "shape")
		return nil, nil, nil
	}
	if variables.IsUndecided(pred) {
		return nil, nil, nil
	}
	if k, ok := pred.(*variables.ConstantVariable); ok {
		if err := c.tx.Output().LeaveUndecided(k); err != nil {
			return nil, nil, err
		}
	}
	yes, err := variables.Truth(c.tx, pred)
	if err != nil {
		return nil, nil, err
	}
	if operands, err = variables.Unpack(c.tx, c.args[3]); err != nil {
		return nil, nil, err
	}
	if yes {
		return c.args[1], operands, nil
	}
	return c.args[2], operands, nil
}

// translateFunctions captures a graph for each function of the call.
func (c *hopCall) translateFunctions() error {
	given, first, end, err := c.form.given(c.higher, c.args)
	if err != nil {
		return err
	}
	if c.sliced = end - first; c.sliced > 0 {
		m, err := variables.MustRealize(c.tx, given[first]).(*variables.TensorVariable).Sizes(c.tx)
		if err != nil {
			return err
		}
		c.turns = m.Shape[0]
	}
	c.tx.Output().AddGuards(guards.GlobalState())
	c.fresh = true
	for _, i := range c.form.functions {
		f, err := c.keptFunction(c.args[i], given, nil,
			func(i int, x *variables.TensorVariable) (*variables.TensorVariable, error) {
				if i >= first && i < end {
					return c.like(x, "first_slice")
				}
				return c.like(x, "stand_in")
			})
		if err != nil {
			return err
		}
		if !f.plain && (c.op != "cond" || !c.tx.World().Exporting) { // torch accepts ints in an export only
			return c.refused("of a function that returns more than tensors")
		}
		if f.body.Draws {
			c.random = "_random"
		}
		c.fs = append(c.fs, f)
	}
	if c.op == "cond" {
		if same, err := c.alike(c.fs[0].results, c.fs[1].results); err != nil || !same {
			return c.refused("of functions that return different structures or numbers")
		}
	}
	return nil
}

// collectOperands collects the tensors that the graphs take. It refuses tensors that share memory.
func (c *hopCall) collectOperands() error {
	c.operands = c.form.operands(c.fs)
	if c.form.unused && !c.form.distinct(c.operands) {
		return c.refused("on one tensor twice")
	}
	tensors := slices.DeleteFunc(trackersOf(c.operands, true), func(v variables.VariableTracker) bool {
		return !variables.IsTensor(v)
	})
	if own, err := c.tx.Output().OwnMemory(tensors); err != nil || !own {
		return c.refused("on tensors that share memory")
	}
	return nil
}

// nodeArgs returns the arguments of the operation in the graph.
func (c *hopCall) nodeArgs() ([]variables.VariableTracker, error) {
	node := make([]variables.VariableTracker, 0, len(c.args))
	for i, a := range c.args {
		v, err := c.nodeArg(i, a)
		if err != nil {
			return nil, err
		}
		node = append(node, v)
	}
	return node, nil
}

// nodeArg returns the operation's argument for `a`, the i-th argument of the call. A function is replaced by its graph.
// The argument at form.outside is extended by the tensors that functions read from outside.
func (c *hopCall) nodeArg(i int, a variables.VariableTracker) (variables.VariableTracker, error) {
	switch {
	case slices.Contains(c.form.functions, i):
		bare := c.op == "while_loop" && i == 0 // while_loop's condition returns a tensor, other functions a tuple
		return c.subgraph(c.fs[slices.Index(c.form.functions, i)], bare)
	case i == c.form.outside && c.op == "cond":
		return variables.NewTuple(trackersOf(c.operands, true), nil), nil
	case i == c.form.outside:
		before, err := variables.Unpack(c.tx, a)
		if err != nil {
			return nil, err
		}
		return variables.NewTuple(append(slices.Clone(before), trackersOf(c.operands, false)...), nil), nil
	}
	return a, nil
}

// subgraph returns the module that runs a function's graph on the operands. If bare is true, the module returns a
// tensor instead of a tuple.
func (c *hopCall) subgraph(f *function, bare bool) (variables.VariableTracker, error) {
	s := c.tx.Scope()
	order := make([]py.Object, len(c.operands))
	for k, o := range c.operands {
		order[k] = o.placesIn(s, f)
	}
	gm, err := s.CallMethod(c.module, "subgraph", f.body.Rows, s.Tuple(order...), boolObject(bare))
	if err != nil {
		return nil, err
	}
	return variables.NewConstant(gm, nil), nil
}

// results returns the outputs of the operation, arranged in the structure that the last function returns.
func (c *hopCall) results(r variables.VariableTracker) (variables.VariableTracker, error) {
	outputs, err := variables.Unpack(c.tx, r)
	if err != nil {
		return nil, err
	}
	c.giveSizes(outputs)
	at := 0
	shaped, ok, err := mapLeaves(c.tx, c.fs[len(c.fs)-1].results,
		func(leaf variables.VariableTracker) (variables.VariableTracker, bool, error) {
			if !variables.IsTensor(leaf) { // a constant that each function returns; see alike
				return leaf, true, nil
			}
			if at++; at > len(outputs) {
				return nil, false, nil
			}
			return outputs[at-1], true, nil
		})
	if err == nil && (!ok || at != len(outputs)) {
		err = c.refused("with these results")
	}
	return shaped, err
}

// giveSizes sets the sizes of the operation's outputs, as far as they follow from those that the functions return.
func (c *hopCall) giveSizes(outputs []variables.VariableTracker) {
	found := c.fs[len(c.fs)-1].body.Sizes
	if len(found) != len(outputs) {
		return
	}
	for i, v := range outputs {
		x, ok := v.(*variables.TensorVariable)
		if t, known := found[i].(*shapes.Tensor); ok && known && t != nil {
			if t = c.sizesOfOutput(i, t); t != nil {
				c.tx.Output().GiveSizes(x.Node, t)
			}
		}
	}
}

// sizesOfOutput returns the sizes of the i-th output. result has those that the last function returns. It returns nil
// if the output's sizes may be others.
func (c *hopCall) sizesOfOutput(i int, result *shapes.Tensor) *shapes.Tensor {
	carried := 0 // outputs that each call of the function passes to the next
	switch c.op {
	case "cond":
		if other, ok := c.fs[0].body.Sizes[i].(*shapes.Tensor); !ok || !c.equalSizes(result, other) {
			return nil
		}
		return result
	case "while_loop":
		carried = len(c.fs[1].body.Sizes)
	case "scan":
		carried = len(c.fs[0].tensors) - c.sliced
	case "associative_scan": // an output is as large as its operand
		return nil
	}
	if i < carried {
		t := c.fs[len(c.fs)-1].tensors[i].(*variables.TensorVariable)
		if m, ok := c.tx.Output().Sizes(t); !ok || !c.equalShapes(m.Shape, result.Shape) {
			return nil
		}
		return result
	}
	out := *result
	out.Shape = append([]sym.Size{c.turns}, result.Shape...)
	return &out
}

// equalSizes reports whether two results have equal sizes, dtypes and devices in every call for which this translation
// is valid.
func (c *hopCall) equalSizes(a, b *shapes.Tensor) bool {
	return b != nil && a.Dtype == b.Dtype && a.Device == b.Device && c.equalShapes(a.Shape, b.Shape)
}

func (c *hopCall) equalShapes(a, b []sym.Size) bool {
	env := c.tx.World().Env()
	return slices.EqualFunc(a, b, func(x, y sym.Size) bool { return env.Simplify(x) == env.Simplify(y) })
}

func oneElement(tx variables.Translator, shape []sym.Size) bool {
	sizes, err := variables.SpecialiseAll(tx, shape)
	return err == nil && !slices.ContainsFunc(sizes, func(n int) bool { return n != 1 })
}

// given returns the arguments with which the functions are called. The arguments at the indices first to end-1 are
// tensors; each call gets a slice of them.
func (form hopForm) given(h *higher,
	args []variables.VariableTracker) (given []variables.VariableTracker, first, end int, err error) {
	for _, i := range form.whole {
		items, err := variables.Unpack(h.tx, args[i])
		if err != nil {
			return nil, 0, 0, err
		}
		given = append(given, items...)
	}
	first = len(given)
	for _, i := range form.sliced {
		items, err := variables.Unpack(h.tx, args[i])
		if err != nil {
			return nil, 0, 0, err
		}
		for _, it := range items {
			x, ok := variables.MustRealize(h.tx, it).(*variables.TensorVariable)
			if !ok {
				return nil, 0, 0, h.refused("over " + variables.Describe(h.tx, it))
			}
			if m, err := x.Sizes(h.tx); err != nil || len(m.Shape) == 0 || variables.IsEmpty(h.tx, m.Shape[0]) {
				return nil, 0, 0, h.refused("over nothing")
			}
			x.Need(h.tx, "shape")
		}
		given = append(given, items...)
		if form.twice {
			given = append(given, items...)
		}
	}
	end = len(given)
	for _, i := range form.behind {
		items, err := variables.Unpack(h.tx, args[i])
		if err != nil {
			return nil, 0, 0, err
		}
		given = append(given, items...)
	}
	_, ok, err := mapLeaves(h.tx, variables.NewTuple(given, nil),
		func(leaf variables.VariableTracker) (variables.VariableTracker, bool, error) {
			return leaf, variables.IsTensor(leaf), nil
		})
	if err == nil && !ok {
		err = h.refused("with more than tensors")
	}
	if err != nil {
		return nil, 0, 0, err
	}
	return given, first, end, nil
}

// hopOperand is a value that every graph takes. It is one or several leaves of the arguments, which are tensors, or a
// tensor or size that a function reads from outside.
type hopOperand struct {
	v      variables.VariableTracker
	leaves []int
}

// is reports whether the operand is the value v.
func (o hopOperand) is(v variables.VariableTracker) bool {
	t, isT := o.v.(*variables.TensorVariable)
	u, isU := v.(*variables.TensorVariable)
	return o.v == v || isT && isU && t.Node == u.Node
}

// placesIn returns the indices of the placeholders that receive this operand in the graph of f.
func (o hopOperand) placesIn(s *py.Scope, f *function) py.Object {
	var out []py.Object
	for _, l := range o.leaves {
		out = append(out, s.Int(int64(l)))
	}
	for i, v := range f.body.Free {
		if o.is(v) {
			out = append(out, s.Int(int64(len(f.tensors)+i)))
		}
	}
	return s.Tuple(out...)
}

func trackersOf(operands []hopOperand, leaves bool) []variables.VariableTracker {
	var out []variables.VariableTracker
	for _, o := range operands {
		if leaves || len(o.leaves) == 0 {
			out = append(out, o.v)
		}
	}
	return out
}

func (form hopForm) operands(fs []*function) []hopOperand {
	var out []hopOperand
	add := func(v variables.VariableTracker, leaf int) {
		at := slices.IndexFunc(out, func(o hopOperand) bool { return o.is(v) })
		if at < 0 || form.unused && leaf >= 0 {
			at = len(out)
			out = append(out, hopOperand{v: v})
		}
		if leaf >= 0 {
			out[at].leaves = append(out[at].leaves, leaf)
		}
	}
	for i, t := range fs[0].tensors {
		if form.unused || slices.ContainsFunc(fs, func(f *function) bool { return f.body.Uses[i] }) {
			add(t, i)
		}
	}
	for _, f := range fs {
		for _, v := range f.body.Free {
			add(v, -1)
		}
	}
	return out
}

// distinct reports whether each tensor occurs only once among operands. A tensor may occur twice if the form passes
// slices twice.
func (form hopForm) distinct(operands []hopOperand) bool {
	nodes := map[*fxgraph.Node]int{}
	for _, o := range operands {
		if t, ok := o.v.(*variables.TensorVariable); ok {
			nodes[t.Node]++
		}
	}
	limit := 1
	if form.twice {
		limit = 2
	}
	for _, n := range nodes {
		if n > limit {
			return false
		}
	}
	return true
}

// alike reports whether the results a and b of two functions have the same structure and the same ints. It returns
// false if they have other constants.
func (h *higher) alike(a, b variables.VariableTracker) (bool, error) {
	var texts [2]string
	for i, v := range []variables.VariableTracker{a, b} {
		var constants []variables.VariableTracker
		shape, ok, err := mapLeaves(h.tx, variables.NewTuple([]variables.VariableTracker{v}, nil),
			func(leaf variables.VariableTracker) (variables.VariableTracker, bool, error) {
				if variables.IsTensor(leaf) {
					return variables.BoolConst(true), true, nil
				}
				constants = append(constants, leaf)
				c, known := variables.AsConstant(h.tx, leaf)
				return variables.BoolConst(false), known && c.Kind() == py.Int, nil // as in torch
			})
		if err != nil || !ok {
			return false, err
		}
		known, ok := plainOption(h.tx, variables.NewTuple([]variables.VariableTracker{shape,
			variables.NewTuple(constants, nil)}, nil))
		if !ok {
			return false, nil
		}
		texts[i] = h.tx.Scope().Repr(known)
	}
	return texts[0] == texts[1], nil
}
