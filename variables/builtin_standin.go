package variables

import (
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// replacement is the Python function or class that is called in place of a C callable. See python/godynamo/_polyfills.
type replacement struct {
	fn   py.Object // zero if the C callable has no replacement
	fold bool      // whether CPython may call the C callable itself while translating, if all arguments are known
}

// polyfillName is the name of two marks. One is an attribute of the classes of godynamo._polyfills; its value is the
// role of the class. The other is a global of that package's modules.
const polyfillName = "__godynamo_polyfill__"

// IsPolyfill reports whether globals belong to a module of godynamo._polyfills, whose Python code replaces C code.
func (w *World) IsPolyfill(s *py.Scope, globals py.Object) bool {
	_, ok := s.DictGetName(globals, polyfillName)
	return ok
}

// polyfillMark returns the role of a class of godynamo._polyfills: "class" for a stand-in, or "end" or "decline" for
// the two classes that polyfills return as markers. It returns "" for all other classes.
func polyfillMark(tx Translator, class py.Object) string {
	v, ok := tx.Scope().TypeLookup(class, polyfillName)
	if !ok {
		return ""
	}
	return py.GoString(v)
}

// polyfillMarker returns "end" or "decline" if v is one of the two marker classes, else "". It does not realize v, so
// it adds no guard on a value of the user's program.
func polyfillMarker(tx Translator, v VariableTracker) string {
	var class py.Object
	switch x := v.(type) {
	case *ClassVariable:
		class = x.Class
	case *LazyVariable:
		if x.obj.Kind() != py.TypeKind || x.Src == nil || x.Src.GuardSource() != guards.SourcePolyfill {
			return ""
		}
		class = x.obj
	default:
		return ""
	}
	if m := polyfillMark(tx, class); m != "class" {
		return m
	}
	return ""
}

// constSource returns the source of an object that needs no guard.
func constSource(tx Translator, obj py.Object, text string) guards.Source {
	if obj.Kind() == py.Function {
		if globals, ok := tx.Scope().FunctionField(obj, py.FuncGlobals); ok &&
			tx.World().IsPolyfill(tx.Scope(), globals) {
			return guards.NewPolyfillSource(tx.Output().Const(obj))
		}
	}
	return guards.NewConstSource(tx.Output().Const(obj), text)
}

// OurOwn returns the real object of v and true if code of a polyfill read the object. Such an object never changes. For
// other values, OurOwn returns false.
func OurOwn(v VariableTracker) (py.Object, bool) {
	if v.Source() == nil || v.Source().GuardSource() != guards.SourcePolyfill {
		return py.Object{}, false
	}
	switch x := v.(type) {
	case *LazyVariable:
		return x.obj, true
	case *ClassVariable:
		return x.Class, true
	case *FunctionVariable:
		return x.Fn, true
	case *BuiltinVariable:
		return x.Fn, true
	}
	return py.Object{}, false
}

// NewBuiltinNamed returns the tracker of a builtin, by the name that it had when godynamo was loaded.
func NewBuiltinNamed(tx Translator, name string) VariableTracker {
	return wrapKnown(tx, tx.World().Builtin(name))
}

func (w *World) standInFor(s *py.Scope, fn py.Object) (replacement, error) {
	if r, ok := w.standIns[fn]; ok {
		return r, nil
	}
	v, err := s.Call(w.standIn, fn)
	if err != nil {
		return replacement{}, err
	}
	var r replacement
	if v != py.None() {
		parts := s.Items(v)
		r = replacement{parts[0], parts[1] == py.True()}
	}
	s.Hold(fn)
	w.standIns[fn] = r
	return r, nil
}

// callStandIn calls the Python function or class that replaces fn. It returns false if fn has no replacement. If the
// replacement returns the marker "decline", the graph breaks at the call.
func callStandIn(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	sub, err := tx.World().standInFor(tx.Scope(), fn)
	if err != nil || sub.fn.IsNull() {
		return nil, false, err
	}
	if sub.fold && !slices.ContainsFunc(args, func(v VariableTracker) bool { return holdsSize(tx, v) }) {
		if r, err := foldCall(tx, fn, args, kwargs); err == nil {
			return r, true, nil
		} else if _, unknown := err.(*exc.Unsupported); !unknown {
			return nil, true, err
		}
	}
	var target VariableTracker
	if sub.fn.Kind() == py.Function {
		target = NewFunction(sub.fn, constSource(tx, sub.fn, "___substitute"))
	} else {
		target = wrapKnown(tx, sub.fn)
	}
	r, err := Call(tx, target, args, kwargs)
	if err == nil && polyfillMarker(tx, r) == "decline" {
		err = unsupported(exc.CallUnsupported, "%s", tx.Scope().Repr(fn))
	}
	if err != nil {
		return nil, true, err
	}
	if asSymNode(tx, r) == nil { // Realize makes a constant of a size
		r, err = Realize(tx, r)
	}
	return r, true, err
}

// callPolyfill calls a function of godynamo._polyfills, named "module.function".
func callPolyfill(tx Translator, name string, args ...VariableTracker) (VariableTracker, error) {
	fn, err := tx.Scope().Call(tx.World().polyfill, tx.Scope().Name(name))
	if err != nil {
		return nil, err
	}
	r, err := Call(tx, NewFunction(fn, constSource(tx, fn, "")), args, nil)
	if err == nil && polyfillMarker(tx, r) == "decline" {
		err = unsupported(exc.CallUnsupported, "%s", name)
	}
	return r, err
}

// wrapStandIn returns the stand-in for an existing immutable object of a C type, such as operator.itemgetter(1). It
// returns nil if the type has no stand-in.
func wrapStandIn(tx Translator, obj py.Object, src guards.Source) (VariableTracker, error) {
	s := tx.Scope()
	how, err := s.Call(tx.World().standInObject, obj)
	if err != nil {
		return nil, observed(err)
	}
	if how == py.None() {
		return nil, nil
	}
	parts := s.Items(how)
	known := func(o py.Object) (VariableTracker, error) {
		if !isImmutable(tx, o) {
			return nil, unsupported(exc.UntrackedObject, "%s with a %s", py.TypeName(obj.Type()), py.TypeName(o.Type()))
		}
		return NewConstant(o, nil), nil
	}
	var args []VariableTracker
	for _, a := range s.Items(parts[1]) {
		v, err := known(a)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	var kwargs []Kw
	keys, values := s.DictItems(parts[2])
	for i, k := range keys {
		v, err := known(values[i])
		if err != nil {
			return nil, err
		}
		kwargs = append(kwargs, Kw{py.GoString(k), v})
	}
	v, err := Call(tx, NewFunction(parts[0], constSource(tx, parts[0], "")), args, kwargs)
	if err != nil {
		return nil, err
	}
	v.base().Src = src
	return v, nil
}

// StandInVariable is an object of a C type that the translated code made, such as an itertools iterator. While
// translating, a polyfill represents the object: an instance of a class of godynamo._polyfills. If the object must
// exist at run time, the polyfill's method `_escape` returns a callable and arguments. Calling it makes a real object
// in the same state.
type StandInVariable struct {
	Base
	real   py.Object         // the C type
	state  *ObjectVariable   // the polyfill instance that represents the object
	recipe []VariableTracker // a callable and its arguments, set by Settle
	shares bool              // the state stays valid when there is a real object (StandIn.__shares__)
	madeAt int               // the step of the outermost frame at which it was made
}

// StandInIterator is a stand-in that is an iterator.
type StandInIterator struct{ StandInVariable }

type standIn interface {
	VariableTracker
	parts() *StandInVariable
}

// newStandIn wraps an instance of a polyfill class. The class names the C type in its attribute __real__.
func newStandIn(tx Translator, state *ObjectVariable) (VariableTracker, error) {
	real, ok := tx.Scope().TypeLookup(state.Class, "__real__")
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(state.Class))
	}
	_, shares := tx.Scope().TypeLookup(state.Class, "__shares__")
	s := StandInVariable{real: real, state: state, madeAt: tx.Output().Step(), shares: shares}
	if _, ok := tx.Scope().TypeLookup(state.Class, "_next"); ok {
		return &StandInIterator{s}, nil
	}
	return &s, nil
}

