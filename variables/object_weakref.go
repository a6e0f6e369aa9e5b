package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// WeakrefVariable represents a weak reference that was passed to the frame and whose type is weakref.ref itself. A call
// returns the object that the guards found. After an effect, a call breaks the graph unless a variable holds the
// object, since the effect may have freed it.
type WeakrefVariable struct {
	Base
	obj py.Object
}

// Kind implements VariableTracker.
func (*WeakrefVariable) Kind() string { return "WeakrefVariable" }

// PythonType implements Typed.
func (r *WeakrefVariable) PythonType(Translator) (py.Object, error) { return r.obj.Type(), nil }

// Truth implements Truther.
func (*WeakrefVariable) Truth(Translator) (bool, error) { return true, nil }

// Call implements Caller.
func (r *WeakrefVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return referent(tx, r.obj, r.Src, args, kwargs)
}

// referent handles a call of the weak reference at src.
func referent(tx Translator, ref py.Object, src guards.Source, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	obj, err := tx.Scope().Call(tx.World().referentOf, ref)
	if err != nil {
		return nil, observed(err)
	}
	changed := tx.World().Writes > tx.World().Fills || tx.World().Calls > 0 || tx.Output().LetGoOf()
	if len(args)+len(kwargs) > 0 || changed && !tx.InUse(obj) {
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
