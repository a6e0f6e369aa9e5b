package variables

// CallsTorchEqual reports whether v is torch.equal.
func CallsTorchEqual(w *World, v VariableTracker) bool {
	switch x := v.(type) {
	case *LazyVariable:
		return x.Peek() == w.TorchEqual
	case *TorchVariable:
		return x.Fn == w.TorchEqual
	}
	return false
}

// OnePlainTensor returns the tensor if both values are one tensor whose operations no handler of the program sees, else
// nil.
func OnePlainTensor(tx Translator, a, b VariableTracker) (*TensorVariable, error) {
	first, err := Argument(tx, a)
	if err != nil {
		return nil, err
	}
	second, err := Argument(tx, b)
	if err != nil {
		return nil, err
	}
	t, ok := first.(*TensorVariable)
	if !ok || first != second || t.foreign() || !isPlainTensor(tx, t) {
		return nil, nil
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return nil, err
	}
	if on, err := tx.World().TorchFunctionModeActive(tx.Scope()); err != nil || on {
		return nil, err
	}
	return t, nil
}
