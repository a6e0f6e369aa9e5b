package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// attributeResult returns the tracker of o, an attribute that CPython read from a known object. o existed before the
// read, unlike a computed result. So a tuple keeps its identity, and a mutable object must not be copied.
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
	case py.GetSet, py.Member, py.Property: // a method-wrapper can be bound to these kinds
		return NewConstant(o, nil), nil
	case py.List, py.Dict:
		return nil, unsupported(exc.AttrUnsupported, "%s, a %s that already exists", name, py.TypeName(o.Type()))
	}
	return immutableResult(tx, o)
}

// sameTuple reports whether two tuples are the same object. The identity of existing tuples is known. Of the tuples
// that the program makes, only empty ones are identical to each other.
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
