package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// AsProxy returns v in the form of a graph operand.
func AsProxy(tx Translator, v VariableTracker) (fxgraph.Arg, error) {
	v, err := Argument(tx, v)
	if err != nil {
		return nil, err
	}
	if err := tx.World().Enter(); err != nil {
		return nil, err
	}
	defer tx.World().Leave()
	if p, ok := v.(Proxy); ok {
		return p.AsProxy(tx)
	}
	return nil, unsupported(exc.CallUnsupported, "%s as an operand of the graph", Describe(tx, v))
}

// PythonType returns type(v).
func PythonType(tx Translator, v VariableTracker) (py.Object, error) {
	v, err := Argument(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if t, ok := v.(Typed); ok {
		return t.PythonType(tx)
	}
	return py.Object{}, unsupported(exc.CallUnsupported, "type of %s", Describe(tx, v))
}

// Truth returns bool(v) if it is known. For a tensor whose value cannot be precomputed, it returns a graph break with
// DataDependent set.
func Truth(tx Translator, v VariableTracker) (bool, error) {
	if x := asSymNode(tx, v); x != nil {
		return x.Truth(tx)
	}
	v, err := Realize(tx, v)
	if err != nil {
		return false, err
	}
	if b, ok, err := memberTruth(tx, v); ok || err != nil {
		return b, err
	}
	if t, ok := v.(Truther); ok {
		b, err := t.Truth(tx)
		return b, observed(err)
	}
	switch v.(type) {
	case *FunctionVariable, *MethodVariable, *BuiltinVariable, *TorchVariable, *ModuleVariable:
		return true, nil
	}
	return false, unsupported(exc.OperatorUnsupported, "truth of %s", Describe(tx, v))
}

// Len returns len(v).
func Len(tx Translator, v VariableTracker) (int, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return 0, err
	}
	if l, ok := v.(Lener); ok {
		return l.Len(tx)
	}
	if n, ok, err := memberLen(tx, v); ok || err != nil {
		return n, err
	}
	if o, ok := AsConstant(tx, v); ok {
		n, err := tx.Scope().Len(o)
		return n, observed(err)
	}
	return 0, unsupported(exc.CallUnsupported, "len of %s", Describe(tx, v))
}

// Call runs fn(*args, **kwargs).
func Call(tx Translator, fn VariableTracker, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if err := tx.World().Enter(); err != nil {
		return nil, err
	}
	defer tx.World().Leave()
	fn, err := Realize(tx, fn)
	if err != nil {
		return nil, err
	}
	if c, ok := fn.(Caller); ok {
		return c.Call(tx, args, kwargs)
	}
	if r, ok, err := callAlias(tx, fn, args, kwargs); ok || err != nil {
		return r, err
	}
	switch fn.(type) {
	case *ListVariable, *TupleVariable, *DictVariable, *SetVariable, *DequeVariable, *ShadowVariable:
		return nil, typeError(tx, "'\x00' object is not callable", fn)
	}
	return nil, unsupported(exc.CallUnsupported, "%s", Describe(tx, fn))
}

// CallMethod runs obj.name(*args, **kwargs).
func CallMethod(tx Translator, obj VariableTracker, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if added, err := addUnseen(tx, obj, name, args, kwargs); added || err != nil {
		return NoneConst(), err
	}
	if v, decided, err := callGet(tx, obj, name, args, kwargs); decided || err != nil {
		return v, err
	}
	obj, err := Realize(tx, obj)
	if err != nil {
		return nil, err
	}
	if m, ok := obj.(MethodCaller); ok {
		return m.CallMethod(tx, name, args, kwargs)
	}
	if c, isClass := obj.(*ClassVariable); isClass {
		fn, err := GetAttr(tx, obj, name)
		if err != nil {
			return nil, err
		}
		if b, ok := fn.(*BoundBuiltin); ok && name == subclassesName && b.obj == c {
			return c.subclasses(tx, args, kwargs)
		}
		return Call(tx, fn, args, kwargs)
	}
	if _, ok := AsConstant(tx, obj); ok {
		return callConstantMethod(tx, obj, name, args, kwargs)
	}
	fn, err := GetAttr(tx, obj, name)
	if err != nil {
		return nil, err
	}
	return Call(tx, fn, args, kwargs)
}

