package variables

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// callOperator is callWithDtypes, followed by a look at the operator's backward pass.
func (t *TorchVariable) callOperator(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	r, err := t.callWithDtypes(tx, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	return r, t.noteBackward(tx, name, args, kwargs, r)
}

// noteBackward records a call of an operator of torch.library.custom_op whose backward pass is the program's code, so
// that a later backward() finds out whether that code has side effects. r is the call's result.
func (t *TorchVariable) noteBackward(tx Translator, name string, args []VariableTracker, kwargs []Kw,
	r VariableTracker) error {
	if !strings.HasPrefix(name, "torch.ops.") || strings.HasPrefix(name, "torch.ops.aten.") {
		return nil
	}
	var node *fxgraph.Node
	switch r := r.(type) {
	case *TensorVariable:
		node = r.Node
	case *TensorSequence:
		node = r.Node
	default: // of several results that are dispatched, or none
		return nil
	}
	s := tx.Scope()
	m, err := s.Import("godynamo._translator.operators")
	if err != nil {
		return err
	}
	found, err := s.CallMethod(m, "backward_pass", t.Fn, s.Int(int64(len(args))), tx.World().names(s, KwNames(kwargs)))
	if err != nil || found == py.None() {
		return err
	}
	parts := s.Items(found)
	given := append(args[:len(args):len(args)], KwValues(kwargs)...)
	inputs := make([]VariableTracker, len(parts)-1)
	for i, place := range parts[1:] {
		if at, ok := py.AsInt(place); ok {
			inputs[i] = given[at]
		} else {
			inputs[i] = NewConstant(s.Items(place)[0], nil)
		}
	}
	look := func() error { return differentiateOperator(tx, parts[0], inputs, r) }
	return tx.Output().Custom(node, t.Fn, look, func() (bool, error) {
		may, err := s.CallMethod(m, "backward_may_change", parts[0])
		return may == py.False(), err
	})
}

// differentiateOperator calls setup_context and the backward pass of an operator. The guards compare both functions,
// since the program may register others later.
func differentiateOperator(tx Translator, definition py.Object, inputs []VariableTracker, r VariableTracker) error {
	operator := tx.Build(definition, guards.NewConstSource(tx.Output().Const(definition), "___operator"))
	backward, err := GetAttr(tx, operator, "_backward_fn")
	if err != nil {
		return err
	}
	setup, err := GetAttr(tx, operator, "_setup_context_fn")
	if err != nil {
		return err
	}
	return callAutograd(tx, "differentiate_operator", backward, setup, NewTuple(inputs, nil), r)
}

// callAutograd calls a function of godynamo/_polyfills/autograd.py.
func callAutograd(tx Translator, name string, args ...VariableTracker) error {
	m, err := tx.Scope().Import("godynamo._polyfills.autograd")
	if err != nil {
		return err
	}
	fn, err := tx.Scope().GetAttr(m, name)
	if err != nil {
		return err
	}
	call := NewFunction(fn, guards.NewConstSource(tx.Output().Const(fn), "___"+name))
	_, err = Call(tx, call, args, nil)
	return err
}
