package variables

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

var kinds = map[string]py.Kind{"Int": py.Int, "Float": py.Float, "Complex": py.Complex, "Str": py.Str}

// knownCopy returns a real object equal to v if v is fully known. Lists, dicts and sets of constants become real
// objects, which the caller passes only to calls that neither keep nor change them. It returns false for an enum member
// whose class defines __str__ or __repr__.
func knownCopy(tx Translator, v VariableTracker) (py.Object, bool) { return copyForText(tx, v, nil) }

// copyForText does the same as knownCopy. If `sizes` is not nil, it replaces each size in v by a number that represents
// the size, and appends the size to `sizes`. The sizes are in the order in which they occur in the text of the copy.
func copyForText(tx Translator, v VariableTracker, sizes *[]VariableTracker) (py.Object, bool) {
	s := tx.Scope()
	if x := asSymNode(tx, v); x != nil && sizes != nil {
		*sizes = append(*sizes, x)
		return s.Int(firstNumber + int64(len(*sizes)-1)), len(*sizes) < maxNumbers
	}
	v, err := Realize(tx, v)
	if err != nil || tx.World().Enter() != nil {
		return py.Object{}, false
	}
	defer tx.World().Leave()
	if o, ok := AsConstant(tx, v); ok {
		return o, !hasOwnText(tx, v)
	}
	all := func(vs []VariableTracker, sizes *[]VariableTracker) ([]py.Object, bool) {
		out := make([]py.Object, len(vs))
		for i, it := range vs {
			o, ok := copyForText(tx, it, sizes)
			if !ok {
				return nil, false
			}
			out[i] = o
		}
		return out, true
	}
	switch x := v.(type) {
	case *ListVariable:
		if items, ok := all(x.items, sizes); ok {
			return s.List(items...), true
		}
	case *TupleVariable:
		items, ok := all(x.items, sizes)
		switch {
		case ok && x.class.IsNull():
			return s.Tuple(items...), true
		case ok && sizes != nil && x.class == tx.World().SizeType:
			return py.Answered(s.Call(x.class, s.Tuple(items...)))
		}
	case *DictVariable:
		keys, ok := all(x.keys, nil)
		values, ok2 := all(x.values, sizes)
		if !ok || !ok2 || !x.class.IsNull() {
			break
		}
		pairs := make([][2]py.Object, len(keys))
		for i := range keys {
			pairs[i] = [2]py.Object{keys[i], values[i]}
		}
		return py.Answered(s.Dict(pairs...))
	case *ShadowVariable:
		real, err := x.contents(tx)
		return real, err == nil
	case *SetVariable:
		if len(x.members) == 0 && !x.frozen {
			if _, err := x.Items(tx); err == nil {
				return x.real, true
			}
		}
	}
	return py.Object{}, false
}

// strText implements str(v).
func strText(tx Translator, v VariableTracker) (string, error) { return textBy(tx, v, "__str__") }

// reprText implements repr(v).
func reprText(tx Translator, v VariableTracker) (string, error) { return textBy(tx, v, "__repr__") }

func textBy(tx Translator, v VariableTracker, method string) (string, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return "", err
	}
	if err := tx.World().Enter(); err != nil {
		return "", err
	}
	defer tx.World().Leave()
	if m := memberMethod(tx, v, method, false); m != nil {
		r, err := memberText(tx, m)
		if err != nil {
			return "", err
		}
		s, _ := ConstStr(tx, r)
		return s, nil
	}
	o, ok := knownCopy(tx, v)
	if c, member := enumMember(tx, v); member {
		o, ok = c.Value, true
	}
	if ok {
		if o.Kind() == py.Int && slowNumber(tx, o) {
			return "", unsupported(exc.TooLarge, "text of an integer of many digits")
		}
		if err := tx.World().printable(tx, o); err != nil {
			return "", err
		}
		name := strings.Trim(method, "_")
		r, err := tx.Scope().Call(tx.World().Builtin(name), o)
		if err != nil {
			return "", observed(err)
		}
		return py.GoString(r), nil
	}
	var r VariableTracker
	switch x := v.(type) {
	case *ObjectVariable:
		return x.text(tx, method)
	case *TupleVariable:
		if !x.class.IsNull() {
			if r, err = CallMethod(tx, x, method, nil, nil); err != nil {
				return "", err
			}
			if s, ok := ConstStr(tx, MustRealize(tx, r)); ok {
				return s, nil
			}
			break
		}
		text, err := reprItems(tx, &x.items)
		if len(x.items) == 1 {
			text += ","
		}
		return "(" + text + ")", err
	case *ListVariable:
		text, err := reprItems(tx, &x.items)
		return "[" + text + "]", err
	case *DictVariable:
		if !x.class.IsNull() {
			break
		}
		text, err := reprPairs(tx, x)
		return "{" + text + "}", err
	}
	return "", unsupported(exc.OperatorUnsupported, "text of %s", Describe(tx, v))
}

