package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ConstantVariable is a value known wholly and immutable: numbers, text, None, dtypes, enum members. CPython computes
// with it.
type ConstantVariable struct {
	Base
	Value py.Object
}

// NewConstant returns the tracker of a constant; src nil when the program wrote or computed it.
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
func (c *ConstantVariable) Truth(tx Translator) (bool, error) { return tx.Scope().Truth(c.Value) }

// AsProxy implements Proxy.
func (c *ConstantVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	value := c.Value
	if tx.World().IsEnum(tx.Scope(), value) {
		if mayHandle(tx, value.Type()) || !plainMember(tx, value) {
			return nil, unsupported(exc.TensorSubclass, "%s as an operand, whose class has a handler", Describe(tx, c))
		}
	}
	if value.Kind() == py.Other && py.IsSubtype(value.Type(), tx.World().Builtin("int")) { // a member of an IntEnum
		plain, err := tx.Scope().Index(value)
		if err != nil {
			return nil, observed(err)
		}
		value = plain
	}
	if tx.World().isNumpyBool(value) {
		return nil, unsupported(exc.CallUnsupported, "%s as an operand of the graph", Describe(tx, c))
	}
	if tx.World().isNumpy(value) { // what takes it for more than its value does not get here: HoldsNumpy
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

// NoneConst, BoolConst, IntConst and StrConst are constants the translator makes.
func NoneConst() *ConstantVariable { return NewConstant(py.None(), nil) }

// BoolConst is True or False.
func BoolConst(b bool) *ConstantVariable { return NewConstant(py.Bool(b), nil) }

// IntConst is an int.
func IntConst(tx Translator, v int) *ConstantVariable {
	return NewConstant(tx.Scope().Int(int64(v)), nil)
}

// StrConst is a str; a name is interned, as CPython has names.
func StrConst(tx Translator, s string) *ConstantVariable {
	return NewConstant(InternedName(tx.Scope(), s), nil)
}

// InternedName is the str of a text, the interned one where it looks like a name.
func InternedName(s *py.Scope, text string) py.Object {
	o := s.Name(text)
	if py.CodeInterns(o) {
		return s.Interned(text)
	}
	return o
}

// AsConstant returns v's real object if all of it is known and immutable, or is a container of such objects.
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

// constants returns the real objects of all values, or false.
func constants(tx Translator, vs []VariableTracker) ([]py.Object, bool) {
	out := make([]py.Object, len(vs))
	for i, v := range vs {
		v, err := Realize(tx, v)
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

// ConstInt is the value of an int (or bool) constant.
func ConstInt(tx Translator, v VariableTracker) (int, bool) {
	o, ok := AsConstant(tx, v)
	if !ok || (o.Kind() != py.Int && o.Kind() != py.BoolKind) {
		return 0, false
	}
	i, ok := py.AsInt(o)
	return int(i), ok
}

// ConstStr is the text of a str constant.
func ConstStr(tx Translator, v VariableTracker) (string, bool) {
	o, ok := AsConstant(tx, v)
	if !ok || o.Kind() != py.Str {
		return "", false
	}
	return py.GoString(o), true
}

// immutableResult wraps what CPython computed from constants. Containers become trackers of objects that the program
// made, so that it may change them.
func immutableResult(tx Translator, o py.Object) (VariableTracker, error) {
	convert := func(o py.Object) (VariableTracker, error) { return immutableResult(tx, o) }
	if v, err := ownContainer(tx, o, convert); v != nil || err != nil {
		return v, err
	}
	switch o.Kind() {
	case py.Range:
		return NewRangeObject(o, nil), nil
	case py.Slice:
		return newSliceObject(tx, o)
	}
	if isImmutable(tx, o) {
		return NewConstant(o, nil), foundMember(tx, o)
	}
	if k := o.Kind(); k == py.TypeKind || k == py.TypeSub {
		return wrapKnown(tx, o), nil
	}
	return nil, unsupported(exc.UntrackedObject, "result of type %s", py.TypeName(o.Type()))
}

// ownContainer is a container that the program made, with the items of a list, tuple or dict as convert returns them;
// nil for other objects.
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

// isImmutable recognizes objects that a ConstantVariable may represent.
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

// Observe turns an exception that CPython raised into one of the program.
func Observe(err error) error { return observed(err) }

// observed turns an exception that CPython raised into one of the program: the graph breaks there and CPython raises
// it.
func observed(err error) error {
	if e, ok := err.(*py.Error); ok {
		return &exc.Observed{TypeName: py.TypeName(e.Type), Text: e.Text, Real: e.Value}
	}
	return err
}
