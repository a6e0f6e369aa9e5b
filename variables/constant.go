package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ConstantVariable is an immutable value that is fully known: a number, a text, None, a dtype, an enum member. CPython
// computes with it while translating.
type ConstantVariable struct {
	Base
	Value py.Object
}

// NewConstant returns the tracker of a constant. src is nil if the constant is in the code object or was computed.
func NewConstant(value py.Object, src guards.Source) *ConstantVariable {
	return &ConstantVariable{Base: Base{Src: src}, Value: value}
}

// Kind implements VariableTracker.
func (*ConstantVariable) Kind() string { return "ConstantVariable" }

// AsConstant implements Constant.
func (c *ConstantVariable) AsConstant(Translator) (py.Object, bool) { return c.Value, true }

// PythonType implements Typed.
func (c *ConstantVariable) PythonType(Translator) (py.Object, error) { return c.Value.Type(), nil }

// Truth implements Truther.
func (c *ConstantVariable) Truth(tx Translator) (bool, error) {
	if c.Value.Kind() == py.NotImplemented {
		return false, unsupported(exc.OperatorUnsupported, "truth of NotImplemented") // CPython warns, or raises
	}
	return tx.Scope().Truth(c.Value)
}

// AsProxy implements Proxy.
func (c *ConstantVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	value := c.Value
	if tx.World().IsEnum(tx.Scope(), value) {
		if mayHandle(tx, value.Type()) || !plainMember(tx, value) {
			return nil, unsupported(exc.TensorSubclass, "%s as an operand, whose class has a handler", Describe(tx, c))
		}
	}
	if value.Kind() == py.Other && py.IsSubtype(value.Type(), tx.World().Builtin("int")) { // an IntEnum's member
		plain, err := tx.Scope().Index(value)
		if err != nil {
			return nil, observed(err)
		}
		value = plain
	}
	if tx.World().isNumpyBool(value) {
		return nil, unsupported(exc.CallUnsupported, "%s as an operand of the graph", Describe(tx, c))
	}
	// HoldsNumpy keeps operations away from here if they use more of a numpy scalar than its value.
	if tx.World().isNumpy(value) {
		plain, err := tx.Scope().CallMethod(value, "item")
		if err != nil {
			return nil, observed(err)
		}
		value = plain
	}
	k := tx.Output().Const(value)
	return fxgraph.Lit{Pool: k.Index, Text: k.Text}, nil
}

// Reconstruct implements Reconstructer.
func (c *ConstantVariable) Reconstruct(e Emitter) error {
	e.LoadConst(c.Value)
	return nil
}

// NoneConst returns None.
func NoneConst() *ConstantVariable { return NewConstant(py.None(), nil) }

// BoolConst returns True or False.
func BoolConst(b bool) *ConstantVariable { return NewConstant(py.Bool(b), nil) }

// IntConst returns an int.
func IntConst(tx Translator, v int) *ConstantVariable {
	return NewConstant(tx.Scope().Int(int64(v)), nil)
}

// StrConst returns a str. A text that is an identifier is interned, as in CPython.
func StrConst(tx Translator, s string) *ConstantVariable {
	return NewConstant(InternedName(tx.Scope(), s), nil)
}

// InternedName returns the str of a text, interned if CPython's compiler would intern it.
func InternedName(s *py.Scope, text string) py.Object {
	o := s.Name(text)
	if py.CodeInterns(o) {
		return s.Interned(text)
	}
	return o
}

// AsConstant returns the real object of v if v is fully known and immutable. v may also be a tuple, frozenset or slice
// of such values.
func AsConstant(tx Translator, v VariableTracker) (py.Object, bool) {
	if l, ok := v.(*LazyVariable); ok {
		if l.real == nil {
			return py.Object{}, false
		}
		v = l.real
	}
	if c, ok := v.(Constant); ok {
		return c.AsConstant(tx)
	}
	return py.Object{}, false
}

