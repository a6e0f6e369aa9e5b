package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Members of enum classes are constants. If the enum module defines an operation on members, CPython runs the
// operation. If the user's enum class defines it, the operation is inlined.

// enumMember returns v as a constant if it is a member of an enum class.
func enumMember(tx Translator, v VariableTracker) (*ConstantVariable, bool) {
	c, ok := v.(*ConstantVariable)
	return c, ok && tx.World().IsEnum(tx.Scope(), c.Value)
}

// byEnum reports whether fn is a function of the enum module.
func byEnum(tx Translator, fn py.Object) bool {
	module, ok := py.Answered(tx.Scope().GetAttr(fn, "__module__"))
	return ok && module.Kind() == py.Str && py.GoString(module) == "enum"
}

// memberMethod returns a special method that is written in Python, bound to an enum member. It returns nil for other
// values and other methods. Unless `enums` is true, it also returns nil for methods that the enum module defines.
func memberMethod(tx Translator, v VariableTracker, name string, enums bool) VariableTracker {
	c, ok := enumMember(tx, v)
	if !ok {
		return nil
	}
	class := c.Value.Type()
	d, ok := tx.Scope().TypeLookup(class, name)
	if !ok || d.Kind() != py.Function || byEnum(tx, d) && !enums {
		return nil
	}
	return NewMethod(tx.Build(d, guards.NewTypeAttrSource(classSource(tx, class), name)), c, nil)
}