func reprPairs(tx Translator, d *DictVariable) (string, error) {
	keys := slices.Clone(d.keys)
	parts := make([]string, len(keys))
	for i, key := range keys {
		value := d.values[i]
		text, err := reprText(tx, key)
		if err != nil {
			return "", err
		}
		of, err := reprText(tx, value)
		if err != nil {
			return "", err
		}
		parts[i] = text + ": " + of
		if !slices.Equal(d.keys, keys) {
			return "", unsupported(exc.OperatorUnsupported, "text of a dict that changes meanwhile")
		}
	}
	return strings.Join(parts, ", "), nil
}

// reprItems returns the texts of the items, which an item's __repr__ may change.
func reprItems(tx Translator, items *[]VariableTracker) (string, error) {
	var parts []string
	for i := 0; i < len(*items); i++ {
		text, err := reprText(tx, (*items)[i])
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", "), nil
}

// valueText implements str or repr for an instance of a builtin's subclass by the builtin type's method.
func (o *ObjectVariable) valueText(tx Translator, method string) (string, error) {
	text, err := textBy(tx, o.value, method)
	// Of the builtin types, only a set's repr prints the class's name and calls __iter__.
	if s, ok := o.value.(*SetVariable); ok && err == nil {
		if o.overrides(tx, "__iter__", "__len__", "__length_hint__") { // repr converts the set to a list
			return "", unsupported(exc.OperatorUnsupported, "%s of a %s", method, py.TypeName(o.Class))
		}
		if len(s.history) == 0 {
			text = ""
		}
		text = typeName(tx, o.Class) + "(" + text + ")"
	}
	return text, err
}

// text implements str or repr of an instance. It calls the method of the class or that of the builtin type that the
// class extends.
func (o *ObjectVariable) text(tx Translator, method string) (string, error) {
	m, err := o.slotMethod(tx, method)
	if err != nil {
		return "", err
	}
	if m == nil && method == "__str__" {
		d, _ := tx.Scope().TypeLookup(o.Class, method)
		if tx.World().IsObjectMethod(tx.Scope(), method, d) {
			return o.text(tx, "__repr__")
		}
	}
	if m == nil {
		d, _ := tx.Scope().TypeLookup(o.Class, method)
		if o.value != nil && !tx.World().IsObjectMethod(tx.Scope(), method, d) {
			return o.valueText(tx, method)
		}
		return "", unsupported(exc.OperatorUnsupported, "%s of a %s", method, py.TypeName(o.Class))
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return "", err
	}
	s, ok := ConstStr(tx, MustRealize(tx, r))
	if !ok {
		return "", unsupported(exc.CallUnsupported, "%s of a %s", method, py.TypeName(o.Class))
	}
	return s, nil
}

