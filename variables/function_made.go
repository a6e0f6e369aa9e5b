package variables

import (
	"cmp"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file handles attributes of functions. A function has fields in its C struct, such as __name__ and __doc__, which
// are data descriptors of its type, and a __dict__ for all other attributes. Of a function that the frame makes, the
// tracker holds those fields that the program has stored, or whose object the program has read and may change.

// functionFields are the fields of functions that guards can read. All but `__closure__` can be assigned.
var functionFields = map[string]guards.FuncField{"__name__": guards.FuncName, "__qualname__": guards.FuncQualName,
	"__doc__": guards.FuncDoc, "__module__": guards.FuncModule, "__code__": guards.FuncCode,
	"__defaults__":   guards.FuncDefaults,
	"__kwdefaults__": guards.FuncKwDefaults, "__closure__": guards.FuncClosure}

// GetAttr implements AttrGetter.
func (f *FunctionVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	switch name {
	case "__class__":
		return NewClass(tx.World().FunctionType, nil), nil
	case "__dict__":
		return f.dictAttr(tx)
	}
	descriptor, onType := tx.Scope().TypeLookup(tx.World().FunctionType, name)
	if onType {
		if _, data := isDescriptor(tx, descriptor); data {
			return f.field(tx, name)
		}
	}
	if v, err := f.own(tx, name, onType); v != nil || err != nil {
		return v, err
	}
	switch {
	case name == "__get__":
		return &BoundBuiltin{obj: f, name: name}, nil
	case onType:
		return nil, unsupported(exc.AttrUnsupported, "%s of a function", name)
	}
	return nil, noAttribute(tx, tx.World().FunctionType, name)
}

// own returns an attribute in the function's __dict__, or nil if the dict has no such key.
func (f *FunctionVariable) own(tx Translator, name string, onType bool) (VariableTracker, error) {
	s := tx.Scope()
	if f.Fn.IsNull() {
		if f.dict == nil {
			return nil, nil
		}
		v, _, err := f.dict.get(tx, StrConst(tx, name))
		return v, err
	}
	// The other function may be this one in another call, so the dicts are compared once one of them has changed.
	real, ok := s.InstanceDict(f.Fn)
	tracked := ok && tx.World().Tracker(real) != nil
	if f.Src != nil && (tracked || slices.ContainsFunc(tx.World().functionDicts, changed)) {
		d, err := f.dictAttr(tx)
		if err != nil {
			return nil, err
		}
		v, _, err := d.get(tx, StrConst(tx, name))
		return v, err
	}
	if ok && f.Src != nil {
		if v, ok := s.DictGetName(real, name); ok {
			return tx.Build(v, guards.NewAttrSource(f.Src, name)), nil
		}
	}
	switch {
	case f.Src != nil && !onType:
		tx.Output().AddGuards(guards.HasAttr(f.Src, name, false))
	case !onType:
		return nil, unsupported(exc.AttrUnsupported, "%s of a function", name)
	}
	return nil, nil
}

func changed(d *DictVariable) bool { return d.mutated }

// dictAttr returns the function's __dict__. All trackers of one existing function share one tracker of its dict.
func (f *FunctionVariable) dictAttr(tx Translator) (*DictVariable, error) {
	if f.Fn.IsNull() {
		if f.dict == nil {
			f.dict = NewDict(nil)
			f.dict.owner = f
		}
		return f.dict, nil
	}
	if real, ok := tx.Scope().MadeDict(f.Fn); ok && f.Src != nil {
		v, err := Realize(tx, tx.Build(real, guards.NewInstanceDictSource(f.Src)))
		if err != nil {
			return nil, err
		}
		if d, ok := v.(*DictVariable); ok {
			tx.World().functionDicts = append(tx.World().functionDicts, d)
			return d, nil
		}
	}
	return nil, unsupported(exc.AttrUnsupported, "__dict__ of a function")
}

// field returns an attribute that is a data descriptor of the type.
func (f *FunctionVariable) field(tx Translator, name string) (VariableTracker, error) {
	if f.Fn.IsNull() {
		return f.madeField(tx, name)
	}
	field, ok := functionFields[name]
	switch {
	case f.Src == nil:
	case name == "__annotations__" && py.Minor < 14: // later versions run code of the program
		field, ok = guards.FuncAnnotations, true
	case name == "__type_params__":
		return f.lateField(tx, py.FuncTypeParams, guards.FuncTypeParams, NewTuple(nil, nil))
	case name == "__annotate__":
		return f.lateField(tx, py.FuncAnnotate, guards.FuncAnnotate, NoneConst())
	}
	if !ok {
		return nil, unsupported(exc.AttrUnsupported, "%s of a function", name)
	}
	v, err := tx.Scope().GetAttr(f.Fn, name)
	if err != nil {
		return nil, observed(err)
	}
	if f.Src != nil {
		return tx.Build(v, guards.NewFunctionFieldSource(f.Src, field)), nil
	}
	return immutableResult(tx, v)
}

// lateField returns a field of an existing function. absent is the attribute's value where the field is NULL.
func (f *FunctionVariable) lateField(tx Translator, part py.FunctionPart, field guards.FuncField,
	absent VariableTracker) (VariableTracker, error) {
	src := guards.NewFunctionFieldSource(f.Src, field)
	if v, ok := tx.Scope().FunctionField(f.Fn, part); ok {
		return tx.Build(v, src), nil
	}
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(py.None()), guards.KeepStrong))
	return absent, nil
}