// readsState lists C methods of object that read the attributes of an enum member.
var readsState = map[string]bool{
	"__getattribute__": true, "__dir__": true, "__getstate__": true, "__reduce__": true, "__reduce_ex__": true,
}

// callConstantMethod lets CPython call a method of an immutable value with known arguments.
func callConstantMethod(tx Translator, obj VariableTracker, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	o, ok := AsConstant(tx, obj)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "method %s of %s", name, Describe(tx, obj))
	}
	if _, member := enumMember(tx, obj); member && (readsState[name] || !plainMember(tx, o, "__getattribute__")) {
		return nil, unsupported(exc.CallUnsupported, "method %s of %s", name, Describe(tx, obj))
	}
	m, err := tx.Scope().GetAttr(o, name)
	if err != nil {
		return nil, observed(err)
	}
	if o.Kind() == py.FrozenSet {
		if _, known := constants(tx, args); !known {
			s, err := setOf(tx, obj, true)
			if err != nil {
				return nil, err
			}
			return s.CallMethod(tx, name, args, kwargs)
		}
	}
	if name == "format" && o.Kind() == py.Str {
		if r, ok, err := formatMethod(tx, o, args, kwargs); ok || err != nil {
			return r, err
		}
	}
	if name == "join" && len(args) == 1 && len(kwargs) == 0 && (o.Kind() == py.Str || o.Kind() == py.Bytes) {
		items, err := UnpackIterator(tx, args[0])
		// CPython replaces a TypeError of iter() with its own
		if e, raised := err.(*exc.Observed); raised && e.TypeName == "TypeError" {
			err = unsupported(exc.CallUnsupported, "join of %s", Describe(tx, args[0]))
		}
		if err != nil {
			return nil, err
		}
		for i, it := range items { // join reads the contents of instances of subclasses
			items[i] = MustRealize(tx, it)
			if c, ok := valueOf(items[i]).(*ConstantVariable); ok && c.Value.Kind() == o.Kind() {
				items[i] = c
			}
		}
		args = []VariableTracker{NewTuple(items, nil)}
	}
	if k := m.Kind(); k != py.Builtin && k != py.MethodWrapper {
		return Call(tx, wrapKnown(tx, m), args, kwargs)
	}
	if d, ok := tx.Scope().TypeLookup(o.Type(), name); ok {
		if r, ok, err := callStandIn(tx, d, append([]VariableTracker{obj}, args...), kwargs); ok || err != nil {
			return r, err
		}
	}
	return foldPure(tx, m, args, kwargs)
}

// foldCall calls a pure function on known values while translating.
func foldCall(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	all := append([]VariableTracker(nil), args...)
	names := make([]string, len(kwargs))
	for i, kw := range kwargs {
		all = append(all, kw.Value)
		names[i] = kw.Name
	}
	var held *ObjectVariable
	for i, a := range all {
		if err := fixSizes(tx, a); err != nil {
			return nil, err
		}
		v, err := Realize(tx, a)
		if err != nil {
			return nil, err
		}
		all[i] = v
		if o, ok := v.(*ObjectVariable); ok && searches(tx, fn) {
			if real, ok := o.realText(tx); ok {
				all[i] = NewConstant(real, nil)
				continue
			}
		}
		if o, ok := v.(*ObjectVariable); ok && o.value != nil && o.plainValue(tx) {
			if real, ok, err := o.realInstance(tx); err != nil {
				return nil, err
			} else if ok {
				all[i] = NewConstant(real, nil)
				continue
			}
			all[i], held = o.value, o
		}
	}
	objs, ok := constants(tx, all)
	copied := !ok
	if copied {
		if objs, ok = copiesOf(tx, all); !ok {
			for _, a := range all {
				if _, ok := copyOf(tx, a); !ok {
					return nil, unsupported(exc.CallUnsupported, "%s of %s", tx.Scope().Repr(fn), Describe(tx, a))
				}
			}
		}
	}
	r, err := callKnown(tx, fn, objs, names)
	if err != nil {
		if err = observed(err); held != nil {
			err = heldError(held, err)
		}
		return nil, err
	}
	if copied {
		return plainResult(tx, r, tx.Scope().Repr(fn))
	}
	return immutableResult(tx, r)
}