// Format implements format(v, spec) after the given conversion ("", "str", "repr" or "ascii").
func Format(tx Translator, v VariableTracker, conversion string, spec VariableTracker) (VariableTracker, error) {
	if r, err := formatOfSizes(tx, v, conversion, spec); r != nil || err != nil {
		return r, err
	}
	if x := asSymNode(tx, v); x != nil && !tx.World().FixesOpaque {
		c, err := x.computed(tx)
		if err != nil {
			return nil, err
		}
		if r, err := Format(tx, c, conversion, spec); err == nil {
			return r, nil
		}
	}
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	s := tx.Scope()
	sp, ok := ConstStr(tx, MustRealize(tx, spec))
	if !ok {
		return nil, unsupported(exc.OperatorUnsupported, "format of %s", Describe(tx, spec))
	}
	if x, ok := v.(*ComputedVariable); ok {
		return computedFormat(tx, x, conversion, sp)
	}
	if r, ok, err := exceptionFormat(tx, v, conversion, sp); ok || err != nil {
		return r, err
	}
	if v, err = afterConversion(tx, v, conversion); err != nil {
		return nil, err
	}
	if o, ok := v.(*ObjectVariable); ok {
		if r, err := o.format(tx, spec, sp); r != nil || err != nil {
			return r, err
		}
	}
	if r, err := memberFormat(tx, v, spec); r != nil || err != nil {
		return r, err
	}
	if err := textGuards(tx, v); err != nil {
		return nil, err
	}
	if o, ok := AsConstant(tx, v); ok {
		r, err := s.Call(tx.World().Builtin("format"), o, s.Str(sp))
		if err != nil {
			return nil, observed(err)
		}
		return NewConstant(r, nil), nil
	}
	if t, ok := v.(*TensorVariable); ok {
		if r, err := t.format(tx, spec); r != nil || err != nil {
			return r, err
		}
		return nil, unsupported(exc.TensorToPython, "text of a tensor")
	}
	if sp != "" {
		return nil, typeError(tx, "unsupported format string passed to \x00.__format__", v)
	}
	text, err := strText(tx, v)
	return NewConstant(s.Str(text), nil), err
}

// afterConversion returns str(v), repr(v) or ascii(v) for the conversion of this name. It returns v itself if
// conversion is "".
func afterConversion(tx Translator, v VariableTracker, conversion string) (VariableTracker, error) {
	if conversion == "" {
		return v, nil
	}
	text, err := textBy(tx, v, map[string]string{"str": "__str__", "repr": "__repr__", "ascii": "__repr__"}[conversion])
	if err != nil {
		return nil, err
	}
	if conversion == "ascii" {
		return asciiOf(tx, text)
	}
	return NewConstant(tx.Scope().Str(text), nil), nil
}

// format implements format() by the class's __format__, or by the __format__ of the builtin type that the class
// extends. It returns nil if there is neither.
func (o *ObjectVariable) format(tx Translator, spec VariableTracker, sp string) (VariableTracker, error) {
	m, err := o.slotMethod(tx, "__format__")
	if err != nil {
		return nil, err
	}
	if m != nil {
		r, err := Call(tx, m, []VariableTracker{spec}, nil)
		if err != nil {
			return nil, err
		}
		if _, ok := ConstStr(tx, MustRealize(tx, r)); !ok {
			return nil, unsupported(exc.OperatorUnsupported, "format of a %s", py.TypeName(o.Class))
		}
		return r, nil
	}
	s := tx.Scope()
	if d, _ := s.TypeLookup(o.Class, "__format__"); o.value == nil || tx.World().IsObjectMethod(s, "__format__", d) {
		return nil, nil
	}
	if sp == "" { // without a spec, int, float, complex and str call str(o)
		text, err := strText(tx, o)
		return NewConstant(s.Str(text), nil), err
	}
	if o.overrides(tx, "__float__", "__index__", "__int__", "__str__", "__repr__") {
		return nil, unsupported(exc.OperatorUnsupported, "format of a %s", py.TypeName(o.Class))
	}
	r, err := onHeld(o, func() (VariableTracker, error) { return Format(tx, o.value, "", spec) })
	if e, ok := err.(*exc.Observed); ok && e.TypeName == "ValueError" { // the error's text names the type
		err = unsupported(exc.OperatorUnsupported, "format of a %s", py.TypeName(o.Class))
	}
	return r, err
}

// textGuards guards the names and values that determine the text of a class or of an enum member.
func textGuards(tx Translator, v VariableTracker) error {
	if c, class := v.(*ClassVariable); class {
		if err := tx.World().readsText(tx, c.Class); err != nil {
			return err
		}
	}
	if c, member := enumMember(tx, v); member {
		return tx.World().computable(tx, []py.Object{c.Value})
	}
	return nil
}

