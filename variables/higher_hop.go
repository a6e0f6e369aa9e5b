package variables

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// hopForm is how one of torch's higher-order operators calls its functions, and where it takes the tensors that they read from outside.
type hopForm struct {
	functions []int // which arguments are functions
	whole     []int // arguments that are lists of tensors, handed on as they are
	sliced    []int // lists of tensors of which the functions get slices along the first dimension, behind the others
	twice     bool  // and once more
	behind    []int // lists of tensors, handed on as they are, behind the slices
	outside   int   // the argument that takes what they read from outside
	unused    bool  // what no function reads is an operand all the same
}

var hopForms = map[string]hopForm{
	"cond":             {functions: []int{1, 2}, whole: []int{3}, outside: 3},
	"while_loop":       {functions: []int{0, 1}, whole: []int{2}, outside: 3, unused: true},
	"scan":             {functions: []int{0}, whole: []int{1}, sliced: []int{2}, outside: 3, unused: true},
	"associative_scan": {functions: []int{0}, sliced: []int{1}, twice: true, outside: 2, unused: true},
	"map_impl":         {functions: []int{0}, sliced: []int{1}, behind: []int{2}, outside: 2, unused: true},
}

// hop is a call of a higher-order operator of torch's (torch.cond, scan, ...): an operation whose functions are graphs, as torch.compile makes
// them. In eager mode torch runs these operators through torch.compile too; what that refuses is split.
func (t *TorchVariable) hop(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	s := tx.Scope()
	text, err := s.GetAttr(t.Fn, "_name")
	if err != nil {
		return nil, err
	}
	name := py.GoString(text)
	h, err := newHigher(tx, "torch.ops.higher_order."+name)
	if err != nil {
		return nil, err
	}
	if len(kwargs) == 1 && kwargs[0].Name == "additional_inputs" {
		args, kwargs = append(slices.Clone(args), kwargs[0].Value), nil
	}
	form, known := hopForms[name]
	if name == "while_loop" && tx.Output().WholeGraph() {
		return nil, h.refused("in a graph for a backend, whose fake tensors may have no symbols")
	}
	if !known || len(kwargs) > 0 || len(args) < form.outside+1 {
		return nil, h.refused("with these arguments")
	}
	if name == "cond" {
		pred, err := Realize(tx, args[0])
		if err != nil {
			return nil, err
		}
		if x, ok := pred.(*TensorVariable); ok {
			if m, err := x.Sizes(tx); err != nil || !oneElement(m.Shape) {
				return nil, h.refused("on a tensor of several elements")
			}
			x.need(tx, "shape")
		} else {
			yes, err := Truth(tx, pred)
			if err != nil {
				return nil, err
			}
			operands, err := Unpack(tx, args[3])
			if err != nil {
				return nil, err
			}
			return Call(tx, args[map[bool]int{true: 1, false: 2}[yes]], operands, nil)
		}
	}
	given, first, end, err := form.given(h, args)
	if err != nil {
		return nil, err
	}
	tx.Output().AddGuards(guards.GlobalState())
	h.fresh = true
	var fs []*function
	random := ""
	for _, i := range form.functions {
		f, err := h.keptFunction(args[i], given, nil, func(i int, x *TensorVariable) (*TensorVariable, error) {
			if i >= first && i < end {
				return h.like(x, "first_slice")
			}
			return h.like(x, "stand_in")
		})
		if err != nil {
			return nil, err
		}
		if !f.plain {
			return nil, h.refused("of a function that returns more than tensors")
		}
		if f.body.Draws {
			random = "_random"
		}
		fs = append(fs, f)
	}
	if name == "cond" {
		if same, err := h.alike(fs[0].results, fs[1].results); err != nil || !same {
			return nil, h.refused("of functions that return other things")
		}
	}
	operands := form.operands(fs)
	if form.unused && !form.distinct(operands) {
		return nil, h.refused("on one tensor twice")
	}
	if own, err := tx.Output().OwnMemory(trackersOf(operands, true)); err != nil || !own {
		return nil, h.refused("on tensors that share memory")
	}
	node := make([]VariableTracker, 0, len(args))
	for i, a := range args {
		switch {
		case slices.Contains(form.functions, i):
			f := fs[slices.Index(form.functions, i)]
			order := make([]py.Object, len(operands))
			for k, o := range operands {
				order[k] = o.placesIn(s, f)
			}
			bare := boolObject(name == "while_loop" && i == 0) // the condition gives one tensor, the others tuples
			gm, err := s.CallMethod(h.module, "subgraph", f.body.Rows, s.Tuple(order...), bare)
			if err != nil {
				return nil, err
			}
			node = append(node, NewConstant(gm, nil))
		case i == form.outside && name == "cond":
			node = append(node, NewTuple(trackersOf(operands, true), nil))
		case i == form.outside:
			before, err := Unpack(tx, a)
			if err != nil {
				return nil, err
			}
			node = append(node, NewTuple(append(slices.Clone(before), trackersOf(operands, false)...), nil))
		default:
			node = append(node, a)
		}
	}
	r, err := callAllowed(tx, t.Fn, h.name+random, node, nil)
	if err != nil {
		return nil, err
	}
	outputs, err := Unpack(tx, r)
	if err != nil {
		return nil, err
	}
	at := 0
	shaped, ok, err := mapLeaves(tx, fs[len(fs)-1].results, func(VariableTracker) (VariableTracker, bool, error) {
		if at++; at > len(outputs) {
			return nil, false, nil
		}
		return outputs[at-1], true, nil
	})
	if err == nil && (!ok || at != len(outputs)) {
		err = h.refused("with these results")
	}
	return shaped, err
}