// stored returns a field that the program has stored, or that it has read and may change.
func (f *FunctionVariable) stored(name string) (VariableTracker, bool) {
	i := slices.IndexFunc(f.fields, func(kw Kw) bool { return kw.Name == name })
	if i < 0 {
		return nil, false
	}
	return f.fields[i].Value, true
}

// setField makes value the function's field of this name. A field is stored in the order of the stores.
func (f *FunctionVariable) setField(name string, value VariableTracker) {
	f.fields = append(slices.DeleteFunc(slices.Clone(f.fields), func(kw Kw) bool { return kw.Name == name }),
		Kw{name, value})
}

// madeField returns a field of a function that the frame makes.
func (f *FunctionVariable) madeField(tx Translator, name string) (VariableTracker, error) {
	if v, ok := f.stored(name); ok {
		return v, nil
	}
	switch name {
	case "__name__", "__qualname__": // the objects that a new function has, not only equal ones
		name, err := tx.Scope().GetAttr(f.ownCode(), "co"+strings.TrimSuffix(name[1:], "__"))
		if err != nil {
			return nil, err
		}
		return NewConstant(name, nil), nil
	case "__code__":
		return immutableResult(tx, f.Code)
	case "__doc__":
		return f.docstring(tx)
	case "__module__":
		return f.module(tx)
	case "__defaults__":
		return orNone(f.Defaults), nil
	case "__kwdefaults__":
		return orNone(f.KwDefaults), nil
	case "__type_params__":
		return NewTuple(nil, nil), nil
	case "__annotate__":
		return NoneConst(), nil
	case "__annotations__":
		return f.annotations(tx)
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of a nested function", name)
}

func orNone(v VariableTracker) VariableTracker {
	if v == nil {
		return NoneConst()
	}
	return v
}

// docstring returns the docstring that a new function takes from its code.
func (f *FunctionVariable) docstring(tx Translator) (VariableTracker, error) {
	s := tx.Scope()
	none := s.Tuple()
	keywords, err := s.Dict()
	if err != nil {
		return nil, err
	}
	cells := make([]py.Object, len(f.Closure))
	for i := range cells {
		if cells[i], err = s.Call(py.CellType()); err != nil {
			return nil, err
		}
	}
	fn, err := s.Call(functionMade, f.ownCode(), f.GlobalsDict, none, keywords, none, s.Tuple(cells...))
	if err != nil {
		return nil, err
	}
	doc, err := s.GetAttr(fn, "__doc__")
	if err != nil {
		return nil, observed(err)
	}
	return NewConstant(doc, nil), nil
}

// module returns the __module__ that a new function takes from its globals.
func (f *FunctionVariable) module(tx Translator) (VariableTracker, error) {
	v, ok := tx.Scope().DictGetName(f.GlobalsDict, "__name__")
	if !ok || tx.StoredInto(f.GlobalsDict) || py.OddKeys(f.GlobalsDict) {
		return nil, unsupported(exc.AttrUnsupported, "__module__ of a nested function")
	}
	if f.GlobalsSrc == nil {
		return tx.Build(v, guards.NewGlobalSource("__name__")), nil
	}
	src := guards.NewDictGetItemSource(f.GlobalsSrc, tx.Output().Const(tx.Scope().Name("__name__")))
	tx.Output().Reads(src)
	return tx.Build(v, src), nil
}

// annotations returns the dict of a new function's annotations. CPython makes it when it is first read; here it is
// stored into the function.
func (f *FunctionVariable) annotations(tx Translator) (VariableTracker, error) {
	if _, lazily := f.stored("__annotate__"); lazily {
		return nil, unsupported(exc.AttrUnsupported, "__annotations__ of a nested function, which a call computes")
	}
	d := NewDict(nil)
	if f.Annotations != nil {
		items, err := Unpack(tx, f.Annotations)
		if err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(items); i += 2 {
			if err := d.put(tx, items[i], items[i+1]); err != nil {
				return nil, err
			}
		}
	}
	f.setField("__annotations__", d)
	return d, f.fieldEffect(tx, "__annotations__", d)
}

// SetAnnotate sets `__annotate__` of a function that the frame makes.
func (f *FunctionVariable) SetAnnotate(v VariableTracker) { f.setField("__annotate__", v) }

// SetAttr implements AttrSetter.
func (f *FunctionVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	if tx.World().ofMadeClass(tx, f.Fn) {
		return unsupported(exc.StoreUnsupported, "attribute %s of a function", name)
	}
	if descriptor, onType := tx.Scope().TypeLookup(tx.World().FunctionType, name); onType {
		if _, data := isDescriptor(tx, descriptor); data {
			return f.storeField(tx, name, value)
		}
	}
	d, err := f.dictAttr(tx)
	if err != nil {
		return unsupported(exc.StoreUnsupported, "attribute %s of a function", name)
	}
	if value == nil {
		if _, has, err := d.get(tx, StrConst(tx, name)); err != nil || !has {
			return unsupported(exc.StoreUnsupported, "del of attribute %s of a function", name)
		}
	}
	if !f.Fn.IsNull() {
		return d.SetItem(tx, StrConst(tx, name), value)
	}
	if value == nil {
		old, _, err := d.remove(tx, StrConst(tx, name))
		if err == nil {
			err = lettingGo(tx, old)
		}
		if err != nil {
			return err
		}
	} else if err := d.put(tx, StrConst(tx, name), value); err != nil {
		return err
	}
	return f.fieldEffect(tx, name, value)
}

// storeField stores a field of a function that the frame makes. Where CPython would raise, the graph breaks.
func (f *FunctionVariable) storeField(tx Translator, name string, value VariableTracker) error {
	refused := unsupported(exc.StoreUnsupported, "attribute %s of a function", name)
	if !f.Fn.IsNull() || value == nil {
		return refused
	}
	v, err := Realize(tx, value)
	if err != nil {
		return err
	}
	switch name {
	case "__name__", "__qualname__":
		if _, ok := ConstStr(tx, v); !ok {
			return refused
		}
	case "__defaults__":
		if t, ok := v.(*TupleVariable); ok && t.class.IsNull() {
			f.Defaults = t
		} else if isNone(v) {
			f.Defaults = nil
		} else {
			return refused
		}
		return f.fieldEffect(tx, name, v)
	case "__kwdefaults__":
		if d, ok := v.(*DictVariable); ok && d.Plain() {
			f.KwDefaults = d
		} else if isNone(v) {
			f.KwDefaults = nil
		} else {
			return refused
		}
		return f.fieldEffect(tx, name, v)
	case "__annotations__":
		if d, ok := v.(*DictVariable); !ok || !d.Plain() {
			return refused
		}
		f.fields = slices.DeleteFunc(slices.Clone(f.fields), func(kw Kw) bool { return kw.Name == "__annotate__" })
	case "__annotate__":
		if fn, ok := v.(*FunctionVariable); !isNone(v) && !ok || fn == f {
			return refused
		}
		if !isNone(v) {
			f.fields = slices.DeleteFunc(slices.Clone(f.fields),
				func(kw Kw) bool { return kw.Name == "__annotations__" })
		}
	case "__type_params__":
		if t, ok := v.(*TupleVariable); !ok || !t.class.IsNull() {
			return refused
		}
	case "__code__":
		if err := f.setCode(tx, v); err != nil {
			return err
		}
	case "__doc__", "__module__":
	default:
		return refused
	}
	if old, ok := f.stored(name); ok {
		if err := lettingGo(tx, old); err != nil {
			return err
		}
	}
	f.setField(name, value)
	return f.fieldEffect(tx, name, value)
}

// setCode makes v the code that calls of the function run. CPython accepts code with as many free variables, and warns
// of code of another kind, such as a generator's.
func (f *FunctionVariable) setCode(tx Translator, v VariableTracker) error {
	refused := unsupported(exc.StoreUnsupported, "attribute __code__ of a function")
	code, ok := AsConstant(tx, v)
	if !ok || code.Kind() != py.Code {
		return refused
	}
	for _, name := range []string{"co_freevars", "co_flags"} {
		was, err := tx.Scope().GetAttr(f.Code, name)
		if err != nil {
			return err
		}
		is, err := tx.Scope().GetAttr(code, name)
		if err != nil {
			return err
		}
		if same, err := tx.Scope().Compare(opcode.CMP_EQ, was, is); err != nil || same != py.True() {
			return cmp.Or(err, refused)
		}
	}
	if f.born.IsNull() {
		f.born = f.Code
	}
	f.Code = code
	return nil
}

// ownCode returns the code with which the function is made.
func (f *FunctionVariable) ownCode() py.Object {
	if f.born.IsNull() {
		return f.Code
	}
	return f.born
}

// fieldEffect stores an attribute of the real function if the program's function exists, or deletes it.
func (f *FunctionVariable) fieldEffect(tx Translator, name string, value VariableTracker) error {
	if value == nil {
		return writeThrough(tx, f, nil, func(e Emitter, _ []VariableTracker) error {
			if err := e.Load(f); err != nil {
				return err
			}
			e.DeleteAttr(name)
			return nil
		})
	}
	return writeThrough(tx, f, []VariableTracker{value}, func(e Emitter, vs []VariableTracker) error {
		if err := LoadAll(e, []VariableTracker{vs[0], f}); err != nil {
			return err
		}
		e.StoreAttr(name)
		return nil
	})
}

// DefaultItems returns the defaults of the positional parameters of a function that the frame makes.
func (f *FunctionVariable) DefaultItems(tx Translator) ([]VariableTracker, error) {
	if f.Defaults == nil {
		return nil, nil
	}
	return Unpack(tx, f.Defaults)
}

// KwDefault returns the default of a keyword-only parameter of a function that the frame makes, or nil.
func (f *FunctionVariable) KwDefault(tx Translator, name string) (VariableTracker, error) {
	if f.KwDefaults == nil {
		return nil, nil
	}
	v, err := Realize(tx, f.KwDefaults)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*DictVariable)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "a call of a function with these __kwdefaults__")
	}
	v, _, err = d.get(tx, StrConst(tx, name))
	return v, err
}