func (s *StandInVariable) parts() *StandInVariable { return s }

// Kind implements VariableTracker.
func (*StandInVariable) Kind() string { return "StandInVariable" }

// Children implements Container.
func (s *StandInVariable) Children() []VariableTracker {
	if s.recipe != nil {
		return s.recipe[1:]
	}
	return s.state.Children()
}

// PythonType implements Typed.
func (s *StandInVariable) PythonType(Translator) (py.Object, error) { return s.real, nil }

// Truth implements Truther.
func (s *StandInVariable) Truth(tx Translator) (bool, error) {
	for _, name := range []string{"__bool__", "__len__"} {
		if _, ok := tx.Scope().TypeLookup(s.real, name); ok {
			return false, unsupported(exc.OperatorUnsupported, "truth of a %s", py.TypeName(s.real))
		}
	}
	return true, nil
}

// spent returns an error if the real object of the stand-in exists already: from then on the real object holds the
// state. Stand-ins with the same `_group` share state and become real objects together.
func (s *StandInVariable) spent() error {
	real := Materialized(s) && !s.shares
	if g, ok := s.state.attrs["_group"]; ok && g != nil {
		real = real || Materialized(g)
	}
	if real {
		return unsupported(exc.CallUnsupported, "a %s that other code holds", py.TypeName(s.real))
	}
	return nil
}

// standInType returns the C type that the stand-in v replaces, or None if v is not a stand-in.
func standInType(tx Translator, v VariableTracker) (VariableTracker, error) {
	if s, ok := v.(standIn); ok {
		return wrapKnown(tx, s.parts().real), nil
	}
	return NoneConst(), nil
}

// public reports whether the polyfill class also implements this attribute of the C type.
func (s *StandInVariable) public(tx Translator, name string) bool {
	names, ok := tx.Scope().TypeLookup(s.state.Class, "__public__")
	if !ok {
		return false
	}
	in, ok := py.Answered(tx.Scope().Contains(names, tx.Scope().Name(name)))
	return ok && in
}