// constants returns the real objects of all values. It returns false if a value is not a constant.
func constants(tx Translator, vs []VariableTracker) ([]py.Object, bool) {
	out := make([]py.Object, len(vs))
	for i, v := range vs {
		v, err := Argument(tx, v)
		if err != nil {
			return nil, false
		}
		o, ok := AsConstant(tx, v)
		if !ok {
			return nil, false
		}
		out[i] = o
	}
	return out, true
}

// ConstInt returns the value of an int (or bool) constant.
func ConstInt(tx Translator, v VariableTracker) (int, bool) {
	o, ok := AsConstant(tx, v)
	if !ok || (o.Kind() != py.Int && o.Kind() != py.BoolKind) {
		return 0, false
	}
	i, ok := py.AsInt(o)
	return int(i), ok
}

// ConstStr returns the text of a str constant.
func ConstStr(tx Translator, v VariableTracker) (string, bool) {
	o, ok := AsConstant(tx, v)
	if !ok || o.Kind() != py.Str {
		return "", false
	}
	return py.GoString(o), true
}

// immutableResult wraps a result that CPython computed from constants. A list, tuple or dict counts as made by the
// translated code, which may therefore change it.
func immutableResult(tx Translator, o py.Object) (VariableTracker, error) {
	convert := func(o py.Object) (VariableTracker, error) { return immutableResult(tx, o) }
	if v, err := ownContainer(tx, o, convert); v != nil || err != nil {
		return v, err
	}
	switch o.Kind() {
	case py.Range:
		return NewRangeObject(o, nil), nil
	case py.Slice:
		return NewSliceObject(tx, o)
	}
	if isImmutable(tx, o) {
		return NewConstant(o, nil), foundMember(tx, o)
	}
	if k := o.Kind(); k == py.TypeKind || k == py.TypeSub {
		return wrapKnown(tx, o), nil
	}
	return nil, unsupported(exc.UntrackedObject, "result of type %s", py.TypeName(o.Type()))
}

// ownContainer returns the tracker of a list, tuple or dict that counts as made by the translated code. convert wraps
// its items. It returns nil for other objects.
func ownContainer(tx Translator, o py.Object,
	convert func(py.Object) (VariableTracker, error)) (VariableTracker, error) {
	switch o.Kind() {
	case py.List, py.Tuple:
		items := tx.Scope().Items(o)
		out := make([]VariableTracker, len(items))
		for i, it := range items {
			v, err := convert(it)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		if o.Kind() == py.List {
			return NewList(out, nil), nil
		}
		return NewTuple(out, nil), nil
	case py.Dict:
		keys, values := tx.Scope().DictItems(o)
		d := NewDict(nil)
		for i, k := range keys {
			v, err := convert(values[i])
			if err == nil {
				err = d.put(tx, NewConstant(k, nil), v)
			}
			if err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return nil, nil
}

// isImmutable reports whether a ConstantVariable may represent o.
func isImmutable(tx Translator, o py.Object) bool {
	switch o.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes, py.EllipsisKind,
		py.NotImplemented, py.Code:
		return true
	case py.FrozenSet, py.Tuple:
		return deepImmutable(tx, o)
	}
	return tx.World().IsTorchConstant(o.Type()) || tx.World().IsEnum(tx.Scope(), o)
}

func deepImmutable(tx Translator, o py.Object) bool {
	if o.Kind() == py.FrozenSet {
		l, ok := py.Answered(tx.Scope().Call(tx.World().ListType, o))
		if !ok {
			return false
		}
		o = l
	}
	for _, it := range tx.Scope().Items(o) {
		if !isImmutable(tx, it) {
			return false
		}
	}
	return true
}

// Observe turns an exception that CPython raised into an exception of the user's code.
func Observe(err error) error { return observed(err) }

// observed turns an exception that CPython raised into an exception of the user's code (exc.Observed). If no translated
// handler catches it, the graph breaks at the instruction and CPython raises it again.
func observed(err error) error {
	if e, ok := err.(*py.Error); ok {
		return &exc.Observed{TypeName: py.TypeName(e.Type), Text: e.Text, Real: e.Value}
	}
	return err
}
