package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// WeakrefVariable represents a weak reference whose type is weakref.ref itself: one that was passed to the frame, or
// the one without a callback that weakref.ref() returns for an object that was passed to the frame. A call returns the
// object that the guards found. After an effect, a call breaks the graph unless a variable holds the object, since the
// effect may have freed it.
type WeakrefVariable struct {
	Base
	obj py.Object
	of  VariableTracker // the object for which the program calls weakref.ref(); nil for a reference that was passed
}

// newWeakref handles weakref.ref(obj) for an object that existed before the frame ran. The result is always the same
// object as long as it lives, so it has one tracker.
func (c *ClassVariable) newWeakref(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	w := tx.World()
	if c.Class != w.weakrefType || len(args) != 1 || len(kwargs) > 0 {
		return nil, false, nil
	}
	v, err := Realize(tx, args[0])
	if err != nil {
		return nil, true, err
	}
	obj, src := existing(v)
	if src == nil {
		return nil, false, nil
	}
	for _, r := range w.refs {
		if r.of == v {
			return r, true, nil
		}
	}
	ref, err := tx.Scope().Call(w.weakrefType, obj)
	if err != nil { // instances of the class cannot have weak references
		return nil, true, observed(err)
	}
	r := &WeakrefVariable{obj: ref, of: v}
	w.refs = append(w.refs, r)
	return r, true, nil
}

// Children implements Container.
func (r *WeakrefVariable) Children() []VariableTracker {
	if r.of == nil {
		return nil
	}
	return []VariableTracker{r.of}
}

// Reconstruct implements Reconstructer. It is called only for a reference that weakref.ref() returns.
func (r *WeakrefVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(r.obj.Type())
	if err := e.Load(r.of); err != nil {
		return err
	}
	e.Call(1, nil)
	return nil
}

// refsUnknown reports whether it is unknown if two values are one weak reference: weakref.ref(obj) returns an existing
// reference, which may have been passed to the frame.
func refsUnknown(a, b VariableTracker) bool {
	x, ok := a.(*WeakrefVariable)
	y, ok2 := b.(*WeakrefVariable)
	return ok && ok2 && (x.of == nil) != (y.of == nil)
}

// refKey returns the stand-in of a weak reference as a key: references are equal if their objects are. A
// reference that is dead equals only itself, and breaks the graph.
func (r *keyring) refKey(tx Translator, ref *WeakrefVariable) (py.Object, error) {
	v, err := ref.Call(tx, nil, nil)
	if err != nil {
		return py.Object{}, err
	}
	if v, err = Realize(tx, v); err != nil {
		return py.Object{}, err
	}
	_, tensor := v.(*TensorVariable) // two references of a tensor are compared by its elements
	if c, known := AsConstant(tx, v); tensor || known && c == pyNone {
		return py.Object{}, unsupported(exc.SubscriptUnsupported, "dict key %s", Describe(tx, ref))
	}
	k, err := r.keyObject(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	return tx.Scope().Tuple(tx.World().Missing, k), nil
}

// Kind implements VariableTracker.
func (*WeakrefVariable) Kind() string { return "WeakrefVariable" }

// PythonType implements Typed.
func (r *WeakrefVariable) PythonType(Translator) (py.Object, error) { return r.obj.Type(), nil }

// Truth implements Truther.
func (*WeakrefVariable) Truth(Translator) (bool, error) { return true, nil }

// Call implements Caller.
func (r *WeakrefVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if r.of == nil {
		return referent(tx, r.obj, r.Src, args, kwargs)
	}
	obj, _ := existing(r.of)
	if len(args)+len(kwargs) > 0 || mayHaveDied(tx, obj) {
		return nil, unsupported(exc.CallUnsupported, "a weak reference after a side effect")
	}
	return r.of, nil
}

// mayHaveDied reports whether an effect of the program may have freed an object that was passed to the frame.
func mayHaveDied(tx Translator, obj py.Object) bool {
	w := tx.World()
	changed := w.Writes > w.Fills || w.Calls > 0 || tx.Output().LetGoOf()
	return changed && !tx.InUse(obj)
}

// referent handles a call of the weak reference at src.
func referent(tx Translator, ref py.Object, src guards.Source, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	obj, err := tx.Scope().Call(tx.World().referentOf, ref)
	if err != nil {
		return nil, observed(err)
	}
	if len(args)+len(kwargs) > 0 || mayHaveDied(tx, obj) {
		return nil, unsupported(exc.CallUnsupported, "a weak reference after a side effect")
	}
	return tx.Build(obj, guards.NewReferentSource(src)), nil
}

// subclassReferent handles a call of an instance of a weakref.ref subclass that does not define __call__. It
// returns false for other objects.
func subclassReferent(tx Translator, o *ObjectVariable, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	w := tx.World()
	if o.Obj.IsNull() || o.Src == nil || !py.IsSubtype(o.Class, w.weakrefType) {
		return nil, false, nil
	}
	own, _ := tx.Scope().TypeLookup(w.weakrefType, "__call__")
	if d, _ := tx.Scope().TypeLookup(o.Class, "__call__"); d != own {
		return nil, false, nil
	}
	v, err := referent(tx, o.Obj, o.Src, args, kwargs)
	return v, true, err
}
