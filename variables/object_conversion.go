package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// conversion describes how a builtin converts an instance of a Python class. specials are the special methods that the
// builtin tries, in CPython's order. If the result of a method has the type `gives`, the builtin returns it unchanged;
// it converts other results.
type conversion struct {
	specials []string
	gives    py.Kind
}

var conversions = map[string]conversion{
	"int":     {[]string{"__int__", "__index__"}, py.Int},
	"float":   {[]string{"__float__", "__index__"}, py.Float},
	"complex": {[]string{"__complex__", "__float__", "__index__"}, py.Complex},
	"str":     {[]string{"__str__", "__repr__"}, py.Str},
	"repr":    {[]string{"__repr__"}, py.Str},
	"bytes":   {[]string{"__bytes__"}, py.Bytes},
	"hash":    {[]string{"__hash__"}, py.Null},
	"bin":     {[]string{"__index__"}, py.Null},
	"oct":     {[]string{"__index__"}, py.Null},
	"hex":     {[]string{"__index__"}, py.Null},
	"chr":     {[]string{"__index__"}, py.Null},
}

// indexOnly lists special methods whose int result the builtin processes further.
var indexOnly = map[string]bool{"__index__": true, "__hash__": true}

// convertObject handles a conversion builtin called with an instance of a Python class. It returns false for other
// calls.
func (b *BuiltinVariable) convertObject(tx Translator, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	c, ok := conversions[b.name]
	if !ok || len(args) != 1 || len(kwargs) > 0 {
		return nil, false, nil
	}
	v, err := Realize(tx, args[0])
	if err != nil {
		return nil, false, err
	}
	o, ok := v.(*ObjectVariable)
	if !ok {
		return nil, false, nil
	}
	// complex() checks for a str before it calls a special method
	if held, ok := o.value.(*ConstantVariable); ok && b.name == "complex" && held.Value.Kind() == py.Str {
		r, err := onHeld(o, func() (VariableTracker, error) { return b.Call(tx, []VariableTracker{held}, nil) })
		return r, true, err
	}
	if b.name == "hash" && o.unhashed(tx) {
		return nil, true, unsupported(exc.CallUnsupported, "hash of %s", Describe(tx, o))
	}
	for _, name := range c.specials {
		if held, ok := AsConstant(tx, valueOf(o)); ok && name == "__index__" &&
			(held.Kind() == py.Int || held.Kind() == py.BoolKind) {
			break // operator.index returns an int itself
		}
		m, err := o.slotMethod(tx, name)
		if err != nil {
			return nil, true, err
		}
		if m == nil {
			if d, own := tx.Scope().TypeLookup(o.Class, name); own && o.value != nil &&
				!tx.World().IsObjectMethod(tx.Scope(), name, d) {
				break // the builtin type's method comes first
			}
			continue
		}
		r, err := Call(tx, m, nil, nil)
		if err != nil {
			return nil, true, err
		}
		if r, err = Realize(tx, r); err != nil {
			return nil, true, err
		}
		got, known := AsConstant(tx, r)
		switch {
		case known && got.Kind() == c.gives:
			return r, true, nil
		case known && got.Kind() == py.Int && indexOnly[name], known && got.Kind() == py.Float && name == "__float__":
			folded, err := foldCall(tx, b.Fn, []VariableTracker{r}, nil)
			return folded, true, err
		}
		return nil, true, unsupported(exc.CallUnsupported, "%s of a %s: %s returns %s", b.name, py.TypeName(o.Class),
			name, Describe(tx, r))
	}
	walks := []string{"__index__", "__iter__", "__getitem__", "__len__", "__length_hint__"}
	if b.name == "bytes" && o.value != nil && o.overrides(tx, walks...) {
		return nil, true, unsupported(exc.CallUnsupported, "bytes of %s", Describe(tx, o))
	}
	if b.name == "int" && o.value != nil && o.overrides(tx, "__trunc__") {
		return nil, true, unsupported(exc.CallUnsupported, "int of a %s with __trunc__", py.TypeName(o.Class))
	}
	if o.value != nil {
		r, err := b.Call(tx, []VariableTracker{o.value}, nil)
		if IsObserved(err) { // the error message may contain the class's name or the value's text
			err = unsupported(exc.CallUnsupported, "%s of %s", b.name, Describe(tx, o))
		}
		return r, true, err
	}
	return nil, true, unsupported(exc.CallUnsupported, "%s of a %s", b.name, py.TypeName(o.Class))
}

// indexComputable breaks the graph for an enum member or class whose __index__ is user code.
func indexComputable(tx Translator, v VariableTracker) error {
	switch v.(type) {
	case *ConstantVariable, *ClassVariable:
		if o, ok := AsConstant(tx, v); ok {
			return tx.World().computable(tx, []py.Object{o}, "__index__")
		}
	}
	return nil
}

// Index returns operator.index(v). It returns v unchanged unless v is an instance of a Python class with __index__.
func Index(tx Translator, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if err := indexComputable(tx, v); err != nil {
		return nil, err
	}
	o, ok := v.(*ObjectVariable)
	if !ok {
		return v, nil
	}
	if c, ok := AsConstant(tx, valueOf(o)); ok && c.Kind() == py.Int {
		return o.value, nil // operator.index returns an int itself
	}
	m, err := o.slotMethod(tx, "__index__")
	if err != nil || m == nil {
		return v, err
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return nil, err
	}
	if r, err = Realize(tx, r); err != nil {
		return nil, err
	}
	if c, ok := AsConstant(tx, r); ok && c.Kind() == py.Int {
		if _, small := py.AsInt(c); !small { // CPython's error for a larger int would contain v's class
			return nil, unsupported(exc.TooLarge, "__index__ of %s", Describe(tx, o))
		}
	} else {
		if !ok || c.Kind() == py.BoolKind { // CPython warns about a bool
			return nil, unsupported(exc.CallUnsupported, "__index__ that returns %s", Describe(tx, r))
		}
		return nil, typeError(tx, "__index__ returned non-int (type \x00)", r)
	}
	return r, nil
}

// maxDigits limits the length of decimal numbers that are converted while translating: conversion takes quadratic
// time.
const maxDigits = 4_000

// slowNumber reports whether o is an int, or the text of an int, that is too long to be converted while translating.
func slowNumber(tx Translator, o py.Object) bool {
	switch o.Kind() {
	case py.Str, py.Bytes:
		n, ok := py.Answered(tx.Scope().Len(o))
		return !ok || n > maxDigits
	case py.Int:
		if _, small := py.AsInt(o); small {
			return false
		}
		bits, ok := py.Answered(tx.Scope().CallMethod(o, "bit_length"))
		if !ok {
			return true
		}
		n, ok := py.AsInt(bits)
		return !ok || n > 3*maxDigits
	}
	return false
}