// foldPure does the same as foldCall, for a function that only reads its arguments. It passes copies of containers of
// known values. Therefore the result must be a plain value, which cannot contain such a copy.
func foldPure(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	r, err := foldCall(tx, fn, args, kwargs)
	if _, unknown := err.(*exc.Unsupported); !unknown {
		return r, err
	}
	objs := make([]py.Object, 0, len(args)+len(kwargs))
	names := KwNames(kwargs)
	for i := 0; i < len(args)+len(kwargs); i++ {
		v := VariableTracker(nil)
		if i < len(args) {
			v = args[i]
		} else {
			v = kwargs[i-len(args)].Value
		}
		o, ok := PlainCopy(tx, v)
		if !ok {
			return nil, err
		}
		objs = append(objs, o)
	}
	v, callErr := callKnown(tx, fn, objs, names)
	if callErr != nil {
		return nil, observed(callErr)
	}
	switch v.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes:
		return NewConstant(v, nil), nil
	}
	if tx.World().isNumpy(v) {
		return NewConstant(v, nil), nil
	}
	return nil, err
}

// PlainCopy returns a real object equal to v if v is plain data and all of it is known. It does not copy sets, since
// the copy would have another order.
func PlainCopy(tx Translator, v VariableTracker) (py.Object, bool) {
	v, err := Realize(tx, v)
	if err != nil || tx.World().Enter() != nil {
		return py.Object{}, false
	}
	defer tx.World().Leave()
	all := func(vs []VariableTracker) ([]py.Object, bool) {
		out := make([]py.Object, len(vs))
		for i, it := range vs {
			o, ok := PlainCopy(tx, it)
			if !ok {
				return nil, false
			}
			out[i] = o
		}
		return out, true
	}
	switch x := v.(type) {
	case *ConstantVariable:
		return x.Value, !tx.World().IsEnum(tx.Scope(), x.Value)
	case *RangeVariable, *SliceVariable:
		return AsConstant(tx, v)
	case *ShadowVariable:
		return copyOf(tx, x)
	case *ListVariable:
		items, ok := all(x.items)
		return tx.Scope().List(items...), ok
	case *TupleVariable:
		items, ok := all(x.items)
		return tx.Scope().Tuple(items...), ok && x.class.IsNull()
	case *DictVariable:
		keys, ok := all(x.keys)
		values, ok2 := all(x.values)
		if !ok || !ok2 || !x.class.IsNull() {
			return py.Object{}, false
		}
		pairs := make([][2]py.Object, len(keys))
		for i := range keys {
			pairs[i] = [2]py.Object{keys[i], values[i]}
		}
		return py.Answered(tx.Scope().Dict(pairs...))
	}
	return py.Object{}, false
}

// GetAttr reads obj.name.
func GetAttr(tx Translator, obj VariableTracker, name string) (VariableTracker, error) {
	v, err := getAttr(tx, obj, name)
	if b, ok := v.(*BoundBuiltin); ok && !b.elsewhere.IsNull() {
		return nil, unsupported(exc.AttrUnsupported, "%s of %s, a C method of another class", name, Describe(tx, b.obj))
	}
	return v, err
}

// LoadMethod reads obj.name for a call. If below is nil, top is the callable. Otherwise below is the function to call,
// and top is its first argument.
func LoadMethod(tx Translator, obj VariableTracker, name string) (below, top VariableTracker, err error) {
	v, err := getAttr(tx, obj, name)
	if err != nil {
		return nil, nil, err
	}
	b, ok := v.(*BoundBuiltin)
	if !ok {
		return nil, v, nil
	}
	if b.elsewhere.IsNull() {
		return nil, b.ToBeCalled(), nil
	}
	if t, err := PythonType(tx, b.obj); err == nil && py.Is(t, py.GenericGetAttr) { // LOAD_METHOD does not bind it
		return NewBuiltin(b.elsewhere, "", nil), b.obj, nil
	}
	return nil, nil, unsupported(exc.AttrUnsupported, "%s of %s, a C method of another class", name,
		Describe(tx, b.obj))
}

