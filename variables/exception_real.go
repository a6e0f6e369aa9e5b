package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file handles real exceptions: those that existed before the frame ran, for example the current exception after a
// graph break inside a handler. They differ from call to call. Their texts are computed at run time, and only the types
// of their arguments are guarded.

// realException returns v if it is a real exception, and whether it is one.
func realException(tx Translator, v VariableTracker) (*ObjectVariable, bool) {
	o, ok := v.(*ObjectVariable)
	return o, ok && o.exc == nil && !o.Obj.IsNull() && o.Src != nil && py.IsSubtype(o.Class, tx.World().BaseException)
}

// exceptionParts returns (class, object, traceback) of an exception, which sys.exc_info() returns and __exit__
// receives.
func exceptionParts(tx Translator, o *ObjectVariable) ([]VariableTracker, error) {
	if _, ok := realException(tx, o); !ok {
		return []VariableTracker{NewClass(o.Class, nil), o, NewTraceback(o)}, nil
	}
	tb, err := o.GetAttr(tx, "__traceback__")
	return []VariableTracker{NewClass(o.Class, nil), o, tb}, err
}

// ExitArguments returns the arguments of __exit__ for an exception. It breaks the graph for an exception that the
// translated code made and that has been materialized.
func ExitArguments(tx Translator, e VariableTracker) ([]VariableTracker, error) {
	o, ok := e.(*ObjectVariable)
	if _, real := realException(tx, e); !ok || Materialized(o) && !real {
		return nil, unsupported(exc.CallUnsupported, "__exit__ with %s", Describe(tx, e))
	}
	return exceptionParts(tx, o)
}

// hasPlainText reports whether str() or repr() of a real exception runs no user code. It checks the exception and its
// arguments.
func hasPlainText(tx Translator, o *ObjectVariable, method string) (bool, error) {
	s, w := tx.Scope(), tx.World()
	d, _ := s.TypeLookup(o.Class, method)
	base, _ := s.TypeLookup(w.BaseException, method)
	key, _ := s.TypeLookup(w.Builtin("KeyError"), method)
	args, _ := s.TypeLookup(o.Class, "args")
	if own, _ := s.TypeLookup(w.BaseException, "args"); d != base && d != key || args != own {
		return false, nil
	}
	a, err := o.plainAttr(tx, "args")
	if err != nil {
		return false, err
	}
	if a, err = Realize(tx, a); err != nil {
		return false, err
	}
	t, ok := a.(*TupleVariable)
	if !ok || !t.class.IsNull() {
		return false, nil
	}
	for _, it := range t.items {
		l, lazy := it.(*LazyVariable)
		if !lazy {
			return false, nil
		}
		switch l.obj.Kind() {
		case py.Float, py.Str, py.Bytes, py.BoolKind, py.NoneKind:
		case py.Int: // str() of an int with many digits raises
			if n, ok := py.AsInt(l.obj); !ok || n == 0 {
				return false, nil
			}
		default:
			return false, nil
		}
		l.GuardType(tx)
	}
	return true, nil
}

// exceptionTextOf implements str and repr of a real exception. It returns false for other values.
func exceptionTextOf(tx Translator, v VariableTracker, name string) (VariableTracker, bool, error) {
	o, ok := realException(tx, v)
	if !ok || name != "str" && name != "repr" {
		return nil, false, nil
	}
	if plain, err := hasPlainText(tx, o, "__"+name+"__"); err != nil || !plain {
		return nil, false, err
	}
	fn := tx.World().Builtin(name)
	r, err := compute(tx, tx.World().Builtin("str"), []VariableTracker{o}, func(e Emitter) error {
		return EmitCall(e, fn, []VariableTracker{o})
	})
	return r, true, err
}

// exceptionFormat implements format() of a real exception after a conversion. It returns false for other values.
func exceptionFormat(tx Translator, v VariableTracker, conversion, spec string) (VariableTracker, bool, error) {
	o, ok := realException(tx, v)
	if !ok || conversion == "ascii" || conversion == "" && spec != "" {
		return nil, false, nil
	}
	if d, _ := tx.Scope().TypeLookup(o.Class, "__format__"); conversion == "" && !tx.World().IsObjectMethod(tx.Scope(),
		"__format__", d) {
		return nil, false, nil
	}
	if conversion == "" {
		conversion = "str"
	}
	r, ok, err := exceptionTextOf(tx, o, conversion)
	if err != nil || !ok || spec == "" {
		return r, ok, err
	}
	r, err = computedFormat(tx, r.(*ComputedVariable), "", spec)
	return r, true, err
}

// realOrNotNone realizes v for a comparison with other. If v cannot be tracked and other is None, it guards v's type
// and returns nil: the type shows that v is not None.
func realOrNotNone(tx Translator, v, other VariableTracker) (VariableTracker, error) {
	r, err := Realize(tx, v)
	l, lazy := v.(*LazyVariable)
	if _, broken := err.(*exc.Unsupported); !broken || !lazy || l.obj.Kind() == py.NoneKind ||
		!isNone(MustRealize(tx, other)) {
		return r, err
	}
	l.GuardType(tx)
	return nil, nil
}

// isNone reports whether v is the constant None.
func isNone(v VariableTracker) bool {
	c, ok := v.(*ConstantVariable)
	return ok && c.Value == pyNone
}