func oneElement(shape []int) bool {
	for _, n := range shape {
		if n != 1 {
			return false
		}
	}
	return true
}

// given are the arguments of the functions; the leaves first .. end-1 are slices of them.
func (form hopForm) given(h *higher, args []VariableTracker) (given []VariableTracker, first, end int, err error) {
	for _, i := range form.whole {
		items, err := Unpack(h.tx, args[i])
		if err != nil {
			return nil, 0, 0, err
		}
		given = append(given, items...)
	}
	first = len(given)
	for _, i := range form.sliced {
		items, err := Unpack(h.tx, args[i])
		if err != nil {
			return nil, 0, 0, err
		}
		for _, it := range items {
			x, ok := mustRealize(h.tx, it).(*TensorVariable)
			if !ok {
				return nil, 0, 0, h.refused("over " + Describe(h.tx, it))
			}
			if m, err := x.Sizes(h.tx); err != nil || len(m.Shape) == 0 || m.Shape[0] == 0 {
				return nil, 0, 0, h.refused("over nothing")
			}
			x.need(h.tx, "shape")
		}
		given = append(given, items...)
		if form.twice {
			given = append(given, items...)
		}
	}
	end = len(given)
	for _, i := range form.behind {
		items, err := Unpack(h.tx, args[i])
		if err != nil {
			return nil, 0, 0, err
		}
		given = append(given, items...)
	}
	_, ok, err := mapLeaves(h.tx, NewTuple(given, nil), func(leaf VariableTracker) (VariableTracker, bool, error) { return leaf, isTensor(leaf), nil })
	if err == nil && !ok {
		err = h.refused("with more than tensors")
	}
	if err != nil {
		return nil, 0, 0, err
	}
	return given, first, end, nil
}

// hopOperand is a tensor that each of the graphs takes: a leaf of the arguments (or several), or one that a function reads from outside.
type hopOperand struct {
	v      *TensorVariable
	leaves []int
}

// placesIn are its placeholders in the graph of a function.
func (o hopOperand) placesIn(s *py.Scope, f *function) py.Object {
	var out []py.Object
	for _, l := range o.leaves {
		out = append(out, s.Int(int64(l)))
	}
	for i, v := range f.body.Free {
		if v.(*TensorVariable).Node == o.v.Node {
			out = append(out, s.Int(int64(len(f.tensors)+i)))
		}
	}
	return s.Tuple(out...)
}

func trackersOf(operands []hopOperand, leaves bool) []VariableTracker {
	var out []VariableTracker
	for _, o := range operands {
		if leaves || len(o.leaves) == 0 {
			out = append(out, o.v)
		}
	}
	return out
}

func (form hopForm) operands(fs []*function) []hopOperand {
	var out []hopOperand
	add := func(v VariableTracker, leaf int) {
		t := v.(*TensorVariable)
		at := slices.IndexFunc(out, func(o hopOperand) bool { return o.v.Node == t.Node })
		if at < 0 || form.unused && leaf >= 0 {
			at = len(out)
			out = append(out, hopOperand{v: t})
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

// distinct tells whether no tensor is there twice, but for those that a scan takes slices of for both of its arguments.
func (form hopForm) distinct(operands []hopOperand) bool {
	nodes := map[*fxgraph.Node]int{}
	for _, o := range operands {
		nodes[o.v.Node]++
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

// alike tells whether two functions return the same structure.
func (h *higher) alike(a, b VariableTracker) (bool, error) {
	x, err := h.skeleton([]VariableTracker{a})
	if err != nil {
		return false, err
	}
	y, err := h.skeleton([]VariableTracker{b})
	if err != nil {
		return false, err
	}
	return h.tx.Scope().Repr(x) == h.tx.Scope().Repr(y), nil
}
