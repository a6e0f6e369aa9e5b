package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// assumedConstant handles a call of a function that the user has marked with assume_constant_result. The function is
// called while translating, and its result is part of the translation. Arguments may be objects and tensors that were
// passed to the frame; the user promises that the result does not depend on their state. A result, or a part of a list,
// tuple or dict, may be any object; the entry keeps it alive if no object of the frame is known to.
func (t *TorchVariable) assumedConstant(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	objs := make([]py.Object, 0, len(args)+len(kwargs))
	for _, v := range append(append([]VariableTracker(nil), args...), KwValues(kwargs)...) {
		o, err := t.asPassed(tx, v)
		if err != nil {
			return nil, err
		}
		objs = append(objs, o)
	}
	result, err := callKnown(tx, t.Fn, objs, KwNames(kwargs))
	if err != nil {
		return nil, observed(err)
	}
	r, err := assumed(tx, result)
	if err == nil {
		tx.World().folded(tx, t.Fn, args, kwargs, r)
	}
	return r, err
}

// asPassed returns the real object of an argument: a constant, a copy of plain data that the program made, or an object
// that was passed to the frame. It breaks the graph for a computed tensor, and for an object that the program may have
// changed, since the change has not been made yet.
func (t *TorchVariable) asPassed(tx Translator, v VariableTracker) (py.Object, error) {
	if err := fixSizes(tx, v); err != nil {
		return py.Object{}, err
	}
	r, err := Realize(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if o, ok := AsConstant(tx, r); ok {
		return o, nil
	}
	w := tx.World()
	if w.Writes > w.Own || w.Calls > 0 || tx.Output().ChangesTensors() {
		return py.Object{}, t.unknown(tx, r)
	}
	if o, src := existing(r); src != nil {
		return o, nil
	}
	if l, ok := v.(*LazyVariable); ok && l.Src != nil {
		return l.obj, nil
	}
	if o, ok := PlainCopy(tx, r); ok {
		return o, nil
	}
	return py.Object{}, t.unknown(tx, r)
}

func (t *TorchVariable) unknown(tx Translator, v VariableTracker) error {
	return unsupported(exc.CallUnsupported, "%s of %s", tx.Scope().Repr(t.Fn), Describe(tx, v))
}

// assumed returns the tracker of a result. Lists, tuples and dicts are new objects in each call, as in CPython; the
// objects in them are always the same.
func assumed(tx Translator, o py.Object) (VariableTracker, error) {
	convert := func(o py.Object) (VariableTracker, error) { return assumed(tx, o) }
	if v, err := ownContainer(tx, o, convert); v != nil || err != nil {
		return v, err
	}
	if v, err := immutableResult(tx, o); err == nil {
		return v, nil
	}
	if tx.World().IsTensor(o) && tx.World().truth(tx.Scope(), tx.World().hasHistory, o) {
		return nil, unsupported(exc.UntrackedObject, "result of type %s with a grad_fn", py.TypeName(o.Type()))
	}
	src := guards.NewConstSource(tx.Output().Const(o), "___constant")
	if tx.World().Tracker(o) == nil { // else the program keeps it alive
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(o), guards.KeepStrong))
	}
	return Realize(tx, tx.Build(o, src))
}
