package variables

import (
	"cmp"
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// torch.autograd.backward and torch.autograd.grad are operations of the graph, as Tensor.backward is. The gradients
// that grad returns have the sizes and dtypes of its inputs; FakeTensor computes their strides, and whether they
// require gradients. With allow_unused=True, the translation predicts which of them are None. An operation after the
// call checks this.

// backwardPass is one pass through autograd's graph, as the program calls it.
type backwardPass struct {
	fn     py.Object // torch.autograd's function; the null object for Tensor.backward
	name   string
	roots  []*TensorVariable
	inputs []*TensorVariable // the only tensors that get gradients; nil if all leaves do
	args   []VariableTracker // the operation's arguments
	kwargs []Kw
	// maybeNone is set if gradients that torch.autograd.grad returns may be None.
	maybeNone bool
	// batch is the tensor whose first dimension all gradients have, with is_grads_batched=True.
	batch   *TensorVariable
	batched bool
	// createsGraph is set if the pass is recorded, so that hooks run in grad mode.
	createsGraph bool
}

// passParameters lists the parameters of the functions that start a pass.
var passParameters = map[string][]string{
	"Tensor.backward": {"self", "gradient", "retain_graph", "create_graph", "inputs"},
	"torch.autograd.backward": {"tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables",
		"inputs"},
	"torch.autograd.grad": {"outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs",
		"allow_unused", "is_grads_batched", "materialize_grads"},
}

// oddArguments is why a pass is not captured if its arguments are wrong, rare, or not known.
const oddArguments = "with such arguments"

// newPass returns the pass of a call. It returns a graph break for arguments that are not captured.
func newPass(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw) (*backwardPass, error) {
	p := &backwardPass{fn: fn, name: name}
	names := passParameters[name]
	given := make([]VariableTracker, len(names))
	copy(given, args)
	for _, kw := range kwargs {
		i := slices.Index(names, kw.Name)
		if i < 0 || given[i] != nil {
			return nil, p.refused(oddArguments)
		}
		given[i] = kw.Value
	}
	switch whole := tx.Output().WholeGraph(); {
	case len(args) > len(names) || given[0] == nil || !whole && tx.World().Calls > 0:
		return nil, p.refused(oddArguments)
	case whole:
		if err := p.apart(tx, given); err != nil {
			return nil, err
		}
		return nil, p.refused("under a backend that compiles whole graphs")
	}
	for i, v := range given {
		if v == nil {
			continue
		}
		v, err := p.argument(tx, i, names[i], v)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			p.args = []VariableTracker{v}
		} else {
			p.kwargs = append(p.kwargs, Kw{Name: names[i], Value: v})
		}
	}
	return p, nil
}

// apart notes what a pass that runs after a whole graph needs of the history of the graph's results.
func (p *backwardPass) apart(tx Translator, given []VariableTracker) error {
	passed := MustRealize(tx, given[0])
	if p.returns() {
		passed = nil
	}
	tx.Output().ReadsHistory(passed)
	for i, name := range passParameters[p.name] {
		if given[i] == nil || name != "inputs" && name != "create_graph" {
			continue
		}
		if c, constant := AsConstant(tx, given[i]); constant && c != py.True() {
			continue
		}
		if name == "create_graph" || holdsComputed(tx, given[i]) {
			return tx.Output().NeedsHistory()
		}
	}
	return nil
}

// holdsComputed reports whether v is a tensor that the graph has computed, or a container of such tensors.
func holdsComputed(tx Translator, v VariableTracker) bool {
	items := []VariableTracker{v}
	if c, ok := MustRealize(tx, v).(Container); ok {
		items = c.Children()
	}
	return slices.ContainsFunc(items, func(v VariableTracker) bool {
		if v == nil {
			return false
		}
		t, ok := MustRealize(tx, v).(*TensorVariable)
		return ok && t.Src == nil
	})
}

func (p *backwardPass) refused(why string) error {
	return unsupported(exc.UnknownResult, "%s %s", p.name, why)
}

// argument returns the operation's argument for a parameter. Iterables become tuples, as in torch.
func (p *backwardPass) argument(tx Translator, i int, name string, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	switch name {
	case "self", "tensors", "outputs", "inputs":
		if name == "inputs" && isNone(v) {
			return v, nil
		}
		ts, err := p.tensors(tx, v, false)
		if err != nil || len(ts) == 0 {
			return nil, cmp.Or(err, p.refused("of no tensor"))
		}
		if name == "inputs" {
			p.inputs = ts
		} else if p.roots = ts; name == "self" {
			return v, nil
		}
		return tupleOf(ts), nil
	case "gradient", "grad_tensors", "grad_outputs":
		ts, err := p.tensors(tx, v, true)
		if i := slices.IndexFunc(ts, func(t *TensorVariable) bool { return t != nil }); i >= 0 {
			p.batch = ts[i]
		}
		if isNone(v) || IsTensor(v) {
			return v, err
		}
		return tupleOf(ts), err
	}
	c, constant := AsConstant(tx, v)
	on := c == py.True()
	switch {
	case !constant || c != pyNone && c != py.False() && !on,
		on && (name == "is_grads_batched" && p.batch == nil || name == "grad_variables"),
		!on && name == "only_inputs", c == py.False() && name == "grad_variables":
		return nil, p.refused(oddArguments)
	}
	p.createsGraph = p.createsGraph || on && name == "create_graph"
	p.batched = p.batched || on && name == "is_grads_batched"
	p.maybeNone = p.maybeNone || on && name == "allow_unused"
	if on && name == "materialize_grads" {
		p.maybeNone = false
	}
	return v, nil
}