func getAttr(tx Translator, obj VariableTracker, name string) (VariableTracker, error) {
	if m, ok := unseenMethod(tx, obj, name); ok {
		return m, nil
	}
	if m, ok := boundGet(tx, obj, name); ok {
		return m, nil
	}
	obj, err := Realize(tx, obj)
	if err != nil {
		return nil, err
	}
	if withinChanged(tx, obj) {
		return PythonAttr(tx, obj, name)
	}
	if g, ok := obj.(AttrGetter); ok {
		return g.GetAttr(tx, name)
	}
	if o, ok := AsConstant(tx, obj); ok {
		if tx.World().IsEnum(tx.Scope(), o) {
			if !plainMember(tx, o, "__getattribute__", "__getattr__") {
				return nil, unsupported(exc.AttrUnsupported, "%s of a member of %s", name, py.TypeName(o.Type()))
			}
			if v, err := memberAttr(tx, o, name); v != nil || err != nil {
				return v, err
			}
			if v, err := computedAttr(tx, obj, name); v != nil || err != nil {
				return v, err
			}
			_, own := tx.Scope().InstanceAttr(o, name)
			if d, ok := tx.Scope().TypeLookup(o.Type(), name); ok && !own {
				src := guards.NewTypeAttrSource(classSource(tx, o.Type()), name)
				if k := d.Kind(); k == py.MethodDescr || k == py.WrapperDescr {
					return bindNative(tx, obj, o.Type(), name, d, src), nil
				}
				if get, data := isDescriptor(tx, d); !get && !data {
					return tx.Build(d, src), nil
				}
			}
		}
		r, err := tx.Scope().GetAttr(o, name)
		if err != nil {
			namesTypes(tx, err, []py.Object{o})
			return nil, observed(err)
		}
		switch r.Kind() {
		case py.Builtin, py.MethodWrapper, py.Method:
			if o.Kind() == py.GetSet {
				return attributeResult(tx, r, name)
			}
			return &BoundBuiltin{obj: obj, name: name}, nil
		case py.MappingProxy: // inspect.Signature.parameters of a constant
			return newMappingProxy(tx, r)
		}
		return attributeResult(tx, r, name)
	}
	if _, ok := obj.(MethodCaller); ok || name == "__class__" {
		return methodAttr(tx, obj, name)
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of %s", name, Describe(tx, obj))
}

// MethodAttr exports methodAttr.
func MethodAttr(tx Translator, obj VariableTracker, name string) (VariableTracker, error) {
	return methodAttr(tx, obj, name)
}

// memberAttr returns an instance attribute of an enum member. If there is none, it returns nil and adds a guard that
// there is none.
func memberAttr(tx Translator, o py.Object, name string) (VariableTracker, error) {
	if name == "__dict__" {
		return nil, unsupported(exc.AttrUnsupported, "__dict__ of a member of %s", py.TypeName(o.Type()))
	}
	src := guards.NewConstSource(tx.Output().Const(o), "___member_"+name)
	v, ok := tx.Scope().InstanceAttr(o, name)
	if !ok {
		if py.HasInstanceStorage(o) {
			tx.Output().AddGuards(guards.HasAttr(src, name, false))
		}
		return nil, nil
	}
	if d, ok := tx.Scope().TypeLookup(o.Type(), name); ok {
		if _, data := isDescriptor(tx, d); data {
			return nil, nil
		}
	}
	return tx.Build(v, guards.NewAttrSource(src, name)), nil
}

// methodAttr returns an attribute of a builtin container. An attribute that is a method of its type is bound.
func methodAttr(tx Translator, obj VariableTracker, name string) (VariableTracker, error) {
	t, err := PythonType(tx, obj)
	if err != nil {
		return nil, err
	}
	if name == "__class__" {
		return wrapKnown(tx, t), nil
	}
	if name == "__doc__" {
		return nil, unsupported(exc.AttrUnsupported, "%s of %s", name, Describe(tx, obj))
	}
	d, ok := tx.Scope().TypeLookup(t, name)
	if !ok {
		return nil, noAttribute(tx, t, name)
	}
	switch d.Kind() {
	case py.NoneKind: // for example, list.__hash__
		return NoneConst(), nil
	case py.GetSet, py.Member, py.Property:
		return nil, unsupported(exc.AttrUnsupported, "%s of %s", name, Describe(tx, obj))
	}
	return &BoundBuiltin{obj: obj, name: name}, nil
}

// SetAttr runs obj.name = value, or del obj.name if value is nil.
func SetAttr(tx Translator, obj VariableTracker, name string, value VariableTracker) error {
	obj, err := Realize(tx, obj)
	if err != nil {
		return err
	}
	if s, ok := obj.(AttrSetter); ok {
		return s.SetAttr(tx, name, value)
	}
	return unsupported(exc.StoreUnsupported, "attribute %s of %s", name, Describe(tx, obj))
}

// GetItem runs obj[key].
func GetItem(tx Translator, obj, key VariableTracker) (VariableTracker, error) {
	if v, decided, err := lookUp(tx, obj, key); decided || err != nil {
		if v == nil && err == nil {
			err = keyError(tx, key)
		}
		return v, err
	}
	obj, err := Realize(tx, obj)
	if err != nil {
		return nil, err
	}
	if key, err = arrayKey(tx, obj, key); err != nil {
		return nil, err
	}
	if key, err = itemKey(tx, obj, key); err != nil {
		return nil, err
	}
	if m, err := moduleSlice(tx, obj, key); m != nil || err != nil {
		return m, err
	}
	if g, ok := obj.(ItemGetter); ok {
		return g.GetItem(tx, key)
	}
	if key, err = Index(tx, key); err != nil {
		return nil, err
	}
	if s, ok := obj.(Sequence); ok {
		if err := fixSizes(tx, key); err != nil {
			return nil, err
		}
		return sequenceItem(tx, obj, s, key)
	}
	o, ok := AsConstant(tx, obj)
	k, ok2 := AsConstant(tx, key)
	if ok && !ok2 && o == tx.World().TypingCallable {
		k, ok2 = parameterTypes(tx, key)
	}
	if ok && ok2 {
		if err := tx.World().computable(tx, []py.Object{o, k}, "__getitem__", "__index__", "__hash__",
			"__eq__"); err != nil {
			return nil, err
		}
		r, err := tx.Scope().GetItem(o, k)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, r)
	}
	return nil, unsupported(exc.SubscriptUnsupported, "%s[%s]", Describe(tx, obj), Describe(tx, key))
}