// QualifiedName returns the function's __qualname__, which errors of calls contain.
func (f *FunctionVariable) QualifiedName(tx Translator) (py.Object, error) {
	v, err := f.field(tx, "__qualname__")
	if err == nil {
		v, err = Realize(tx, v)
	}
	if err != nil {
		return py.Object{}, err
	}
	if name, ok := AsConstant(tx, v); ok {
		return name, nil
	}
	return py.Object{}, unsupported(exc.AttrUnsupported, "__qualname__ of a function")
}

// Snapshot implements Snapshotter.
func (f *FunctionVariable) Snapshot() VariableTracker {
	c := *f
	c.fields = slices.Clone(f.fields)
	if f.dict != nil {
		c.dict = &DictVariable{keys: slices.Clone(f.dict.keys), values: slices.Clone(f.dict.values)}
	}
	return &c
}

// Reconstruct implements Reconstructer for functions that the frame makes.
func (f *FunctionVariable) Reconstruct(e Emitter) error {
	if !f.Fn.IsNull() {
		e.LoadConst(f.Fn)
		return nil
	}
	if f.Foreign {
		return f.reconstructForeign(e)
	}
	flags := 0
	for i, part := range []VariableTracker{f.Defaults, f.KwDefaults, f.Annotations} {
		if part == nil {
			continue
		}
		if err := e.Load(part); err != nil {
			return err
		}
		flags |= 1 << i
	}
	if len(f.Closure) > 0 {
		if err := f.loadCells(e); err != nil {
			return err
		}
		flags |= 8
	}
	e.MakeFunction(f.ownCode(), f.Name, f.QualName, flags)
	return f.storeAttrs(e)
}

