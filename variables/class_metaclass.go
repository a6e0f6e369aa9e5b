package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// A metaclass can define special methods in Python, which implement operations on its classes. Those that metaMethod
// finds are inlined. CPython never computes with such a class while translating.

// metaSpecials are the special methods that a C function may call on a class passed to it.
var metaSpecials = []string{
	"__bool__", "__len__", "__iter__", "__contains__", "__getitem__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
	"__ge__", "__hash__",
	"__repr__", "__str__", "__format__", "__index__", "__int__", "__float__", "__or__", "__ror__", "__add__",
	"__radd__", "__dir__",
	"__bytes__", "__complex__", "__trunc__", "__round__", "__abs__", "__neg__", "__pos__", "__invert__",
	"__length_hint__",
	"__reversed__", "__mul__", "__rmul__", "__mod__", "__rmod__", "__divmod__", "__rdivmod__", "__pow__", "__rpow__",
	"__fspath__", "__missing__", "keys",
}

// plainMetaclass reports whether CPython may compute with a class. It may unless the metaclass defines one of the
// methods `names` (by default metaSpecials) in user code.
func (w *World) plainMetaclass(tx Translator, class py.Object, names ...string) bool {
	meta := w.Metaclass(tx, class)
	if meta == w.TypeType || meta == w.EnumMeta || meta == w.ABCMeta || !py.Is(meta, py.Mutable) ||
		!w.mayChange(tx, meta) {
		return true
	}
	if len(names) == 0 {
		names = metaSpecials
	}
	for _, name := range names {
		if d, ok := tx.Scope().TypeLookup(meta, name); ok && !py.IsNative(meta, name, d) {
			return false
		}
	}
	return true
}

// computable returns an error if CPython may not compute with objs because user code defines one of the special methods
// `names`. It looks at the metaclass of each class and at the class of each enum member, also inside containers. By
// default, `names` are metaSpecials for a class and heldSpecials for an enum member.
func (w *World) computable(tx Translator, objs []py.Object, names ...string) error {
	return w.eachWithin(tx, objs, maxNested, func(o py.Object) error {
		if k := o.Kind(); k == py.TypeKind || k == py.TypeSub {
			if !w.plainMetaclass(tx, o, names...) {
				return unsupported(exc.CallUnsupported, "class %s: its metaclass overrides this", py.TypeName(o))
			}
		} else if w.IsEnum(tx.Scope(), o) {
			if !plainMember(tx, o, names...) {
				return unsupported(exc.CallUnsupported, "a member of %s, which overrides this", py.TypeName(o.Type()))
			}
			if len(names) == 0 || readsValue(tx, o, names) { // a Python function may read anything
				return readsMember(tx, o)
			}
		}
		return nil
	})
}

// printable returns an error if computing the text of obj would run user code. It also guards the names and values that
// the texts of classes and enum members in obj contain.
func (w *World) printable(tx Translator, obj py.Object) error {
	return w.eachWithin(tx, []py.Object{obj}, maxNested, func(o py.Object) error {
		if k := o.Kind(); k == py.TypeKind || k == py.TypeSub {
			return w.readsText(tx, o)
		}
		return w.computable(tx, []py.Object{o})
	})
}

// maxNested bounds the depth to which nested containers are searched.
const maxNested = 20

// eachWithin calls do for all objects and, for containers among them, for their contents.
func (w *World) eachWithin(tx Translator, objs []py.Object, depth int, do func(py.Object) error) error {
	s := tx.Scope()
	for _, o := range objs {
		if err := do(o); err != nil {
			return err
		}
		var inside []py.Object
		switch o.Kind() {
		case py.Tuple, py.List:
			inside = s.Items(o)
		case py.Dict:
			keys, values := s.DictItems(o)
			inside = append(keys, values...)
		case py.SetKind, py.FrozenSet:
			items, err := s.Call(w.TupleType, o)
			if err != nil {
				return observed(err)
			}
			inside = s.Items(items)
		case py.Slice:
			for _, name := range []string{"start", "stop", "step"} {
				item, err := s.GetAttr(o, name)
				if err != nil {
					return observed(err)
				}
				inside = append(inside, item)
			}
		}
		if len(inside) == 0 {
			continue
		}
		if depth == 0 {
			return unsupported(exc.CallUnsupported, "a deeply nested container")
		}
		if err := w.eachWithin(tx, inside, depth-1, do); err != nil {
			return err
		}
	}
	return nil
}

// readsValue reports whether one of these special methods of an enum member is a Python function, which may read the
// member's value.
func readsValue(tx Translator, o py.Object, names []string) bool {
	for _, name := range names {
		if d, ok := tx.Scope().TypeLookup(o.Type(), name); ok && d.Kind() == py.Function {
			return true
		}
	}
	return false
}

// plainMember reports whether none of these special methods of an enum member is user code.
func plainMember(tx Translator, o py.Object, names ...string) bool {
	return plainMemberClass(tx, o.Type(), names...)
}

// plainMemberClass does the same as plainMember for all members of an enum class.
func plainMemberClass(tx Translator, class py.Object, names ...string) bool {
	if len(names) == 0 {
		names = heldSpecials
	}
	for _, name := range append([]string{"__getattribute__", "__getattr__"}, names...) {
		d, ok := tx.Scope().TypeLookup(class, name)
		if !ok {
			continue
		}
		switch k := d.Kind(); {
		case k == py.NoneKind && name != "__getattribute__" && name != "__getattr__":
		// IntEnum.__str__ is int.__repr__
		case py.IsNative(class, name, d) || name == "__str__" && py.IsNative(class, "__repr__", d):
		case k == py.Builtin && name == "__new__" || k == py.GetSet:
		case k == py.Function && byEnum(tx, d):
		default:
			return false
		}
	}
	return true
}