// GetAttr implements AttrGetter.
func (s *StandInVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if name == "__class__" {
		return wrapKnown(tx, s.real), nil
	}
	if s.public(tx, name) {
		if err := s.spent(); err != nil {
			return nil, err
		}
		return s.state.GetAttr(tx, name)
	}
	if _, ok := tx.Scope().TypeLookup(s.real, name); !ok {
		return nil, &exc.Observed{TypeName: "AttributeError", Text: "'" + py.TypeName(s.real) +
			"' object has no attribute '" + name + "'"}
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of a %s", name, py.TypeName(s.real))
}

// StateOf returns the instance that holds a stand-in's state. It returns nil for all other values.
func StateOf(v VariableTracker) *ObjectVariable {
	if s, ok := v.(standIn); ok {
		return s.parts().state
	}
	return nil
}

// Call implements Caller.
func (s *StandInVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if _, ok := tx.Scope().TypeLookup(s.state.Class, "__call__"); !ok {
		return nil, &exc.Observed{TypeName: "TypeError", Text: "'" + py.TypeName(s.real) + "' object is not callable"}
	}
	r, err := s.state.Call(tx, args, kwargs)
	if err == nil && polyfillMarker(tx, r) == "decline" {
		err = unsupported(exc.CallUnsupported, "a %s", py.TypeName(s.real))
	}
	return r, err
}

// MadeAt returns the step of the outermost frame at which a stand-in was made, or 0 for other values. A step is the
// translation of one instruction. If no real object can be made in the stand-in's current state, CPython makes the
// object at that step.
func MadeAt(v VariableTracker) int {
	if s, ok := v.(standIn); ok {
		return s.parts().madeAt
	}
	return 0
}

// Settle implements Settler. It calls `_escape`, which returns the callable and arguments that make the real object.
func (s *StandInVariable) Settle(tx Translator) error {
	if s.recipe != nil {
		return nil
	}
	r, err := CallMethod(tx, s.state, "_escape", nil, nil)
	if err != nil {
		return err
	}
	t, ok := r.(*TupleVariable)
	if !ok {
		return unsupported(exc.Reconstruct, "a %s", py.TypeName(s.real))
	}
	recipe := append([]VariableTracker(nil), t.items...)
	if recipe[0], err = Realize(tx, recipe[0]); err != nil {
		return err
	}
	s.recipe = recipe
	switch {
	case s.shares:
		tx.Output().Shares(s.mode)
	case s.mode() != nil:
		tx.Output().Adopts()
	}
	return nil
}

// mode returns the key in torch_state of the mode that captured code has entered for the object, or nil.
func (s *StandInVariable) mode() VariableTracker {
	if v := s.state.attrs["number"]; v != nil && !isNone(v) {
		return v
	}
	return nil
}

// Reconstruct implements Reconstructer.
func (s *StandInVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	switch fn := s.recipe[0].(type) {
	case *FunctionVariable:
		e.LoadConst(fn.Fn)
	case *ClassVariable:
		e.LoadConst(fn.Class)
	case *BuiltinVariable:
		e.LoadConst(fn.Fn)
	case *TorchVariable:
		e.LoadConst(fn.Fn)
	default:
		return unsupported(exc.Reconstruct, "a %s", py.TypeName(s.real))
	}
	if err := LoadAll(e, s.recipe[1:]); err != nil {
		return err
	}
	e.Call(len(s.recipe)-1, nil)
	return nil
}

// Next implements Iterator.
func (s *StandInIterator) Next(tx Translator) (VariableTracker, bool, error) {
	if err := s.spent(); err != nil {
		return nil, false, err
	}
	if err := tx.World().Enter(); err != nil {
		return nil, false, err
	}
	defer tx.World().Leave()
	r, err := CallMethod(tx, s.state, "_next", nil, nil)
	if o, ok := err.(*exc.Observed); ok { // a function that the iterator calls may also raise StopIteration
		if end, endErr := RaisesA(tx, o, "StopIteration"); endErr == nil && end {
			return nil, false, nil
		}
	}
	if err != nil {
		return nil, false, err
	}
	switch polyfillMarker(tx, r) {
	case "end":
		return nil, false, nil
	case "decline":
		return nil, false, unsupported(exc.IterUnsupported, "a %s", py.TypeName(s.real))
	}
	return r, true, nil
}

// CallMethod implements MethodCaller.
func (s *StandInIterator) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if len(args)+len(kwargs) == 0 {
		switch name {
		case "__iter__":
			return s, nil
		case "__next__":
			v, ok, err := s.Next(tx)
			if err == nil && !ok {
				err = &exc.Observed{TypeName: "StopIteration"}
			}
			return v, err
		}
	}
	fn, err := s.StandInVariable.GetAttr(tx, name)
	if err != nil {
		return nil, err
	}
	return Call(tx, fn, args, kwargs)
}

// GetAttr implements AttrGetter.
func (s *StandInIterator) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if name == "__iter__" || name == "__next__" {
		return &BoundBuiltin{obj: s, name: name}, nil
	}
	return s.StandInVariable.GetAttr(tx, name)
}