func (f *FunctionVariable) loadCells(e Emitter) error {
	for _, c := range f.Closure {
		if err := e.Load(c); err != nil {
			return err
		}
	}
	e.BuildTuple(len(f.Closure))
	return nil
}

// reconstructForeign emits code that makes a function defined in an inlined function of another module. It does not use
// MAKE_FUNCTION, which would set the new function's globals to those of the frame.
func (f *FunctionVariable) reconstructForeign(e Emitter) error {
	e.PushNull()
	e.LoadConst(functionMade)
	e.LoadConst(f.ownCode())
	e.LoadConst(f.GlobalsDict)
	for i, part := range []VariableTracker{f.Defaults, f.KwDefaults, f.Annotations} {
		switch {
		case part != nil:
			if err := e.Load(part); err != nil {
				return err
			}
		case i == 1:
			e.BuildMap(0)
		default:
			e.BuildTuple(0)
		}
	}
	if err := f.loadCells(e); err != nil {
		return err
	}
	e.Call(6, nil)
	return f.storeAttrs(e)
}

// storeAttrs emits the stores to the function on top of the stack.
func (f *FunctionVariable) storeAttrs(e Emitter) error {
	for _, kw := range f.fields {
		e.Copy(1)
		if err := e.Load(kw.Value); err != nil {
			return err
		}
		e.Swap(2)
		e.StoreAttr(kw.Name)
	}
	if f.dict == nil || len(f.dict.keys) == 0 {
		return nil
	}
	if !allNames(f.dict.keys) {
		return unsupported(exc.Reconstruct, "a function whose attributes have names that are not identifiers")
	}
	for i, k := range f.dict.keys {
		name, _ := constantText(k)
		e.Copy(1)
		if err := e.Load(f.dict.values[i]); err != nil {
			return err
		}
		e.Swap(2)
		e.StoreAttr(name)
	}
	return nil
}

var functionMade py.Object // set by loadFacts; never freed
