package variables

import (
	"strings"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// torch's operations on lists of tensors (torch._foreach_add, torch._fused_adam_) are nodes of the graph. Optimizers
// use them by default on accelerators, and clip_grad_norm_ everywhere.

// OnLists reports whether an operation, given by its name in graphs, is on lists of tensors.
func OnLists(operation string) bool {
	return strings.HasPrefix(operation, "torch._foreach_") || strings.HasPrefix(operation, "torch._fused_") ||
		operation == unscale
}

// unscale divides the gradients in a list by GradScaler's scale, and counts those that are infinite in its second
// argument, a tensor.
const unscale = "torch._amp_foreach_non_finite_check_and_unscale_"

func isInPlace(operation string) bool { return strings.HasSuffix(operation, "_") }

// foreach adds such an operation. decided is false for other functions.
func (t *TorchVariable) foreach(tx Translator, name string, args []VariableTracker, kwargs []Kw) (r VariableTracker,
	decided bool, err error) {
	if !OnLists(name) {
		return nil, false, nil
	}
	lists := make([][]*TensorVariable, len(args))
	for i, a := range args {
		if lists[i], err = tensorsOf(tx, a); err != nil {
			return nil, true, err
		}
	}
	inPlace := isInPlace(name)
	if len(args) == 0 || lists[0] == nil || inPlace && tx.Output().WholeGraph() {
		return nil, true, unsupported(exc.UnknownResult, "%s", name)
	}
	if !inPlace {
		r, err = graphCall(tx, t.Fn, name, args, kwargs, result{givesTensors, len(lists[0])})
		return r, true, err
	}
	node, err := tx.Output().CallFunction(tx, t.Fn, name, args, kwargs)
	if err != nil {
		return nil, true, err
	}
	node.Inplace = true
	if found, ok := arg(args, 1).(*TensorVariable); ok && name == unscale {
		found.change()
	}
	if strings.HasPrefix(name, "torch._foreach_") {
		lists = lists[:1] // the others are only read
	}
	for _, tensors := range lists {
		for _, x := range tensors {
			x.change()
		}
	}
	m, err := tx.Scope().Import("godynamo._translator.callables")
	if err != nil {
		return nil, true, err
	}
	gives, err := tx.Scope().CallMethod(m, "foreach_gives_list")
	if err != nil || gives != py.True() || !strings.HasPrefix(name, "torch._foreach_") {
		return NoneConst(), true, err
	}
	r, err = Realize(tx, args[0])
	return r, true, err
}

// tensorsOf returns the tensors of a list, or nil for anything but a list of plain tensors.
func tensorsOf(tx Translator, v VariableTracker) ([]*TensorVariable, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case *ListVariable, *TupleVariable, *TensorSequence:
	default:
		return nil, nil
	}
	items, err := v.(Sequence).Items(tx)
	if err != nil {
		return nil, err
	}
	tensors := make([]*TensorVariable, len(items))
	for i, it := range items {
		if it, err = Realize(tx, it); err != nil {
			return nil, err
		}
		x, ok := it.(*TensorVariable)
		if !ok || x.foreign() || !x.Class.IsNull() && x.Class != tx.World().ParameterType {
			return nil, nil
		}
		tensors[i] = x
	}
	return tensors, nil
}
