package variables

import (
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// notCaptured is the reason for World.Local where another array of this place could be captured.
const notCaptured = "a numpy array breaks the graph, and no guard says why"

// arrayTensor returns torch.from_numpy(array) for an array that was passed to the frame. The tensor shares the array's
// memory. The transformed function makes the tensor before it runs the graph, and passes it to the graph as an input.
// The array's layout is guarded, but not its contents. Making the tensor reads no data, so the position of the call
// does not matter.
func arrayTensor(tx Translator, fn py.Object, array VariableTracker) (VariableTracker, error) {
	s, w, out := tx.Scope(), tx.World(), tx.Output()
	l, ok := array.(*LazyVariable)
	if !ok || l.Realized() || l.Src == nil || l.obj.Type() != w.arrayType || w.PythonOps {
		return nil, unsupported(exc.CallUnsupported, "torch.from_numpy of %s", Describe(tx, array))
	}
	if err := withoutModes(tx, "torch.from_numpy"); err != nil {
		return nil, err
	}
	if on, err := w.TorchFunctionModeActive(s); err != nil || on {
		return nil, unsupported(exc.TensorSubclass, "a torch function mode is active")
	}
	parts, err := s.Call(w.arrayShared, l.obj)
	if err != nil {
		return nil, observed(err)
	}
	if parts == pyNone {
		w.Local = notCaptured
		return nil, unsupported(exc.CallUnsupported, "torch.from_numpy of an array that it may reject")
	}
	example, same := s.Items(parts)[0], s.Items(parts)[1]
	out.AddGuards(guards.GlobalState(), guards.TypeMatch(l.Src, out.Const(w.arrayType)),
		guards.PyCheck(l.Src, out.Const(same), "has the same layout"))
	slot, err := out.Compute(tx, []VariableTracker{l}, false, func(e Emitter) error {
		return EmitCall(e, fn, []VariableTracker{l})
	})
	if err != nil {
		return nil, err
	}
	return out.ComputedInput(slot, example), nil
}

// arrayKey returns the key of a tensor's item. It replaces arrays that were passed to the frame by tensors, as torch
// does, which copies each array in a key to a tensor.
func arrayKey(tx Translator, obj, key VariableTracker) (VariableTracker, error) {
	t, ok := obj.(*TensorVariable)
	if !ok || !t.Class.IsNull() && t.Class != tx.World().ParameterType {
		return key, nil
	}
	if tuple, ok := key.(*TupleVariable); ok && tuple.Src == nil && tuple.class.IsNull() && tuple.real.IsNull() {
		items := tuple.items
		for i, item := range tuple.items {
			v, err := arrayIndex(tx, item)
			if err != nil {
				return nil, err
			}
			if v != item {
				items = slices.Clone(items)
				items[i] = v
			}
		}
		return NewTuple(items, nil), nil
	}
	return arrayIndex(tx, key)
}

// arrayIndex returns the tensor for an array that was passed to the frame and is used as an index. It returns v for
// other values, and for arrays that torch does not accept as a one-dimensional index.
func arrayIndex(tx Translator, v VariableTracker) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	if a, ok := Chosen(v).(*ArrayVariable); ok && !w.PythonOps {
		return a.index(tx)
	}
	l, ok := v.(*LazyVariable)
	if !ok || l.Realized() || l.Src == nil || l.obj.Type() != w.arrayType || w.PythonOps {
		return v, nil
	}
	how, err := indexMethod(tx, l.obj)
	if err != nil {
		return nil, err
	}
	if how == "" {
		w.Local = notCaptured
		return v, nil
	}
	torch, err := s.Import("torch")
	if err != nil {
		return nil, err
	}
	fn, err := s.GetAttr(torch, "from_numpy")
	if err != nil {
		return nil, err
	}
	shared, err := arrayTensor(tx, fn, l)
	if err != nil {
		return nil, err
	}
	node, err := tx.Output().CallMethod(tx, how, []VariableTracker{shared}, nil)
	if err != nil {
		return nil, err
	}
	return NewTensor(node), nil
}

// indexMethod returns the name of the method that converts an array, as a tensor, to an index. It returns "" for arrays
// that torch reads in another way.
func indexMethod(tx Translator, array py.Object) (string, error) {
	numpy, err := tx.Scope().Import("godynamo._translator.numpy")
	if err != nil {
		return "", err
	}
	how, err := tx.Scope().CallMethod(numpy, "index_method", array)
	if err != nil || how == pyNone {
		return "", err
	}
	return py.GoString(how), nil
}