// readsMember guards what the text of an enum member may contain: the member's name and value, and the name of its
// class.
func readsMember(tx Translator, o py.Object) error {
	typeName(tx, o.Type())
	for _, name := range []string{"_name_", "_value_"} {
		v, err := memberAttr(tx, o, name)
		if err == nil && v != nil {
			_, err = Realize(tx, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// foundMember is called for an enum member that CPython computed. It guards that the enum class still maps the member's
// value to this member.
func foundMember(tx Translator, o py.Object) error {
	w, s := tx.World(), tx.Scope()
	if !w.IsEnum(s, o) {
		return nil
	}
	table, ok := s.TypeLookup(o.Type(), "_value2member_map_")
	value, has := s.InstanceAttr(o, "_value_")
	if !ok || !has || table.Kind() != py.Dict {
		return unsupported(exc.CallUnsupported, "a member of %s", py.TypeName(o.Type()))
	}
	switch value.Kind() {
	case py.Int, py.Str, py.Float, py.Bytes, py.BoolKind:
	default:
		return nil
	}
	if found, ok := s.DictGet(table, value); !ok || found != o {
		return nil
	}
	src := guards.NewTypeAttrSource(classSource(tx, o.Type()), "_value2member_map_")
	tx.Output().AddGuards(guards.TypeMatch(src, tx.Output().Const(table.Type())))
	item := guards.NewDictGetItemSource(src, tx.Output().Const(value))
	tx.Output().AddGuards(guards.IDMatch(item, tx.Output().Const(o), guards.KeepStrong))
	return nil
}

// findsMember returns the member of an enum class that has a given value, or nil if there is none, and guards this
// look-up. It refuses unhashable values, which Enum.__new__ compares with all members. If there is no member, it
// refuses classes with special methods: such a class may create one, as Flag does.
func findsMember(tx Translator, class py.Object, v VariableTracker) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	refused := unsupported(exc.CallUnsupported, "class %s called with %s", py.TypeName(class), Describe(tx, v))
	table, _ := s.TypeLookup(class, "_value2member_map_")
	value, ok := AsConstant(tx, v)
	if o, held := v.(*ObjectVariable); held && o.value != nil && o.plainValue(tx) {
		value, ok = AsConstant(tx, o.value)
	}
	if !ok || table.Kind() != py.Dict {
		return nil, refused
	}
	if value.Type() == class { // v is a member of the class itself
		return v, nil
	}
	guarded := true
	switch value.Kind() {
	case py.Int, py.Str, py.Float, py.Bytes, py.BoolKind, py.NoneKind:
	case py.Tuple:
		if err := w.computable(tx, []py.Object{value}, "__hash__", "__eq__"); err != nil {
			return nil, err
		}
		if _, ok := py.Answered(s.CallMethod(value, "__hash__")); !ok {
			return nil, refused
		}
		guarded = false
	default:
		return nil, refused
	}
	src := guards.NewTypeAttrSource(classSource(tx, class), "_value2member_map_")
	key := tx.Output().Const(value)
	found, ok := s.DictGet(table, value)
	if guarded {
		if ok { // an equal key of another type may run user code
			if own, has := s.InstanceAttr(found, "_value_"); !has || own.Type() != value.Type() {
				return nil, refused
			}
		}
		tx.Output().AddGuards(guards.TypeMatch(src, tx.Output().Const(table.Type())), guards.DictContains(src, key, ok))
		if ok {
			item := guards.NewDictGetItemSource(src, key)
			tx.Output().AddGuards(guards.IDMatch(item, tx.Output().Const(found), guards.KeepStrong))
		}
	}
	if ok {
		return NewConstant(found, nil), nil
	}
	if !plainMemberClass(tx, class) || !plainMemberClass(tx, class, "__setattr__", "__init__") {
		return nil, refused
	}
	return nil, nil
}

// memberText calls __str__, __repr__ or __format__ of a member and returns the text.
func memberText(tx Translator, method VariableTracker, args ...VariableTracker) (VariableTracker, error) {
	r, err := Call(tx, method, args, nil)
	if err != nil {
		return nil, err
	}
	if r, err = Realize(tx, r); err != nil {
		return nil, err
	}
	if _, ok := ConstStr(tx, r); !ok {
		return nil, unsupported(exc.OperatorUnsupported, "text of an enum member that is %s", Describe(tx, r))
	}
	return r, nil
}

// memberFormat implements format() for a member whose class defines __format__ or __str__. It returns nil for other
// values.
func memberFormat(tx Translator, v, spec VariableTracker) (VariableTracker, error) {
	if memberMethod(tx, v, "__format__", false) == nil && memberMethod(tx, v, "__str__", false) == nil {
		return nil, nil
	}
	m := memberMethod(tx, v, "__format__", true)
	if m == nil {
		return nil, nil // the class uses the __format__ of a mixed-in type
	}
	return memberText(tx, m, spec)
}

// memberOperand refuses a binary operator that the class of an enum member defines. ownText reports whether the
// operation is `text % member` and the member's class defines __str__ or __repr__.
func memberOperand(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (ownText bool, err error) {
	if memberMethod(tx, a, n.Method(), false) != nil || memberMethod(tx, a, n.InplaceMethod(), false) != nil ||
		memberMethod(tx, b, n.Reflected(), false) != nil {
		return false, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(), Describe(tx, b))
	}
	return n == opcode.NB_REMAINDER && hasOwnText(tx, b), nil
}

// hasOwnText reports whether v is a member of an enum class that defines __str__ or __repr__.
func hasOwnText(tx Translator, v VariableTracker) bool {
	return memberMethod(tx, v, "__str__", false) != nil || memberMethod(tx, v, "__repr__", false) != nil
}

// readsFlag guards the value of an enum member if the enum module defines this special method in Python, as it does for
// Flag.
func readsFlag(tx Translator, v VariableTracker, name string) error {
	if c, ok := enumMember(tx, v); ok && memberMethod(tx, v, name, true) != nil {
		return tx.World().computable(tx, []py.Object{c.Value}, name)
	}
	return nil
}

// memberLen implements len() for an enum member whose class defines __len__. For other values, ok is false.
func memberLen(tx Translator, v VariableTracker) (n int, ok bool, err error) {
	m := memberMethod(tx, v, "__len__", false)
	if m == nil {
		return 0, false, readsFlag(tx, v, "__len__")
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return 0, true, err
	}
	k, err := indexOf(tx, r)
	if err != nil {
		return 0, true, err
	}
	size, fits := py.AsInt(k)
	if !fits || size < 0 {
		return 0, true, unsupported(exc.CallUnsupported, "len of an enum member")
	}
	return int(size), true, nil
}

// memberTruth implements bool() for an enum member whose class defines __bool__ or __len__. For other values, ok is
// false.
func memberTruth(tx Translator, v VariableTracker) (truth, ok bool, err error) {
	m := memberMethod(tx, v, "__bool__", false)
	if m == nil {
		c, member := enumMember(tx, v)
		if !member {
			return false, false, nil
		}
		if _, other := tx.Scope().TypeLookup(c.Value.Type(), "__bool__"); other {
			return false, false, readsFlag(tx, v, "__bool__")
		}
		n, ok, err := memberLen(tx, v)
		return n > 0, ok, err
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return false, true, err
	}
	if r, err = Realize(tx, r); err != nil {
		return false, true, err
	}
	if c, ok := AsConstant(tx, r); !ok || c.Kind() != py.BoolKind {
		return false, true, unsupported(exc.OperatorUnsupported, "truth of an enum member that is %s", Describe(tx, r))
	}
	truth, err = Truth(tx, r)
	return truth, true, err
}

// computedAttr returns an attribute of an enum member that a descriptor computes. It inlines a property. It returns nil
// for all other attributes and values.
func computedAttr(tx Translator, v VariableTracker, name string) (VariableTracker, error) {
	c, ok := enumMember(tx, v)
	if !ok {
		return nil, nil
	}
	s, class := tx.Scope(), c.Value.Type()
	d, ok := s.TypeLookup(class, name)
	if !ok {
		return nil, nil
	}
	if d.Kind() == py.Property {
		v, _, err := getProperty(tx, c, d, guards.NewTypeAttrSource(classSource(tx, class), name))
		return v, err
	}
	if get, _ := isDescriptor(tx, d); !get || !py.Is(d.Type(), py.Mutable) {
		return nil, nil
	}
	// An enum.property named `name` or `value` reads the member's `_name_` or `_value_`: its getter is None or a
	// function of the enum module.
	if fn, ok := py.Answered(s.GetAttr(d, "fget")); ok && (fn == pyNone || fn.Kind() == py.Function && byEnum(tx, fn)) {
		if name == "name" || name == "value" {
			return memberAttr(tx, c.Value, "_"+name+"_")
		}
		return nil, nil
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of a member of %s", name, py.TypeName(class))
}