// returns reports whether the pass returns the gradients.
func (p *backwardPass) returns() bool { return p.name == "torch.autograd.grad" }

// tensors returns the tensors of an argument: one, or several in an iterable. If optional is set, an item may be None.
func (p *backwardPass) tensors(tx Translator, v VariableTracker, optional bool) ([]*TensorVariable, error) {
	items := []VariableTracker{v}
	if !IsTensor(v) && !isNone(v) {
		switch v.(type) {
		case *DictVariable, *SetVariable, *ConstantVariable: // for a dict, torch returns a dict
			return nil, p.refused(oddArguments)
		}
		var err error
		if items, err = Unpack(tx, v); err != nil {
			return nil, err
		}
	}
	out := make([]*TensorVariable, len(items))
	for i, it := range items {
		it, err := Realize(tx, it)
		if err != nil {
			return nil, err
		}
		t, tensor := it.(*TensorVariable)
		if (!tensor || !t.plain(tx)) && !(optional && isNone(it)) {
			return nil, p.refused("of " + Describe(tx, it))
		}
		out[i] = t
	}
	return out, nil
}

// tupleOf returns a tuple of tensors, with None for nil.
func tupleOf(ts []*TensorVariable) VariableTracker {
	items := make([]VariableTracker, len(ts))
	for i, t := range ts {
		if items[i] = t; t == nil {
			items[i] = NoneConst()
		}
	}
	return NewTuple(items, nil)
}

// startsPass handles a call of torch.autograd.backward or torch.autograd.grad.
func (t *TorchVariable) startsPass(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	p, err := newPass(tx, t.Fn, t.detail, args, kwargs)
	if err != nil {
		return nil, err
	}
	tx.Output().AddGuards(guards.GlobalState())
	if on, err := tx.World().TorchFunctionModeActive(tx.Scope()); err != nil || on {
		return nil, cmp.Or(err, p.refused("under a function mode"))
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return nil, cmp.Or(err, p.refused("under a function mode"))
	}
	if p.returns() {
		return p.gradients(tx)
	}
	return p.accumulate(tx)
}

// expectedZero handles a call of a function whose result the graph expects to be 0. It returns False. If the result is
// another number, the frames go on in CPython with it.
func (t *TorchVariable) expectedZero(tx Translator, name string, args []VariableTracker) (VariableTracker, error) {
	node, err := tx.Output().CallForeign(tx, t.Fn, "godynamo.found_infinite", args, nil)
	if err != nil {
		return nil, err
	}
	check, err := checkOf(tx, "as_expected")
	if err != nil {
		return nil, err
	}
	result := BoolConst(false)
	_, err = tx.Output().CallLeaving(tx, check, "godynamo.as_expected", []VariableTracker{NewForeign(node, "")},
		Leaving{Result: result, Node: node, Why: name})
	return result, err
}

// gradients adds a call of torch.autograd.grad.
func (p *backwardPass) gradients(tx Translator) (VariableTracker, error) {
	b, leaves, err := p.leaves(tx)
	if err != nil {
		return nil, err
	}
	out, none := tx.Output(), NewTuple(nil, nil)
	first, err := callCheck(tx, "before", append([]VariableTracker{NewTuple(leaves, nil), none}, b.others...))
	if err != nil {
		return nil, err
	}
	found, err := out.CallForeign(tx, p.fn, p.name, p.args, p.kwargs)
	if err != nil {
		return nil, err
	}
	given, flags := make([]bool, len(p.inputs)), make([]VariableTracker, len(p.inputs))
	for i, t := range p.inputs {
		given[i] = !p.maybeNone || b.reached[t.Node]
		flags[i] = BoolConst(given[i])
	}
	result, gradients := NewTuple(nil, nil), NewForeign(found, "")
	fn, err := checkOf(tx, "after_grad")
	if err != nil {
		return nil, err
	}
	operands := []VariableTracker{NewForeign(first, ""), gradients, NewTuple(flags, nil), tupleOf(p.inputs)}
	var batch *fxgraph.Node
	if p.batched {
		operands, batch = append(operands, p.batch), p.batch.Node
	}
	_, err = out.CallLeaving(tx, fn, "godynamo.after_grad", operands,
		Leaving{Result: result, Node: found, Why: p.name})
	if err != nil {
		return nil, err
	}
	for i, t := range p.inputs {
		if !given[i] {
			result.items = append(result.items, NoneConst())
			continue
		}
		n, err := out.CallFunction(tx, tx.World().Operator("getitem"), "godynamo.item",
			[]VariableTracker{gradients, IntConst(tx, i)}, nil)
		if err != nil {
			return nil, err
		}
		n.Item = true
		out.Declare(n, Declared{Like: t.Node, Gradient: true, Of: found, Batch: batch})
		result.items = append(result.items, NewTensor(n))
	}
	return result, nil
}
