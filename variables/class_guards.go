package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Every look-up of a name along a class's MRO calls World.Looked, through py.Scope.OnTypeLookup. Looked guards the kind
// of object that was found. If the program uses the object, the object's value gets guards of its own. The MRO,
// metaclass and name of a class are guarded where they are read. If a guard program has a memo, it compares one version
// tag per class instead of all these guards.

// classLookup identifies something that was read from a class: a name, or a property such as "bases", "type" or "name".
type classLookup struct {
	class py.Object
	name  string
	fact  string
}

// Looked guards the result of looking up a name along a class's MRO. If nothing was found, the guard checks that the
// name is still missing. A C descriptor, a function or None must be the same object, and any other object must have the
// same type. Values and functions get more guards where they are used.
func (w *World) Looked(tx Translator, class py.Object, name string, found py.Object) {
	if _, ok := storedClassAttr(tx, class, name); ok && w.overlooked == nil {
		w.overlooked = unsupported(exc.AttrUnsupported, "%s of class %s, which was just stored", name,
			py.TypeName(class))
	}
	key := classLookup{class: class, name: name}
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
		if i := tx.Scope().MroIndex(class, name); i < 0 || py.Is(tx.Scope().Mro(class)[i], py.Mutable) {
			// A class statement's __dict__ descriptor has no weak references. A strong reference to it would keep the
			// class alive.
			return
		}
		fallthrough
	case py.WrapperDescr, py.MethodDescr, py.ClassMethodDescr, py.NoneKind, py.Function:
		src := guards.NewTypeAttrSource(classSource(tx, class), name)
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(found), guards.KeepWeak))
	default:
		src := guards.NewTypeAttrSource(classSource(tx, class), name)
		tx.Output().AddGuards(guards.TypeMatch(src, tx.Output().Const(found.Type())))
	}
}

// Overlooked returns a graph break if a look-up found an outdated value of a class attribute, else nil. The value is
// outdated if the frame has recorded an effect that stores another value, and that effect has not run yet. The
// translator calls Overlooked after each instruction and, if the graph breaks, discards the instruction's result.
func (w *World) Overlooked() error { return w.overlooked }

// Metaclass returns type(class). It adds a guard if the program can assign __class__ of the class.
func (w *World) Metaclass(tx Translator, class py.Object) py.Object {
	meta, key := class.Type(), classLookup{class: class, fact: "type"}
	if !w.looked[key] && py.Is(class, py.Mutable) {
		w.looked[key] = true
		if w.mayChange(tx, class) {
			tx.Output().AddGuards(guards.TypeMatch(classSource(tx, class), tx.Output().Const(meta)))
		}
	}
	return meta
}

// typeName returns the name of a class as CPython's messages print it. It adds a guard if the program can assign
// __name__.
func typeName(tx Translator, class py.Object) string {
	w, name, key := tx.World(), py.TypeName(class), classLookup{class: class, fact: "name"}
	if !w.looked[key] && py.Is(class, py.Mutable) && !strings.Contains(name, ".") {
		w.looked[key] = true
		if polyfillMark(tx, class) == "" && w.mayChange(tx, class) {
			tx.Output().AddGuards(guards.NameMatch(classSource(tx, class), name))
		}
	}
	return name
}

// RestsOnBases guards the MRO of a class, since the program can assign __bases__.
func (w *World) RestsOnBases(tx Translator, class py.Object) {
	key := classLookup{class: class, fact: "bases"}
	if w.looked[key] || !py.Is(class, py.Mutable) {
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

// mayChange reports whether a program may change the class. Classes of torch and godynamo do not change. Classes of
// nn.Modules may change only if modules are guarded.
func (w *World) mayChange(tx Translator, class py.Object) bool {
	known, ok := w.fixed[class]
	if !ok {
		known = polyfillMark(tx, class) != "" || w.truth(tx.Scope(), w.libraryClass, class)
		w.fixed[class] = known
	}
	return !known && (w.GuardNNModules || !py.IsSubtype(class, w.NNModule))
}

// lacks guards that `class`, one of the classes of an MRO, does not define `name` itself. super() then finds the name
// in a later class of the MRO.
func (w *World) lacks(tx Translator, class py.Object, name string) {
	if !py.Is(class, py.Mutable) || !w.mayChange(tx, class) {
		return
	}
	found, ok := tx.Scope().TypeLookup(class, name)
	if !ok {
		return // TypeLookup has added the guard that the name is missing
	}
	src := guards.NewTypeAttrSource(classSource(tx, class), name)
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(found), guards.KeepWeak))
}

// isDescriptor reports whether an object is a descriptor (its class has __get__) and whether it is a data descriptor
// (its class has __set__ or __delete__).
func isDescriptor(tx Translator, d py.Object) (get, data bool) {
	get, data = py.Descriptor(d)
	if t := d.Type(); py.Is(t, py.Mutable) {
		looksFor(tx, t, "__get__", "__set__", "__delete__")
	}
	return get, data
}

// looksFor looks up these methods, so that the results are guarded. It is used where CPython computes a result from the
// class's slots, which depend on these methods.
func looksFor(tx Translator, class py.Object, names ...string) {
	for _, n := range names {
		tx.Scope().TypeLookup(class, n)
	}
}
