package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// A class that the frame makes with collections.namedtuple is a new class in each call. A template of it, which CPython
// makes while translating, says what the translation must know. Nothing may refer to the template at run time: where
// the class or an instance leaves the frame, the transformed function calls namedtuple, once in each call.

// madeClass is how the transformed function makes a class of the frame: fn(*args, **kwargs), with constants.
type madeClass struct {
	fn     py.Object
	args   []py.Object
	kwargs []string // the names of the last arguments
	step   int      // the step of the outermost frame at which the class is made
}

// ClassMadeAt returns the step of the outermost frame at which the frame makes the class with this template, or 0.
func (w *World) ClassMadeAt(template py.Object) int {
	if c := w.MadeClass(template); c != nil {
		return c.maker.step
	}
	return 0
}

// makeNamedTuple handles a call of collections.namedtuple.
func (t *TorchVariable) makeNamedTuple(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	m := &madeClass{fn: t.Fn, step: tx.Output().Step()}
	named := false
	for _, v := range append(append([]VariableTracker(nil), args...), KwValues(kwargs)...) {
		o, ok := PlainCopy(tx, v)
		if !ok || w.Calls > 0 {
			return nil, nil
		}
		m.args = append(m.args, o)
	}
	for _, kw := range kwargs {
		named = named || kw.Name == "module"
		m.kwargs = append(m.kwargs, kw.Name)
	}
	if !named { // the function reads it from the caller's frame
		name, ok := s.DictGetName(tx.Globals(), "__name__")
		if !ok {
			return nil, nil
		}
		v, err := Realize(tx, tx.Build(name, tx.GlobalSource("__name__")))
		if err != nil {
			return nil, err
		}
		if name, ok = AsConstant(tx, v); !ok || name.Kind() != py.Str {
			return nil, nil
		}
		m.args, m.kwargs = append(m.args, name), append(m.kwargs, "module")
	}
	class, err := s.CallKw(t.Fn, m.args, m.kwargs)
	if err != nil {
		return nil, observed(err)
	}
	c := &ClassVariable{Class: class, maker: m}
	w.made = append(w.made, c)
	w.Local = "a class that the frame makes"
	tx.Output().AddGuards(guards.IDMatch(classSource(tx, class), tx.Output().Const(class), guards.KeepStrong))
	return c, nil
}

// MadeClass returns the tracker of a class that the frame makes, given its template, or nil for other objects.
func (w *World) MadeClass(class py.Object) *ClassVariable {
	for _, c := range w.made {
		if c.Class == class {
			return c
		}
	}
	return nil
}

// MakesClasses reports whether the program has made a class.
func (w *World) MakesClasses() bool { return len(w.made) > 0 }

// ofMadeClass reports whether a template of a class has this function. The class that the frame makes has another one.
func (w *World) ofMadeClass(tx Translator, fn py.Object) bool {
	for _, c := range w.made {
		values, ok := py.Answered(tx.Scope().Call(w.classValues, c.Class))
		if !ok {
			return true
		}
		for _, v := range tx.Scope().Items(values) {
			if v == fn {
				return true
			}
		}
	}
	return false
}

// reconstruct emits the call that makes the class.
func (m *madeClass) reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(m.fn)
	for _, o := range m.args {
		if err := loadPlain(e, o); err != nil {
			return err
		}
	}
	e.Call(len(m.args), m.kwargs)
	return nil
}

// loadPlain emits code that makes a copy of plain data.
func loadPlain(e Emitter, o py.Object) error {
	switch o.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Str:
		e.LoadConst(o)
		return nil
	case py.List, py.Tuple:
		s := py.OpenScope()
		defer s.Close()
		items := s.Items(o)
		for _, it := range items {
			if err := loadPlain(e, it); err != nil {
				return err
			}
		}
		if o.Kind() == py.List {
			e.BuildList(len(items))
		} else {
			e.BuildTuple(len(items))
		}
		return nil
	}
	return unsupported(exc.Reconstruct, "a class made with a %s", py.TypeName(o.Type()))
}
