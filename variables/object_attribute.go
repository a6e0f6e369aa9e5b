package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// attributeResult is the tracker of an attribute that CPython found on a known object. Unlike a computed result the
// value existed before: a tuple is that very tuple, and a mutable object must not be copied.
func attributeResult(tx Translator, o py.Object, name string) (VariableTracker, error) {
	switch o.Kind() {
	case py.Tuple:
		items := tx.Scope().Items(o)
		out := make([]VariableTracker, len(items))
		for i, it := range items {
			v, err := attributeResult(tx, it, name)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return NewKnownTuple(out, o), nil
	case py.TypeKind, py.TypeSub:
		return wrapKnown(tx, o), nil
	case py.Module:
		return NewModule(o, constSource(tx, o, "___module")), nil
	case py.MethodWrapper:
		if self, ok := tx.World().BoundSelf(tx.Scope(), o); ok &&
			(self.Kind() == py.GetSet || self.Kind() == py.Property) {
			return NewBuiltin(o, "", nil), nil
		}
	case py.GetSet, py.Member, py.Property: // what a method-wrapper is bound to
		return NewConstant(o, nil), nil
	case py.List, py.Dict:
		return nil, unsupported(exc.AttrUnsupported, "%s, a %s that already exists", name, py.TypeName(o.Type()))
	}
	return immutableResult(tx, o)
}

// sameTuple is identity of two tuples: those that were there before are known, and of those that the program makes only
// the empty one is one with another.
func sameTuple(tx Translator, a, b *TupleVariable) (bool, error) {
	switch {
	case len(a.items) == 0 && len(b.items) == 0 && a.class.IsNull() && b.class.IsNull():
		return true, nil
	case !a.real.IsNull() && !b.real.IsNull():
		return a.real == b.real, nil
	case !a.real.IsNull() && b.Src != nil, !b.real.IsNull() && a.Src != nil:
		return false, unsupported(exc.OperatorUnsupported, "identity of %s and %s", Describe(tx, a), Describe(tx, b))
	case a.Src != nil && b.Src != nil:
		tx.Output().AddGuards(noAlias(a.Src, b.Src))
	}
	return false, nil
}
