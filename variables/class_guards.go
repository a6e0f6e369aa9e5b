package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// What a translation found on a class rests on guards where the value is used. Two findings have no value to guard: that a class
// has nothing of a name (no __bool__, no __getattr__), or only what a base in C has; and which classes it derives from.

// classLookup is one question asked of a class.
type classLookup struct {
	class py.Object
	name  string
}

// Looked guards what a look-up of a name along a class's MRO found, where that is nothing or C's own. Values and functions are
// guarded by those who use them.
func (w *World) Looked(tx Translator, class py.Object, name string, found py.Object) {
	key := classLookup{class, name}
	if w.looked[key] {
		return
	}
	w.looked[key] = true
	if name == polyfillName || !w.mayChange(tx, class) {
		return
	}
	if found.IsNull() {
		tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, class), name, false))
		return
	}
	switch found.Kind() {
	case py.GetSet:
		if i := tx.Scope().MroIndex(class, name); i < 0 || py.Is(tx.Scope().Mro(class)[i], py.HeapType) {
			return // __dict__ of a class statement: it takes no weak reference, and holding it would hold the class
		}
		fallthrough
	case py.WrapperDescr, py.MethodDescr, py.ClassMethodDescr, py.NoneKind:
		src := guards.NewTypeAttrSource(classSource(tx, class), name)
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(found), guards.KeepWeak))
	}
}

// RestsOnBases guards the MRO of a class: __bases__ can be assigned.
func (w *World) RestsOnBases(tx Translator, class py.Object) {
	key := classLookup{class, ""}
	if w.looked[key] || !py.Is(class, py.HeapType) {
		return
	}
	w.looked[key] = true
	if !w.mayChange(tx, class) {
		return
	}
	for i, base := range tx.Scope().Mro(class) {
		if i > 0 {
			src := guards.NewMroClassSource(classSource(tx, class), i)
			tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(base), guards.KeepWeak))
		}
	}
}

// mayChange tells classes that a program may change from those of libraries whose classes nobody does: torch's, and ours.
func (w *World) mayChange(tx Translator, class py.Object) bool {
	known, ok := w.fixed[class]
	if !ok {
		known = polyfillMark(tx, class) != "" || w.truth(tx.Scope(), w.libraryClass, class)
		w.fixed[class] = known
	}
	return !known && (w.GuardNNModules || !py.IsSubtype(class, w.NNModule))
}

// lacks guards that a class of an MRO has nothing of its own under a name that super() looks for behind it.
func (w *World) lacks(tx Translator, class py.Object, name string) {
	if !py.Is(class, py.HeapType) || !w.mayChange(tx, class) {
		return
	}
	found, ok := tx.Scope().TypeLookup(class, name)
	if !ok {
		return // guarded there
	}
	src := guards.NewTypeAttrSource(classSource(tx, class), name)
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(found), guards.KeepWeak))
}

// isDescriptor tells whether an object has __get__, and __set__ or __delete__, for its class.
func isDescriptor(tx Translator, d py.Object) (get, data bool) {
	get, data = py.Descriptor(d)
	if t := d.Type(); py.Is(t, py.HeapType) {
		looksFor(tx, t, "__get__", "__set__", "__delete__")
	}
	return get, data
}

// looksFor says that an answer rests on whether a class has these methods, for answers that are read off its slots.
func looksFor(tx Translator, class py.Object, names ...string) {
	for _, n := range names {
		tx.Scope().TypeLookup(class, n)
	}
}
