package variables

import "github.com/godynamo/godynamo/internal/exc"

// extremeAtRunTime computes min or max of values that are known at run time only, or returns nil.
func extremeAtRunTime(tx Translator, name string, items []VariableTracker) (VariableTracker, error) {
	if r, err := tensorOrInt(tx, name, items); r != nil || err != nil {
		return r, err
	}
	return extremeOfNumbers(tx, name, items, false)
}

// extremeUnordered computes min or max at run time if no guard can check the order of the items. Else it returns why.
func extremeUnordered(tx Translator, name string, items []VariableTracker, key VariableTracker,
	why error) (VariableTracker, error) {
	if _, breaks := why.(*exc.Unsupported); breaks && key == nil {
		if r, err := extremeOfNumbers(tx, name, items, true); r != nil || err != nil {
			return r, err
		}
	}
	return nil, why
}

// extremeOfNumbers computes min or max of numbers at run time, at least one of them computed. It returns nil for
// other values, and for numbers whose order guards may check, since they follow from floats and sizes passed to the
// frame. unordered says that no guard can.
func extremeOfNumbers(tx Translator, name string, items []VariableTracker, unordered bool) (VariableTracker, error) {
	if len(items) < 2 || tx.World().FixesSizes > 0 {
		return nil, nil
	}
	numbers := make([]VariableTracker, len(items))
	letters := map[byte]bool{}
	found, limit := false, int64(1)
	for i, it := range items {
		v, err := Argument(tx, it)
		if err != nil {
			return nil, err
		}
		switch x := v.(type) {
		case *ConstantVariable:
		case *ComputedVariable:
			if x.Node != nil || x.size != nil && !unordered {
				return nil, nil
			}
			found = found || x.passed == nil || unordered
		default:
			return nil, nil
		}
		letter, ok := arithmeticLetter(tx, v)
		if !ok || letter == 'b' || letter == 'i' && limitOf(v) == 0 {
			return nil, nil
		}
		numbers[i], letters[letter], limit = v, true, max(limit, limitOf(v))
	}
	if !found {
		return nil, nil
	}
	fn := tx.World().Builtin(name)
	tx.Output().Const(fn)
	class := map[bool]string{true: "int", false: "float"}[letters['i']]
	r, err := compute(tx, tx.World().Builtin(class), numbers, func(e Emitter) error { return EmitCall(e, fn, numbers) })
	if err != nil {
		return nil, err
	}
	switch {
	case len(letters) > 1 || letters['r']:
		r.Type, r.real = tx.World().Builtin("complex"), true
	case letters['i']:
		r.limit = limit
	}
	return r, nil
}

// arithmeticLetter returns what numberLetter does, or 'r' for an int or a float.
func arithmeticLetter(tx Translator, v VariableTracker) (byte, bool) {
	if x, ok := v.(*ComputedVariable); ok && x.real {
		return 'r', true
	}
	return numberLetter(tx, v)
}

// BecomeFloat makes v, a power of floats, a float. The transformed function has checked that it is one.
func (v *ComputedVariable) BecomeFloat(tx Translator) {
	v.Type, v.mixed = tx.World().Builtin("float"), false
}