// sequenceItem indexes or slices a list, tuple or range. CPython computes the indices of a slice.
func sequenceItem(tx Translator, obj VariableTracker, seq Sequence, key VariableTracker) (VariableTracker, error) {
	items, err := seq.Items(tx)
	if err != nil {
		return nil, err
	}
	switch obj.(type) {
	case *ListVariable, *TupleVariable, *RangeVariable:
	default:
		return nil, unsupported(exc.SubscriptUnsupported, "%s[%s]", Describe(tx, obj), Describe(tx, key))
	}
	k, err := indexOf(tx, key)
	if err != nil {
		return nil, err
	}
	s := tx.Scope()
	if k.Kind() != py.Slice {
		if at, ok := py.Answered(s.Index(k)); ok {
			if n, ok := py.AsInt(at); ok {
				i := int(n)
				if i < 0 {
					i += len(items)
				}
				if i >= 0 && i < len(items) {
					return items[i], nil
				}
			}
		}
		real, err := emptyOf(tx, obj)
		if err == nil {
			_, err = s.GetItem(real, k) // CPython raises the error
		}
		if err == nil {
			err = unsupported(exc.SubscriptUnsupported, "%s[%s]", Describe(tx, obj), Describe(tx, key))
		}
		return nil, observed(err)
	}
	bounds, err := s.CallMethod(k, "indices", s.Int(int64(len(items))))
	if err != nil {
		return nil, observed(err)
	}
	b := s.Items(bounds)
	start, _ := py.AsInt(b[0])
	stop, _ := py.AsInt(b[1])
	step, ok := py.AsInt(b[2])
	// a step this far ends the loop at once, and i + step could overflow
	if far := int64(len(items)) + 1; !ok || step > far || step < -far {
		backwards, err := s.Compare(opcode.CMP_LT, b[2], s.Int(0))
		if err != nil {
			return nil, observed(err)
		}
		step = far
		if backwards == py.True() {
			step = -far
		}
	}
	out := []VariableTracker{}
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		out = append(out, items[i])
	}
	switch v := obj.(type) {
	case *ListVariable:
		return NewList(out, nil), nil
	case *TupleVariable:
		if v.Exact() && step == 1 && len(out) == len(items) {
			return v, nil // CPython returns the tuple itself
		}
		if v.class == tx.World().SizeType {
			return NewTupleOf(out, v.class, nil), nil
		}
		return NewTuple(out, nil), nil
	case *RangeVariable:
		r, err := s.GetItem(v.Value, k)
		if err != nil {
			return nil, observed(err)
		}
		return NewRangeObject(r, nil), nil
	}
	return nil, unsupported(exc.SubscriptUnsupported, "slice of %s", Describe(tx, obj))
}

