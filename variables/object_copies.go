package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// copyOf returns a real object equal to v if all of v is known. It copies lists and dicts, which AsConstant does not.
// Use it only for operations whose result is a plain value (a text, a comparison), never a part of their arguments.
// Sets are not copied, since the copy would iterate in another order.
func copyOf(tx Translator, v VariableTracker) (py.Object, bool) {
	v, err := Realize(tx, v)
	if err != nil || tx.World().Enter() != nil {
		return py.Object{}, false
	}
	defer tx.World().Leave()
	if o, ok := AsConstant(tx, v); ok {
		return o, true
	}
	s := tx.Scope()
	switch x := v.(type) {
	case *ListVariable:
		items, ok := copiesOf(tx, x.items)
		return s.List(items...), ok
	case *TupleVariable:
		items, ok := copiesOf(tx, x.items)
		if !ok || x.class.IsNull() {
			return s.Tuple(items...), ok
		}
		looksFor(tx, x.class, heldSpecials...)
		for _, name := range heldSpecials {
			if d, has := s.TypeLookup(x.class, name); has && !ofTuples(tx, d) {
				return py.Object{}, false
			}
		}
		return py.Answered(s.CallMethod(tx.World().TupleType, "__new__", x.class, s.Tuple(items...)))
	case *DictVariable:
		return x.copyOf(tx)
	case *ShadowVariable:
		real, err := x.contents(tx)
		if err != nil {
			return py.Object{}, false
		}
		return py.Answered(s.Call(tx.World().shadowCopied, real))
	}
	return py.Object{}, false
}

func copiesOf(tx Translator, vs []VariableTracker) ([]py.Object, bool) {
	out := make([]py.Object, len(vs))
	for i, v := range vs {
		o, ok := copyOf(tx, v)
		if !ok {
			return nil, false
		}
		out[i] = o
	}
	return out, true
}

func (d *DictVariable) copyOf(tx Translator) (py.Object, bool) {
	pairs := make([][2]py.Object, len(d.keys))
	for i, k := range d.keys {
		v, found, err := d.get(tx, k)
		if err != nil || !found {
			return py.Object{}, false
		}
		key, ok := copyOf(tx, k)
		value, ok2 := copyOf(tx, v)
		if !ok || !ok2 {
			return py.Object{}, false
		}
		pairs[i] = [2]py.Object{key, value}
	}
	made, ok := py.Answered(tx.Scope().Dict(pairs...))
	if ok && !d.class.IsNull() {
		return py.Answered(tx.Scope().Call(d.class, made))
	}
	return made, ok
}

// plainResult wraps r, the result of a function that was called with copies. It breaks the graph unless r is a plain
// value, which cannot be a part of the copies.
func plainResult(tx Translator, r py.Object, what string) (VariableTracker, error) {
	switch r.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes, py.EllipsisKind, py.NotImplemented:
		return NewConstant(r, nil), nil
	}
	return nil, unsupported(exc.CallUnsupported, "%s of a container returns a %s", what, py.TypeName(r.Type()))
}

// ofTuples reports whether d is a method of tuple, or a method that namedtuple generates.
func ofTuples(tx Translator, d py.Object) bool {
	switch d.Kind() {
	case py.WrapperDescr, py.MethodDescr, py.Builtin:
		return true
	case py.Function:
		module, ok := py.Answered(tx.Scope().GetAttr(d, "__module__"))
		return ok && module.Kind() == py.Str && py.GoString(module) == "collections"
	}
	return false
}
