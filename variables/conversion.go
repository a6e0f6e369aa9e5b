package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// conversion is how a builtin turns an object of a Python class into a value of its own: the special methods it asks for, in
// CPython's order, and the kind the first of them must give for its result to stand as it is. What another gives is converted by the
// builtin itself.
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
	"ascii":   {[]string{"__repr__"}, py.Null},
	"bytes":   {[]string{"__bytes__"}, py.Bytes},
	"hash":    {[]string{"__hash__"}, py.Null},
	"bin":     {[]string{"__index__"}, py.Null},
	"oct":     {[]string{"__index__"}, py.Null},
	"hex":     {[]string{"__index__"}, py.Null},
	"chr":     {[]string{"__index__"}, py.Null},
}

// indexOnly marks specials whose result is an int for the builtin to go on with.
var indexOnly = map[string]bool{"__index__": true, "__hash__": true}

// convertObject is a conversion builtin of an instance of a Python class; false when that is not what the call is.
func (b *BuiltinVariable) convertObject(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
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
	for _, name := range c.specials {
		m, err := o.lookupSpecial(tx, name)
		if err != nil {
			return nil, true, err
		}
		if m == nil {
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
		case known && got.Kind() == py.Str && b.name == "ascii":
			bytes, err := CallMethod(tx, r, "encode", []VariableTracker{StrConst(tx, "ascii"), StrConst(tx, "backslashreplace")}, nil)
			if err != nil {
				return nil, true, err
			}
			r, err = CallMethod(tx, bytes, "decode", []VariableTracker{StrConst(tx, "ascii")}, nil)
			return r, true, err
		case known && got.Kind() == py.Int && indexOnly[name], known && got.Kind() == py.Float && name == "__float__":
			folded, err := foldCall(tx, b.Fn, []VariableTracker{r}, nil)
			return folded, true, err
		}
		return nil, true, unsupported(exc.CallUnsupported, "%s of a %s: %s gives %s", b.name, py.TypeName(o.Class), name, Describe(tx, r))
	}
	return nil, true, unsupported(exc.CallUnsupported, "%s of a %s", b.name, py.TypeName(o.Class))
}

// Index is operator.index(v): v itself unless it is an instance of a Python class with __index__.
func Index(tx Translator, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*ObjectVariable)
	if !ok {
		return v, nil
	}
	m, err := o.lookupSpecial(tx, "__index__")
	if err != nil || m == nil {
		return v, err
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return nil, err
	}
	return Realize(tx, r)
}

// Format is format(conversion(v), spec), as f-strings and format() ask for it; conversion is "", "str", "repr" or "ascii".
func Format(tx Translator, v VariableTracker, conversion string, spec VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if isTensor(v) {
		return nil, unsupported(exc.TensorToPython, "text of a tensor")
	}
	s := tx.Scope()
	spec, err = Realize(tx, spec)
	if err != nil {
		return nil, err
	}
	text, ok := AsConstant(tx, spec)
	if !ok {
		return nil, unsupported(exc.OperatorUnsupported, "format spec %s", Describe(tx, spec))
	}
	if o, ok := v.(*ObjectVariable); ok {
		if conversion == "" {
			m, err := o.lookupSpecial(tx, "__format__")
			if err != nil {
				return nil, err
			}
			if m != nil {
				return textOf(tx, m, spec)
			}
			conversion = "str" // object.__format__ takes no spec, and this is what it does without
			if n, err := s.Len(text); err != nil || n > 0 {
				return nil, unsupported(exc.ProgramRaises, "format spec for a %s", py.TypeName(o.Class))
			}
		}
		if v, err = Call(tx, builtinOf(tx, conversion), []VariableTracker{v}, nil); err != nil {
			return nil, err
		}
		conversion = ""
	}
	o, ok := copyOf(tx, v)
	if !ok {
		return nil, unsupported(exc.OperatorUnsupported, "text of %s", Describe(tx, v))
	}
	if conversion != "" {
		if o, err = s.Call(tx.World().Builtin(conversion), o); err != nil {
			return nil, observed(err)
		}
	}
	r, err := s.Call(tx.World().Builtin("format"), o, text)
	if err != nil {
		return nil, observed(err)
	}
	return NewConstant(r, nil), nil
}

// textOf calls a special method whose result must be a str.
func textOf(tx Translator, m VariableTracker, args ...VariableTracker) (VariableTracker, error) {
	r, err := Call(tx, m, args, nil)
	if err != nil {
		return nil, err
	}
	if r, err = Realize(tx, r); err != nil {
		return nil, err
	}
	if _, ok := ConstStr(tx, r); !ok {
		return nil, unsupported(exc.OperatorUnsupported, "text %s", Describe(tx, r))
	}
	return r, nil
}