// emptyOf returns an empty list, tuple or range. CPython indexes it to raise the error for a wrong subscript.
func emptyOf(tx Translator, v VariableTracker) (py.Object, error) {
	switch v.(type) {
	case *ListVariable:
		return tx.Scope().List(), nil
	case *RangeVariable:
		return tx.Scope().Call(tx.World().RangeType, tx.Scope().Int(0))
	}
	return tx.Scope().Tuple(), nil
}

// SetItem runs obj[key] = value, or del obj[key] if value is nil.
func SetItem(tx Translator, obj, key, value VariableTracker) error {
	if same, err := storesSame(tx, obj, key, value); same || err != nil {
		return err
	}
	obj, err := Realize(tx, obj)
	if err != nil {
		return err
	}
	if key, err = arrayKey(tx, obj, key); err != nil {
		return err
	}
	if key, err = itemKey(tx, obj, key); err != nil {
		return err
	}
	if s, ok := obj.(ItemSetter); ok {
		return s.SetItem(tx, key, value)
	}
	return unsupported(exc.StoreUnsupported, "item of %s", Describe(tx, obj))
}

// itemKey realizes a key. A number that is a symbol stays what it is if it selects from a tensor or from an array of
// numpy. Before a whole graph, a number known only at run time does not.
func itemKey(tx Translator, obj, key VariableTracker) (VariableTracker, error) {
	if x := asSymNode(tx, key); x != nil {
		_, hinted := tx.World().Env().Hint(x.Size)
		if IsTensor(obj) && (hinted || !tx.Output().WholeGraph()) ||
			asArray(tx, obj) != nil && !tx.Output().WholeGraph() {
			return key, nil
		}
	}
	return Realize(tx, key)
}

