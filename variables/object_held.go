package variables

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// An instance whose class extends a builtin type holds a value of that type. An operation of the type's C code that
// does not depend on the instance's class is computed on the held value, or on a temporary instance of that class.

// heldSpecials lists the special methods that C code may call on an argument.
var heldSpecials = []string{
	"__int__", "__index__", "__float__", "__complex__", "__trunc__", "__round__", "__floor__", "__ceil__", "__abs__",
	"__neg__", "__pos__",
	"__invert__", "__len__", "__length_hint__", "__iter__", "__reversed__", "__getitem__", "__contains__", "__str__",
	"__repr__", "__format__",
	"__bytes__", "__hash__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__add__",
	"__radd__", "__mul__", "__rmul__",
	"__mod__", "__rmod__", "__divmod__", "__rdivmod__", "__pow__", "__rpow__", "__fspath__", "__getattribute__",
	"__getattr__", "__del__",
	"__copy__", "__deepcopy__", "__reduce_ex__", "__buffer__", "__missing__", "keys",
}

// plainValue reports whether C code may use the instance's contents. It may unless the class overrides one of
// heldSpecials.
func (o *ObjectVariable) plainValue(tx Translator) bool { return !o.overrides(tx, heldSpecials...) }

// realInstance returns an instance of o's class that has no attributes and holds the same immutable value. ok is false
// if the value is unknown. The class's name is guarded, since CPython's messages contain it.
func (o *ObjectVariable) realInstance(tx Translator) (obj py.Object, ok bool, err error) {
	c, known := o.value.(*ConstantVariable)
	if !known || o.exc != nil {
		return py.Object{}, false, nil
	}
	if _, ends := tx.Scope().TypeLookup(o.Class, "__del__"); ends {
		return py.Object{}, false, nil
	}
	typeName(tx, o.Class)
	obj, err = tx.Scope().CallMethod(o.native, "__new__", o.Class, c.Value)
	return obj, err == nil, observed(err)
}

// realText returns the program's own instance of a subclass of str, with a guard on its identity, for C code that reads
// nothing but its text. torch.__version__ is such an instance.
func (o *ObjectVariable) realText(tx Translator) (obj py.Object, ok bool) {
	c, known := o.value.(*ConstantVariable)
	if !known || c.Value.Kind() != py.Str || o.Src == nil || o.Obj.IsNull() {
		return py.Object{}, false
	}
	tx.Output().AddGuards(guards.IDMatch(o.Src, tx.Output().Const(o.Obj), guards.KeepStrong))
	return o.Obj, true
}

// searches reports whether fn is the method search, match or fullmatch of a regular expression. It reads the text of an
// instance of a subclass of str, whatever the class overrides.
func searches(tx Translator, fn py.Object) bool {
	s := tx.Scope()
	if fn.Kind() != py.Builtin {
		return false
	}
	pattern, ok := py.Answered(s.GetAttr(fn, "__self__"))
	re, known := py.Answered(s.Import("re"))
	if !ok || !known {
		return false
	}
	class, ok := py.Answered(s.GetAttr(re, "Pattern"))
	if !ok || pattern.Type() != class {
		return false
	}
	name, ok := py.Answered(s.GetAttr(fn, "__name__"))
	return ok && slices.Contains([]string{"search", "match", "fullmatch"}, py.GoString(name))
}

// returnsItself reports whether a method of str or bytes, called on an instance of a subclass, returns that instance
// or a container with it. For example, s.partition(sep) returns a tuple with s if it does not find sep.
func (o *ObjectVariable) returnsItself(tx Translator, name string, args []VariableTracker, kwargs []Kw) (bool, error) {
	held, ok := o.value.(*ConstantVariable)
	if !ok || !printsBy(held.Value) {
		return false, nil
	}
	all := append(append([]VariableTracker(nil), args...), KwValues(kwargs)...)
	for i, v := range all {
		v, err := Realize(tx, v)
		if err != nil {
			return false, err
		}
		all[i] = valueOf(v)
	}
	known, ok := constants(tx, all)
	if !ok {
		return false, nil
	}
	made, ok, err := o.realInstance(tx)
	if !ok || err != nil {
		return false, err
	}
	fn, err := tx.Scope().GetAttr(o.native, name)
	if err != nil {
		return false, observed(err)
	}
	r, err := callKnown(tx, fn, append([]py.Object{made}, known...), KwNames(kwargs))
	if _, raises := err.(*py.Error); raises {
		return false, nil // the method raises for a plain value as well
	} else if err != nil {
		return false, err
	}
	itself := false
	err = tx.World().eachWithin(tx, []py.Object{r}, 1, func(part py.Object) error {
		itself = itself || part == made
		return nil
	})
	return itself, err
}

// unhashed reports whether the held value is a NaN, which hashes by identity.
func (o *ObjectVariable) unhashed(tx Translator) bool {
	c, ok := o.value.(*ConstantVariable)
	if !ok || c.Value.Kind() != py.Float && c.Value.Kind() != py.Complex {
		return false
	}
	same, ok := py.Answered(tx.Scope().Compare(opcode.CMP_EQ, c.Value, c.Value))
	return !ok || same != py.True()
}

// operandObject returns a real object for an operand whose value is known, so that a C operator can be called on it. It
// is the value of a constant, or a real instance of a subclass of a builtin type (an int subclass with the value 3).
func operandObject(tx Translator, v VariableTracker) (py.Object, bool, error) {
	if o, ok := v.(*ObjectVariable); ok {
		return o.realInstance(tx)
	}
	obj, ok := AsConstant(tx, v)
	return obj, ok, nil
}

// tupleField returns the item that the namedtuple field d selects from an instance that holds a tuple. It returns nil
// if d is another descriptor.
func (o *ObjectVariable) tupleField(tx Translator, d py.Object, src guards.Source) (VariableTracker, error) {
	t, ok := o.value.(*TupleVariable)
	if !ok {
		return nil, nil
	}
	return t.field(tx, d, src)
}

// field returns the item that the namedtuple field d selects. It returns nil if d is another descriptor.
func (t *TupleVariable) field(tx Translator, d py.Object, src guards.Source) (VariableTracker, error) {
	// 3.12 names the module by which programs import it
	if name := py.TypeName(d.Type()); name != "_collections._tuplegetter" && name != "collections._tuplegetter" {
		return nil, nil
	}
	parts, err := tx.Scope().CallMethod(d, "__reduce__")
	if err != nil {
		return nil, observed(err)
	}
	at, ok := py.AsInt(tx.Scope().Items(tx.Scope().Items(parts)[1])[0])
	if !ok || int(at) >= len(t.items) {
		return nil, unsupported(exc.AttrUnsupported, "item %d of a namedtuple", at)
	}
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
	return t.items[at], nil
}

// heldError turns a TypeError or AttributeError of an operation on o's contents into a graph break. CPython's message
// would name o's class instead of the builtin type.
func heldError(o *ObjectVariable, err error) error {
	if e, ok := err.(*exc.Observed); ok && (e.TypeName == "TypeError" || e.TypeName == "AttributeError") {
		return unsupported(exc.CallUnsupported, "%s of an instance of %s", e.TypeName, py.TypeName(o.Class))
	}
	return err
}

// onHeld runs an operation on o's contents and converts its error with heldError.
func onHeld[T any](o *ObjectVariable, operation func() (T, error)) (T, error) {
	r, err := operation()
	return r, heldError(o, err)
}