func builtinASCII(tx Translator, a []VariableTracker) (VariableTracker, error) {
	text, err := reprText(tx, a[0])
	if err != nil {
		return nil, err
	}
	return asciiOf(tx, text)
}

func asciiOf(tx Translator, text string) (VariableTracker, error) {
	o, err := tx.Scope().Call(tx.World().asciiText, tx.Scope().Str(text))
	return NewConstant(o, nil), observed(err)
}

// percentFormat implements `text % values` if some values are not constants. It formats constants that print as those
// values do. It returns false if a is not a text.
func percentFormat(tx Translator, a, b VariableTracker) (VariableTracker, bool, error) {
	format, ok := AsConstant(tx, valueOf(a))
	if !ok || format.Kind() != py.Str {
		return nil, false, nil
	}
	if o, ok := b.(*ObjectVariable); ok && properSubclass(tx, o, a) && overloads(tx, o, a, "__rmod__") {
		return nil, false, nil
	}
	s := tx.Scope()
	fields, ok := py.Answered(s.Call(tx.World().percentFields, format))
	if !ok {
		return nil, true, unsupported(exc.OperatorUnsupported, "text of %s", Describe(tx, b))
	}
	items := []VariableTracker{b}
	if x, ok := valueOf(b).(*TupleVariable); ok {
		items = x.items
	}
	flat := s.Items(fields) // flat is (key or None, conversion) for each field
	if r, err := percentOfSizes(tx, format, flat, items); r != nil || err != nil {
		return r, true, err
	}
	texts := make([]py.Object, 0, len(items))
	keyed, err := s.Dict()
	if err != nil {
		return nil, true, err
	}
	at := 0
	for i := 0; i+1 < len(flat); i += 2 {
		key, conversion := flat[i], py.GoString(flat[i+1])
		var v VariableTracker
		if key != py.None() {
			if !subscriptable(tx, b) {
				return nil, true, unsupported(exc.OperatorUnsupported, "text %% %s", Describe(tx, b))
			}
			if v, err = GetItem(tx, b, NewConstant(key, nil)); err != nil {
				return nil, true, err
			}
		} else {
			if at >= len(items) {
				return nil, true, &exc.Observed{TypeName: "TypeError", Text: "not enough arguments for format string"}
			}
			v = items[at]
			at++
		}
		o, err := percentOperand(tx, v, conversion)
		if err != nil {
			return nil, true, err
		}
		if key != py.None() {
			if _, err := s.CallMethod(keyed, "__setitem__", key, o); err != nil {
				return nil, true, err
			}
			continue
		}
		texts = append(texts, o)
	}
	for ; at < len(items); at++ { // CPython raises if there are too many values
		texts = append(texts, py.None())
	}
	real := s.Tuple(texts...)
	unread := len(flat) == 0
	if unread {
		if unread, err = isMapping(tx, b); err != nil {
			return nil, true, err
		}
	}
	if unread || len(keyedNames(s, keyed)) > 0 {
		real = keyed
	}
	r, err := s.Binary(opcode.NB_REMAINDER, format, real)
	if err != nil {
		return nil, true, observed(err)
	}
	// No value was inserted, so the result is the text object itself, even if it is an instance of a str subclass.
	if n, ok := py.Answered(s.Len(format)); ok && n > 0 && r == format {
		return a, true, nil
	}
	return NewConstant(r, nil), true, nil
}

// subscriptable reports whether `text % v` reads items of v by key.
func subscriptable(tx Translator, v VariableTracker) bool {
	switch x := v.(type) {
	case *DictVariable:
		return true
	case *ObjectVariable:
		_, ok := tx.Scope().TypeLookup(x.Class, "__getitem__")
		switch x.value.(type) {
		case *TupleVariable, *ConstantVariable:
			return false
		}
		return ok
	}
	return false
}