// fact guards that the attribute `name` of a class (__module__, __qualname__ or __doc__) equals `value`. It refuses a
// `value` that is neither a str nor None.
func (w *World) fact(tx Translator, class py.Object, name string, value py.Object) error {
	key := classLookup{class: class, fact: name}
	if w.looked[key] || !py.Is(class, py.Mutable) || !w.mayChange(tx, class) {
		return nil
	}
	if k := value.Kind(); k != py.Str && k != py.NoneKind {
		return unsupported(exc.AttrUnsupported, "%s of class %s", name, py.TypeName(class))
	}
	w.looked[key] = true
	holds, err := tx.Scope().Call(w.factIs, tx.Scope().Name(name), value)
	if err != nil {
		return observed(err)
	}
	tx.Output().AddGuards(guards.PyCheck(classSource(tx, class), tx.Output().Const(holds),
		name+" is "+tx.Scope().Repr(value)))
	return nil
}

// Matches reports whether patterns of `match` statements accept instances of a class: sequence patterns if sequence is
// true, else mapping patterns. It guards the result, since the class may be registered with an abstract class later.
func (w *World) Matches(tx Translator, class py.Object, sequence bool) (bool, error) {
	name, fact, flag := "matches mappings", py.MatchesMapping, 1<<6
	if sequence {
		name, fact, flag = "matches sequences", py.MatchesSequence, 1<<5
	}
	matches, key := py.Is(class, fact), classLookup{class: class, fact: name}
	if w.looked[key] || !py.Is(class, py.Mutable) || !w.mayChange(tx, class) {
		return matches, nil
	}
	w.looked[key] = true
	holds, err := tx.Scope().Call(w.flagIs, py.Bool(matches), tx.Scope().Int(int64(flag)))
	if err != nil {
		return false, observed(err)
	}
	if !matches {
		name = "not: " + name
	}
	tx.Output().AddGuards(guards.PyCheck(classSource(tx, class), tx.Output().Const(holds), name))
	return matches, nil
}

// readsText guards the attributes that determine the text of a class.
func (w *World) readsText(tx Translator, class py.Object) error {
	if err := w.computable(tx, []py.Object{class}); err != nil || !py.Is(class, py.Mutable) {
		return err
	}
	if opaqueClass(tx, class) {
		return unsupported(exc.OperatorUnsupported, "text of class %s: its metaclass overrides this",
			py.TypeName(class))
	}
	// the text <flag 'Color'> depends on the bases
	if w.IsEnumClass(tx.Scope(), class) {
		typeName(tx, class)
		w.RestsOnBases(tx, class)
	}
	for _, name := range []string{"__module__", "__qualname__"} {
		value, err := tx.Scope().GetAttr(class, name)
		if err != nil {
			return observed(err)
		}
		if err := w.fact(tx, class, name, value); err != nil {
			return err
		}
	}
	return nil
}

// opaqueClass reports whether user code runs if an attribute of the class is read, or if the class is used as a dict
// key: code of its metaclass, or of a key in the class's __dict__ that is not a str. An enum class whose metaclass was
// replaced also counts as opaque.
func opaqueClass(tx Translator, class py.Object) bool {
	w := tx.World()
	odd, known := w.odd[class]
	if !known {
		odd = py.OddClass(class)
		w.odd[class] = odd
	}
	if odd {
		return true
	}
	if w.IsEnumClass(tx.Scope(), class) && !py.IsSubtype(class.Type(), w.EnumMeta) {
		return true
	}
	if class.Type() == w.TypeType {
		return false
	}
	return !w.plainMetaclass(tx, class, "__getattribute__", "__hash__", "__eq__")
}

// instanceChecks returns the classes that isinstance and issubclass check for the second argument cls. It guards the
// metaclasses of these classes. If user code decides the result, ok is false.
func instanceChecks(tx Translator, cls py.Object) (classes []py.Object, ok bool) {
	w, s := tx.World(), tx.Scope()
	asked, ok := py.Answered(s.Call(w.checkedClasses, cls))
	if !ok || asked == pyNone {
		return nil, false
	}
	classes = s.Items(asked)
	for _, c := range classes {
		if meta := w.Metaclass(tx, c); py.Is(meta, py.Mutable) {
			looksFor(tx, meta, "__instancecheck__", "__subclasscheck__")
		}
	}
	return classes, true
}

// registered guards the result of issubclass(class, cls), if one of the classes in `asked` is abstract: a program may
// register `class` with an abstract class later. A class that is a subclass needs no guard, since a registration is
// never undone; in another process, the translation asks again.
func registered(tx Translator, class, cls py.Object, asked []py.Object, result bool) error {
	if !asksAbstract(tx, asked) {
		return nil
	}
	if result {
		w := tx.World()
		w.Registered = append(w.Registered, [2]py.Object{class, cls})
		return nil
	}
	holds, err := tx.Scope().Call(tx.World().staysOutside, class, cls)
	if err != nil {
		return observed(err)
	}
	src := guards.NewConstSource(tx.Output().Const(class), "___type_"+py.TypeName(class))
	tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(holds), "is no "+tx.Scope().Repr(cls), cls.ID()))
	return nil
}

// asksAbstract reports whether an abstract class is among classes.
func asksAbstract(tx Translator, classes []py.Object) bool {
	for _, c := range classes {
		if py.IsSubtype(c.Type(), tx.World().ABCMeta) {
			return true
		}
	}
	return false
}