// Is returns `a is b`, or an error that breaks the graph if that is unknown.
func Is(tx Translator, a, b VariableTracker) (bool, error) {
	if x, y := polyfillMarker(tx, a), polyfillMarker(tx, b); x != "" || y != "" {
		return x == y, nil // the program cannot reach markers, so neither operand is realized
	}
	if same, known := sizeIs(tx, a, b); known {
		return same, nil
	}
	a, err := realOrNotNone(tx, a, b)
	if err != nil || a == nil {
		return false, err
	}
	if b, err = realOrNotNone(tx, b, a); err != nil || b == nil {
		return false, err
	}
	if a == b {
		return true, nil
	}
	if isComputed(a) || isComputed(b) { // the value may be a small int, True or False, which exist only once
		if isNone(a) || isNone(b) {
			return false, nil
		}
		return false, unsupported(exc.OperatorUnsupported, "identity of %s and %s", Describe(tx, a), Describe(tx, b))
	}
	if isPart(a) && isNone(b) || isPart(b) && isNone(a) {
		return false, nil
	}
	if isNumpyNumber(tx, a) && isNumpyNumber(tx, b) { // equal ones may be two objects
		return false, unsupported(exc.OperatorUnsupported, "identity of two numpy scalars")
	}
	if isOpaque(a) || isOpaque(b) || unknownTracebacks(a, b) {
		return false, unsupported(exc.OperatorUnsupported, "identity of %s and %s", Describe(tx, a), Describe(tx, b))
	}
	ca, aok := a.(*ConstantVariable)
	cb, bok := b.(*ConstantVariable)
	if aok && bok {
		return sameConstant(tx, ca, cb)
	}
	if aok != bok { // a constant is never identical to a tracked object, except for tuples and frozensets
		o, other := ca, b
		if bok {
			o, other = cb, a
		}
		_, tuple := other.(*TupleVariable)
		k := o.Value.Kind()
		if tuple != (k == py.Tuple || k == py.TupleSub) || !tuple && k != py.FrozenSet {
			return false, nil
		}
		return false, unsupported(exc.OperatorUnsupported, "identity of %s and %s", Describe(tx, a), Describe(tx, b))
	}
	if x, ok := standsForObject(tx, a); ok {
		if y, ok := standsForObject(tx, b); ok {
			return x == y, nil
		}
	}
	switch x := a.(type) {
	case *FunctionVariable:
		if y, ok := b.(*FunctionVariable); ok && !x.Fn.IsNull() && !y.Fn.IsNull() {
			if apartByCode(tx, x, y) {
				return false, nil
			}
			guardIdentity(tx, x)
			guardIdentity(tx, y)
			return x.Fn == y.Fn, nil
		}
	case *TensorVariable:
		if y, ok := b.(*TensorVariable); ok {
			return x.sameTensor(tx, y)
		}
	case *TupleVariable:
		if y, ok := b.(*TupleVariable); ok {
			return sameTuple(tx, x, y)
		}
	}
	if a.Source() != nil && b.Source() != nil {
		tx.Output().AddGuards(noAlias(a.Source(), b.Source()))
	}
	return false, nil
}

// apartByCode reports whether two functions have different code, which guards compare. So other closures of the same
// code pass.
func apartByCode(tx Translator, x, y *FunctionVariable) bool {
	var codes [2]py.Object
	for i, f := range []*FunctionVariable{x, y} {
		if _, constant := f.Src.(*guards.ConstSource); f.Src == nil || constant {
			return false
		}
		code, ok := tx.Scope().FunctionField(f.Fn, py.FuncCode)
		if !ok {
			return false
		}
		codes[i] = code
	}
	if codes[0] == codes[1] {
		return false
	}
	for i, f := range []*FunctionVariable{x, y} {
		src := guards.NewFunctionFieldSource(f.Src, guards.FuncCode)
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(codes[i]), guards.KeepWeak))
	}
	return true
}

// standsForObject returns the real object of v if v is of a kind for which each read makes another tracker. ok is false
// for other kinds.
func standsForObject(tx Translator, v VariableTracker) (py.Object, bool) {
	switch x := v.(type) {
	case *ClassVariable:
		return x.Class, true
	case *BuiltinVariable, *TorchVariable, *UnboundMethod, *ModuleVariable, *OptimizedVariable:
		return AsConstant(tx, v)
	}
	return py.Object{}, false
}

// sameConstant reports whether two constants are the same object. The answer is known for singletons, small ints,
// objects of different types, and frozensets that the program made. For other constants the graph breaks.
func sameConstant(tx Translator, a, b *ConstantVariable) (bool, error) {
	ka, kb := a.Value.Kind(), b.Value.Kind()
	singleton := func(k py.Kind) bool {
		return k == py.NoneKind || k == py.BoolKind || k == py.EllipsisKind || k == py.NotImplemented ||
			k == py.Other || k == py.Code
	}
	if singleton(ka) || singleton(kb) {
		return a.Value == b.Value, nil
	}
	if ka == py.Int && kb == py.Int {
		x, ok1 := py.AsInt(a.Value)
		y, ok2 := py.AsInt(b.Value)
		small := func(v int64) bool { return v >= -5 && v <= 256 }
		if ok1 && ok2 && (small(x) || small(y)) {
			return x == y, nil
		}
	}
	if a.Value.Type() != b.Value.Type() {
		return false, nil
	}
	// the program made both, so a.Value and b.Value are the objects that CPython would make
	if ka == py.FrozenSet && a.Src == nil && b.Src == nil {
		return a.Value == b.Value, nil
	}
	return false, unsupported(exc.OperatorUnsupported, "identity of %s and %s", Describe(tx, a), Describe(tx, b))
}