// isMapping reports whether `text % v` treats v as a mapping: v's type implements subscription, and v is neither a
// tuple nor a text. Unused items of a mapping are no error.
func isMapping(tx Translator, v VariableTracker) (bool, error) {
	switch x := valueOf(v).(type) {
	case *TupleVariable:
		return false, nil
	case *ConstantVariable:
		if k := x.Value.Kind(); k == py.Str || k == py.Tuple || tx.World().IsEnum(tx.Scope(), x.Value) &&
			py.IsSubtype(x.Value.Type(), tx.World().Builtin("str")) {
			return false, nil
		}
	}
	t, err := PythonType(tx, v)
	if err != nil {
		return false, err
	}
	looksFor(tx, t, "__getitem__")
	return py.Is(t, py.HasSubscript), nil
}

func keyedNames(s *py.Scope, d py.Object) []py.Object {
	keys, _ := s.DictItems(d)
	return keys
}

// percentOperand returns a constant that prints as v does under this conversion.
func percentOperand(tx Translator, v VariableTracker, conversion string) (py.Object, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if o, ok := knownCopy(tx, v); ok {
		return o, tx.World().printable(tx, o)
	}
	s := tx.Scope()
	switch conversion {
	case "s":
		text, err := strText(tx, v)
		return s.Str(text), err
	case "r":
		text, err := reprText(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		o, err := s.Call(tx.World().reprIs, s.Str(text))
		return o, observed(err)
	}
	if o, ok := v.(*ObjectVariable); ok && o.value != nil {
		if !o.plainValue(tx) {
			return py.Object{}, unsupported(exc.OperatorUnsupported, "%%%s of %s", conversion, Describe(tx, v))
		}
		if real, ok, err := o.realInstance(tx); ok || err != nil {
			return real, err
		}
		if _, ok := o.value.(*ConstantVariable); !ok {
			return py.Object{}, unsupported(exc.OperatorUnsupported, "%%%s of %s", conversion, Describe(tx, v))
		}
		return percentOperand(tx, o.value, conversion)
	}
	return py.Object{}, unsupported(exc.OperatorUnsupported, "%%%s of %s", conversion, Describe(tx, v))
}

// formatMethod implements text.format(...) if some values are not constants. It returns false if the fields are not
// plain names or numbers.
func formatMethod(tx Translator, format py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	s := tx.Scope()
	fields, ok := py.Answered(s.Call(tx.World().formatFields, format))
	if !ok || fields == py.None() {
		for _, v := range append(KwValues(kwargs), args...) { // the fields may read attributes of v
			v, err := Realize(tx, v)
			if err != nil {
				return nil, true, err
			}
			_, class := v.(*ClassVariable)
			_, object := v.(*ObjectVariable)
			if _, member := enumMember(tx, v); class || object || member {
				return nil, true, unsupported(exc.CallUnsupported, "format with attributes or items of %s",
					Describe(tx, v))
			}
		}
		return nil, false, nil
	}
	flat := s.Items(fields) // flat is (literal, key or None, conversion, spec) for each field
	out, computed := "", false
	// If some of the text is computed at run time, parts holds the texts that precede `out`.
	var parts []VariableTracker
	for i := 0; i+3 < len(flat); i += 4 {
		out += py.GoString(flat[i])
		if flat[i+1] == py.None() {
			continue
		}
		var v VariableTracker
		if n, ok := py.AsInt(flat[i+1]); ok && flat[i+1].Kind() == py.Int {
			if int(n) >= len(args) {
				return nil, true, &exc.Observed{TypeName: "IndexError", Text: "Replacement index " + itoa(int(n)) +
					" out of range for positional args tuple"}
			}
			v = args[n]
		} else {
			for _, kw := range kwargs {
				if kw.Name == py.GoString(flat[i+1]) {
					v = kw.Value
				}
			}
			if v == nil {
				return nil, true, keyError(tx, NewConstant(flat[i+1], nil))
			}
		}
		r, err := Format(tx, v, py.GoString(flat[i+2]), NewConstant(flat[i+3], nil))
		if err != nil {
			return nil, true, err
		}
		text, known := ConstStr(tx, MustRealize(tx, r))
		if !known {
			computed = true
			parts = append(parts, StrConst(tx, out), r)
			out = ""
			continue
		}
		out += text
	}
	if computed {
		return JoinComputed(tx, append(parts, StrConst(tx, out)))
	}
	return NewConstant(s.Str(out), nil), true, nil
}
