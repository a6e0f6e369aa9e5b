package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// StoreOfData is the graph's target of a store to tensor.data. Autograd does not record such a store.
const StoreOfData = "torch.Tensor.data.__set__"

// Stores maps the targets of stores to attributes of tensors to methods that change a tensor in the same way.
var Stores = map[string]string{StoreOfData: "set_", "torch.Tensor.requires_grad.__set__": "requires_grad_"}

func storeTarget(name string) string { return "torch.Tensor." + name + ".__set__" }

// setField handles `t.data = value` and `t.requires_grad = value`. The graph calls the __set__ method of d, torch's
// descriptor of the attribute, so an exception is the same as in eager mode. A graph that AOTAutograd would trace takes
// no such store, since traced tensors do not follow it. A store that changes nothing is left out of such a graph.
func (t *TensorVariable) setField(tx Translator, name string, d py.Object, value VariableTracker) error {
	refused := unsupported(exc.StoreUnsupported, "%s of a tensor", name)
	own, _ := tx.Scope().TypeLookup(tx.World().TensorType, name)
	if d != own || !t.plain(tx) || tx.World().Calls > 0 || tx.World().Exporting {
		return refused
	}
	value, err := Realize(tx, value)
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case *ConstantVariable:
		if name != "requires_grad" || v.Value.Kind() != py.BoolKind {
			return refused
		}
	case *TensorVariable:
		if name != "data" || !v.plain(tx) {
			return refused
		}
	default:
		return refused
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return refused
	}
	if err := t.mayChange(tx, Stores[storeTarget(name)]); err != nil {
		return err
	}
	if tx.Output().TakesApart() {
		if same, err := t.hasNoGrad(tx, name, value); err != nil || same {
			return err
		}
		return refused
	}
	set, args, err := setterOf(tx, name, d)
	if err != nil {
		return err
	}
	args = append(append([]VariableTracker{t}, args...), value)
	node, err := tx.Output().CallFunction(tx, set, storeTarget(name), args, nil)
	if err == nil {
		t.change()
		node.Inplace = true
	}
	return err
}

// hasNoGrad reports whether the store sets requires_grad of a tensor to False and the flag is False already. Such a
// store changes nothing. A store to a tensor with the flag may raise, since the tensor may be no leaf.
func (t *TensorVariable) hasNoGrad(tx Translator, name string, value VariableTracker) (bool, error) {
	if c, ok := value.(*ConstantVariable); name != "requires_grad" || !ok || c.Value != py.False() {
		return false, nil
	}
	flag, err := t.gradFlag(tx)
	if err != nil {
		return false, err
	}
	return flag.(*ConstantVariable).Value == py.False(), nil
}

// setterOf returns the function that a graph calls for a store to the attribute d, and its arguments between tensor and
// value. FX writes the source of a whole graph, so it needs a function with a name.
func setterOf(tx Translator, name string, d py.Object) (set py.Object, args []VariableTracker, err error) {
	if !tx.Output().WholeGraph() {
		set, err = tx.Scope().GetAttr(d, "__set__")
		return set, nil, err
	}
	m, err := tx.Scope().Import("builtins")
	if err != nil {
		return py.Object{}, nil, err
	}
	set, err = tx.Scope().GetAttr(m, "setattr")
	return set, []VariableTracker{StrConst(tx, name)}, err
}

// plain reports whether t is a torch.Tensor or nn.Parameter whose operations torch computes itself.
func (t *TensorVariable) plain(tx Translator) bool {
	class := t.class(tx)
	return !t.foreign() && (class == tx.World().TensorType || class == tx.World().ParameterType)
}
