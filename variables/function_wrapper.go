package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// unwrap returns the attribute `name` of a wrapper written in C (a static or class method, a property, a partial, a
// callable of godynamo), or the zero Object if it is unset. It returns an error if the attribute is not a member of the
// wrapper's C struct. The wrapper's type is guarded, and each call reads the attribute again. So the entry refers
// neither to the wrapper nor to the wrapped object: both live as long as in CPython, and the entry also serves other
// wrappers of the same code.
func unwrap(tx Translator, wrapper py.Object, src guards.Source, name string) (py.Object, guards.Source, error) {
	s, out := tx.Scope(), tx.Output()
	member, ok := s.TypeLookup(wrapper.Type(), name)
	if !ok || member.Kind() != py.Member {
		return py.Object{}, nil, unsupported(exc.AttrUnsupported, "%s of a %s", name, py.TypeName(wrapper.Type()))
	}
	out.AddGuards(guards.TypeMatch(src, out.Const(wrapper.Type())))
	v, off, ok := s.MemberValue(member, wrapper)
	if !ok {
		return py.Object{}, nil, nil
	}
	return v, guards.NewSlotSource(src, name, off), nil
}

// inherits reports whether class inherits name from base.
func inherits(tx Translator, class, base py.Object, name string) bool {
	own, _ := tx.Scope().TypeLookup(class, name)
	theirs, ok := tx.Scope().TypeLookup(base, name)
	return ok && own == theirs
}

// unwrapped returns the tracker of a wrapper's attribute `name` (see unwrap), or nil if it is unset.
func unwrapped(tx Translator, wrapper py.Object, src guards.Source, name string) (VariableTracker, error) {
	v, from, err := unwrap(tx, wrapper, src, name)
	if err != nil || v.IsNull() {
		return nil, err
	}
	return tx.Build(v, from), nil
}

// getProperty calls a property's getter. ok is false unless the getter is a Python function.
func getProperty(tx Translator, self VariableTracker, property py.Object,
	src guards.Source) (v VariableTracker, ok bool, err error) {
	get, from, err := unwrap(tx, property, src, "fget")
	if err != nil || get.IsNull() || get.Kind() != py.Function && get.Type() != tx.World().cacheWrapper {
		return nil, false, err
	}
	v, err = Call(tx, tx.Build(get, from), []VariableTracker{self}, nil)
	return v, true, err
}

// chained rejects a classmethod that wraps a descriptor other than a function. CPython 3.9 to 3.12 would call that
// descriptor's `__get__`.
func chained(tx Translator, name string, d py.Object) error {
	if d.Kind() != py.ClassMethod {
		return nil
	}
	fn, err := tx.Scope().GetAttr(d, "__func__")
	if err != nil {
		return observed(err)
	}
	if get, _ := py.Descriptor(fn); get && fn.Kind() != py.Function && fn.Type() != tx.World().cacheWrapper {
		return unsupported(exc.AttrUnsupported, "%s: a classmethod of a %s", name, py.TypeName(fn.Type()))
	}
	return nil
}
