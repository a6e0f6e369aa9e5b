package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// AsProxy returns the graph operand for v.
func AsProxy(tx Translator, v VariableTracker) (fxgraph.Arg, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if err := tx.World().enter(); err != nil {
		return nil, err
	}
	defer tx.World().leave()
	if p, ok := v.(Proxy); ok {
		return p.AsProxy(tx)
	}
	return nil, unsupported(exc.CallUnsupported, "%s as an operand of the graph", Describe(tx, v))
}

// PythonType returns type(v).
func PythonType(tx Translator, v VariableTracker) (py.Object, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if t, ok := v.(Typed); ok {
		return t.PythonType(tx)
	}
	return py.Object{}, unsupported(exc.CallUnsupported, "type of %s", Describe(tx, v))
}

// Truth is bool(v) where it is known; a tensor's asks for a split with DataDependent set.
func Truth(tx Translator, v VariableTracker) (bool, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return false, err
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

// Len is len(v).
func Len(tx Translator, v VariableTracker) (int, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return 0, err
	}
	if l, ok := v.(Lener); ok {
		return l.Len(tx)
	}
	if o, ok := AsConstant(tx, v); ok {
		n, err := tx.Scope().Len(o)
		return n, observed(err)
	}
	return 0, unsupported(exc.CallUnsupported, "len of %s", Describe(tx, v))
}

// Unpack returns all items that iterating v gives.
func Unpack(tx Translator, v VariableTracker) ([]VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if it, ok := v.(Iterator); ok {
		var out []VariableTracker
		for len(out) < maxUnroll {
			item, ok, err := it.Next(tx)
			if err != nil {
				return nil, err
			}
			if !ok {
				return out, nil
			}
			out = append(out, item)
		}
		return nil, unsupported(exc.TooLarge, "iterator of more than %d items", maxUnroll)
	}
	if s, ok := v.(Sequence); ok {
		items, err := s.Items(tx)
		return append([]VariableTracker(nil), items...), err
	}
	if o, ok := AsConstant(tx, v); ok {
		switch o.Kind() {
		case py.Str, py.Bytes:
			l, err := tx.Scope().Call(tx.World().ListType, o)
			if err != nil {
				return nil, observed(err)
			}
			var out []VariableTracker
			for _, it := range tx.Scope().Items(l) {
				out = append(out, NewConstant(it, nil))
			}
			return out, nil
		case py.NoneKind, py.Int, py.Float, py.BoolKind, py.Complex:
			return nil, &exc.Observed{TypeName: "TypeError", Text: "object is not iterable"}
		}
	}
	if c, ok := v.(*ClassVariable); ok && c.Class.Type() == tx.World().EnumMeta {
		l, err := tx.Scope().Call(tx.World().ListType, c.Class)
		if err != nil {
			return nil, observed(err)
		}
		var out []VariableTracker
		for _, it := range tx.Scope().Items(l) {
			out = append(out, NewConstant(it, nil))
		}
		return out, nil
	}
	if obj, ok := v.(*ObjectVariable); ok {
		it, err := Iter(tx, obj)
		if err != nil {
			return nil, err
		}
		return Unpack(tx, it)
	}
	return nil, unsupported(exc.IterUnsupported, "iteration over %s", Describe(tx, v))
}

// Iter is iter(v).
func Iter(tx Translator, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if _, ok := v.(Iterator); ok {
		return v, nil
	}
	if s, ok := v.(Sequence); ok {
		if _, err := s.Items(tx); err != nil {
			return nil, err
		}
		return NewSequenceIterator(v, s, 0), nil
	}
	if obj, ok := v.(*ObjectVariable); ok {
		m, err := obj.lookupSpecial(tx, "__iter__")
		if err != nil {
			return nil, err
		}
		if m != nil {
			r, err := Call(tx, m, nil, nil)
			if err != nil {
				return nil, err
			}
			if o, ok := r.(*ObjectVariable); ok {
				return nil, unsupported(exc.IterUnsupported, "iterator of class %s", py.TypeName(o.Class))
			}
			return Iter(tx, r)
		}
		return nil, unsupported(exc.IterUnsupported, "iteration over a %s", py.TypeName(obj.Class))
	}
	items, err := Unpack(tx, v)
	if err != nil {
		return nil, err
	}
	t := NewTuple(items, nil)
	return NewSequenceIterator(t, t, 0), nil
}

// Call is fn(*args, **kwargs).
func Call(tx Translator, fn VariableTracker, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if err := tx.World().enter(); err != nil {
		return nil, err
	}
	defer tx.World().leave()
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
	return nil, unsupported(exc.CallUnsupported, "%s", Describe(tx, fn))
}

// CallMethod is obj.name(*args, **kwargs).
func CallMethod(tx Translator, obj VariableTracker, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	obj, err := Realize(tx, obj)
	if err != nil {
		return nil, err
	}
	if m, ok := obj.(MethodCaller); ok {
		return m.CallMethod(tx, name, args, kwargs)
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

// callConstantMethod asks CPython for a method of an immutable value with known arguments.
func callConstantMethod(tx Translator, obj VariableTracker, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	o, ok := AsConstant(tx, obj)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "method %s of %s", name, Describe(tx, obj))
	}
	m, err := tx.Scope().GetAttr(o, name)
	if err != nil {
		return nil, observed(err)
	}
	if name == "join" && len(args) == 1 && len(kwargs) == 0 && (o.Kind() == py.Str || o.Kind() == py.Bytes) {
		items, err := Unpack(tx, args[0])
		if err != nil {
			return nil, err
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
	if _, err := RealizeAll(tx, all); err != nil {
		return nil, err
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
	r, err := tx.Scope().CallKw(fn, objs, names)
	if err != nil {
		return nil, observed(err)
	}
	if copied {
		return plainResult(tx, r, tx.Scope().Repr(fn))
	}
	return immutableResult(tx, r)
}

// foldPure is foldCall of a function that only reads its arguments: containers of known values are handed over as copies,
// as long as the result is a plain value that cannot be, or hold, one of theirs.
func foldPure(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	r, err := foldCall(tx, fn, args, kwargs)
	if _, unknown := err.(*exc.Unsupported); !unknown {
		return r, err
	}
	objs := make([]py.Object, 0, len(args)+len(kwargs))
	names := kwNames(kwargs)
	for i := 0; i < len(args)+len(kwargs); i++ {
		v := VariableTracker(nil)
		if i < len(args) {
			v = args[i]
		} else {
			v = kwargs[i-len(args)].Value
		}
		o, ok := plainCopy(tx, v)
		if !ok {
			return nil, err
		}
		objs = append(objs, o)
	}
	v, callErr := tx.Scope().CallKw(fn, objs, names)
	if callErr != nil {
		return nil, observed(callErr)
	}
	switch v.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes:
		return NewConstant(v, nil), nil
	}
	return nil, err
}

// plainCopy is a real object equal to v, when v is plain data all of which is known. A set is not: its order would be another.
func plainCopy(tx Translator, v VariableTracker) (py.Object, bool) {
	v, err := Realize(tx, v)
	if err != nil || tx.World().enter() != nil {
		return py.Object{}, false
	}
	defer tx.World().leave()
	all := func(vs []VariableTracker) ([]py.Object, bool) {
		out := make([]py.Object, len(vs))
		for i, it := range vs {
			o, ok := plainCopy(tx, it)
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
		d, err := tx.Scope().Dict(pairs...)
		return d, err == nil
	}
	return py.Object{}, false
}

// GetAttr is obj.name.
func GetAttr(tx Translator, obj VariableTracker, name string) (VariableTracker, error) {
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
		r, err := tx.Scope().GetAttr(o, name)
		if err != nil {
			return nil, observed(err)
		}
		if k := r.Kind(); k == py.Builtin || k == py.MethodWrapper || k == py.Method {
			return &BoundBuiltin{obj: obj, name: name}, nil
		}
		return immutableResult(tx, r)
	}
	if name == "__class__" {
		t, err := PythonType(tx, obj)
		if err != nil {
			return nil, err
		}
		return NewClass(t, nil), nil
	}
	if _, ok := obj.(MethodCaller); ok {
		t, err := PythonType(tx, obj)
		if err != nil {
			return nil, err
		}
		if _, ok := tx.Scope().TypeLookup(t, name); !ok {
			return nil, noAttribute(t, name)
		}
		return &BoundBuiltin{obj: obj, name: name}, nil
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of %s", name, Describe(tx, obj))
}

// SetAttr is obj.name = value; value nil deletes.
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

// GetItem is obj[key].
func GetItem(tx Translator, obj, key VariableTracker) (VariableTracker, error) {
	obj, err := Realize(tx, obj)
	if err != nil {
		return nil, err
	}
	if key, err = Realize(tx, key); err != nil {
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
		return sequenceItem(tx, obj, s, key)
	}
	o, ok := AsConstant(tx, obj)
	k, ok2 := AsConstant(tx, key)
	if ok && ok2 {
		r, err := tx.Scope().GetItem(o, k)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, r)
	}
	return nil, unsupported(exc.SubscriptUnsupported, "%s[%s]", Describe(tx, obj), Describe(tx, key))
}

// sequenceItem indexes or slices a list, tuple or range by asking CPython for the positions.
func sequenceItem(tx Translator, obj VariableTracker, seq Sequence, key VariableTracker) (VariableTracker, error) {
	items, err := seq.Items(tx)
	if err != nil {
		return nil, err
	}
	if i, ok := ConstInt(tx, key); ok {
		if i < 0 {
			i += len(items)
		}
		if i < 0 || i >= len(items) {
			return nil, &exc.Observed{TypeName: "IndexError", Text: "index out of range"}
		}
		return items[i], nil
	}
	k, ok := AsConstant(tx, key)
	if !ok || k.Kind() != py.Slice {
		return nil, unsupported(exc.SubscriptUnsupported, "%s[%s]", Describe(tx, obj), Describe(tx, key))
	}
	s := tx.Scope()
	bounds, err := s.CallMethod(k, "indices", s.Int(int64(len(items))))
	if err != nil {
		return nil, observed(err)
	}
	b := s.Items(bounds)
	start, _ := py.AsInt(b[0])
	stop, _ := py.AsInt(b[1])
	step, _ := py.AsInt(b[2])
	out := []VariableTracker{}
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		out = append(out, items[i])
	}
	switch v := obj.(type) {
	case *ListVariable:
		return NewList(out, nil), nil
	case *TupleVariable:
		if v.class.IsNull() && step == 1 && len(out) == len(items) {
			return v, nil // CPython gives the tuple itself
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

// SetItem is obj[key] = value; value nil deletes.
func SetItem(tx Translator, obj, key, value VariableTracker) error {
	obj, err := Realize(tx, obj)
	if err != nil {
		return err
	}
	if key, err = Realize(tx, key); err != nil {
		return err
	}
	if s, ok := obj.(ItemSetter); ok {
		return s.SetItem(tx, key, value)
	}
	return unsupported(exc.StoreUnsupported, "item of %s", Describe(tx, obj))
}

// Is is `a is b` where it is known.
func Is(tx Translator, a, b VariableTracker) (bool, error) {
	if x, y := polyfillMarker(tx, a), polyfillMarker(tx, b); x != "" || y != "" {
		return x == y, nil // nothing of the program's is one, so nothing need be looked at
	}
	a, err := Realize(tx, a)
	if err != nil {
		return false, err
	}
	if b, err = Realize(tx, b); err != nil {
		return false, err
	}
	if a == b {
		return true, nil
	}
	if isOpaque(a) || isOpaque(b) {
		return false, unsupported(exc.OperatorUnsupported, "identity of %s and %s", Describe(tx, a), Describe(tx, b))
	}
	ca, aok := a.(*ConstantVariable)
	cb, bok := b.(*ConstantVariable)
	if aok && bok {
		return sameConstant(tx, ca, cb)
	}
	if aok != bok { // a constant against a tracked object: never the same object, tuples and frozensets apart
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
			if x.Src != nil && y.Src != nil {
				return false, unsupported(exc.OperatorUnsupported, "identity of two functions")
			}
			return x.Fn == y.Fn, nil
		}
	case *TensorVariable:
		if y, ok := b.(*TensorVariable); ok {
			return x.sameTensor(tx, y)
		}
	}
	if a.Source() != nil && b.Source() != nil {
		tx.Output().AddGuards(noAlias(a.Source(), b.Source()))
	}
	return false, nil
}

// standsForObject is the object behind trackers that are made anew each time it is met.
func standsForObject(tx Translator, v VariableTracker) (py.Object, bool) {
	switch v.(type) {
	case *ClassVariable, *BuiltinVariable, *TorchVariable, *UnboundMethod, *ModuleVariable:
		return AsConstant(tx, v)
	}
	return py.Object{}, false
}

// sameConstant decides identity of two constants: small and interned ones by their objects when both were read from the
// frame by identity, singletons always.
func sameConstant(tx Translator, a, b *ConstantVariable) (bool, error) {
	ka, kb := a.Value.Kind(), b.Value.Kind()
	singleton := func(k py.Kind) bool {
		return k == py.NoneKind || k == py.BoolKind || k == py.EllipsisKind || k == py.NotImplemented || k == py.Other
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
	return false, unsupported(exc.OperatorUnsupported, "identity of %s and %s", Describe(tx, a), Describe(tx, b))
}

// Equal is bool(a == b) where it is known.
func Equal(tx Translator, a, b VariableTracker) (bool, error) {
	if a == b {
		if _, ok := a.(*TensorVariable); ok {
			return true, nil // containers compare by identity first
		}
	}
	r, err := Compare(tx, CompareEq, a, b)
	if err != nil {
		return false, err
	}
	return Truth(tx, r)
}

// Comparison numbers of COMPARE_OP.
const (
	CompareLt = iota
	CompareLe
	CompareEq
	CompareNe
	CompareGt
	CompareGe
)

var compareNames = [...]string{"lt", "le", "eq", "ne", "gt", "ge"}

// Compare is a rich comparison.
func Compare(tx Translator, op int, a, b VariableTracker) (VariableTracker, error) {
	if err := tx.World().enter(); err != nil {
		return nil, err
	}
	defer tx.World().leave()
	a, err := Realize(tx, a)
	if err != nil {
		return nil, err
	}
	if b, err = Realize(tx, b); err != nil {
		return nil, err
	}
	if isOpaque(a) || isOpaque(b) {
		return PythonCompare(tx, op, a, b)
	}
	if isTensor(a) || isTensor(b) {
		return tensorOperator(tx, compareNames[op], false, a, b)
	}
	if oa, ok := AsConstant(tx, a); ok {
		if ob, ok := AsConstant(tx, b); ok {
			r, err := tx.Scope().Compare(op, oa, ob)
			if err != nil {
				return nil, observed(err)
			}
			return NewConstant(r, nil), nil
		}
	}
	if r, ok, err := compareObjects(tx, op, a, b); ok || err != nil {
		return r, err
	}
	if op == CompareEq || op == CompareNe {
		sa, oka := a.(Sequence)
		sb, okb := b.(Sequence)
		if oka && okb && a.Kind() == b.Kind() {
			if _, isDict := a.(*DictVariable); !isDict {
				same, err := equalItems(tx, sa, sb)
				if err != nil {
					return nil, err
				}
				return BoolConst(same == (op == CompareEq)), nil
			}
		}
		if identityKind(a) && identityKind(b) {
			same, err := Is(tx, a, b)
			if err != nil {
				return nil, err
			}
			return BoolConst(same == (op == CompareEq)), nil
		}
	}
	if oa, ok := copyOf(tx, a); ok {
		if ob, ok := copyOf(tx, b); ok {
			r, err := tx.Scope().Compare(op, oa, ob)
			if err != nil {
				return nil, observed(err)
			}
			return plainResult(tx, r, compareNames[op])
		}
	}
	if op == CompareEq || op == CompareNe {
		if fa, fb := family(tx, a), family(tx, b); fa != "" && fb != "" && fa != fb {
			return BoolConst(op == CompareNe), nil
		}
	}
	return nil, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), compareNames[op], Describe(tx, b))
}

// family names the builtin types whose values never equal one of another family's; "" for what decides for itself.
func family(tx Translator, v VariableTracker) string {
	switch x := v.(type) {
	case *ListVariable:
		return "list"
	case *TupleVariable:
		return "tuple"
	case *DictVariable:
		return "dict"
	case *SetVariable:
		return "set"
	case *RangeVariable:
		return "range"
	case *ConstantVariable:
		switch x.Value.Kind() {
		case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes, py.EllipsisKind:
			return "scalar"
		}
		if eq, ok := tx.Scope().TypeLookup(x.Value.Type(), "__eq__"); ok && tx.World().IsObjectMethod(tx.Scope(), "__eq__", eq) {
			return "identity" // an enum's member
		}
	}
	return ""
}

// identityKind tells kinds whose == is identity, or that never equal a value of another kind.
func identityKind(v VariableTracker) bool {
	switch c := v.(type) {
	case *FunctionVariable, *ClassVariable, *BuiltinVariable, *TorchVariable, *ModuleVariable:
		return true
	case *ConstantVariable:
		k := c.Value.Kind()
		return k == py.NoneKind || k == py.Str || k == py.Int || k == py.BoolKind
	}
	return false
}

func equalItems(tx Translator, a, b Sequence) (bool, error) {
	x, err := a.Items(tx)
	if err != nil {
		return false, err
	}
	y, err := b.Items(tx)
	if err != nil || len(x) != len(y) {
		return false, err
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		same, err := Equal(tx, x[i], y[i])
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// trySpecial calls x's special method with y; false when x's class has none or it returns NotImplemented.
func trySpecial(tx Translator, x, y VariableTracker, name string) (VariableTracker, bool, error) {
	o, ok := x.(*ObjectVariable)
	if s, isStandIn := x.(standIn); isStandIn {
		o, ok = s.parts().state, true
	}
	if !ok {
		return nil, false, nil
	}
	m, err := o.lookupSpecial(tx, name)
	if err != nil || m == nil {
		return nil, false, err
	}
	r, err := Call(tx, m, []VariableTracker{y}, nil)
	if err != nil {
		return nil, false, err
	}
	if r, err = Realize(tx, r); err != nil {
		return nil, false, err
	}
	if c, ok := AsConstant(tx, r); ok && c.Kind() == py.NotImplemented {
		return nil, false, nil
	}
	return r, true, nil
}

// comparesAsObject tells values that know no equality with an object of a Python class: builtin types, and such objects.
func comparesAsObject(tx Translator, v VariableTracker) bool {
	_, ok := v.(*ObjectVariable)
	return ok || family(tx, v) != "" || identityKind(v)
}

// compareObjects runs a user class's own comparison.
func compareObjects(tx Translator, op int, a, b VariableTracker) (VariableTracker, bool, error) {
	try := func(x, y VariableTracker, name string) (VariableTracker, bool, error) {
		return trySpecial(tx, x, y, name)
	}
	swapped := [...]int{CompareGt, CompareGe, CompareEq, CompareNe, CompareLt, CompareLe}
	if r, ok, err := try(a, b, "__"+compareNames[op]+"__"); ok || err != nil {
		return r, ok, err
	}
	if r, ok, err := try(b, a, "__"+compareNames[swapped[op]]+"__"); ok || err != nil {
		return r, ok, err
	}
	_, ao := a.(*ObjectVariable)
	_, bo := b.(*ObjectVariable)
	if op == CompareNe { // object.__ne__ is what __eq__ says, turned around; then the other's
		for _, p := range [][2]VariableTracker{{a, b}, {b, a}} {
			r, ok, err := try(p[0], p[1], "__eq__")
			if err != nil {
				return nil, false, err
			}
			if ok {
				t, err := Truth(tx, r)
				return BoolConst(!t), true, err
			}
		}
	}
	if (ao || bo) && (op == CompareEq || op == CompareNe) && comparesAsObject(tx, a) && comparesAsObject(tx, b) {
		same, err := Is(tx, a, b)
		return BoolConst(same == (op == CompareEq)), true, err
	}
	return nil, false, nil
}

// Contains is `v in c`.
func Contains(tx Translator, c, v VariableTracker) (bool, error) {
	c, err := Realize(tx, c)
	if err != nil {
		return false, err
	}
	if v, err = Realize(tx, v); err != nil {
		return false, err
	}
	switch x := c.(type) {
	case *DictVariable:
		_, ok, err := x.get(tx, v)
		return ok, err
	case *SetVariable:
		_, ok, err := x.d.get(tx, v)
		return ok, err
	case *DictViewVariable:
		if x.what == "keys" {
			_, ok, err := x.dict.get(tx, v)
			return ok, err
		}
	case *ObjectVariable:
		m, err := x.lookupSpecial(tx, "__contains__")
		if err != nil {
			return false, err
		}
		if m != nil {
			r, err := Call(tx, m, []VariableTracker{v}, nil)
			if err != nil {
				return false, err
			}
			return Truth(tx, r)
		}
		items, err := Unpack(tx, x)
		if err != nil {
			return false, err
		}
		return Contains(tx, NewTuple(items, nil), v)
	case *GlobalsVariable:
		return x.contains(tx, v)
	case *TensorVariable:
		return false, unsupported(exc.TensorToPython, "membership in a tensor")
	}
	if oc, ok := AsConstant(tx, c); ok {
		if ov, ok := AsConstant(tx, v); ok {
			r, err := tx.Scope().Contains(oc, ov)
			return r, observed(err)
		}
	}
	if s, ok := c.(Sequence); ok {
		items, err := s.Items(tx)
		if err != nil {
			return false, err
		}
		for _, it := range items {
			it, err := Realize(tx, it)
			if err != nil {
				return false, err
			}
			if it == v {
				return true, nil
			}
			same, err := Equal(tx, it, v)
			if err != nil {
				return false, err
			}
			if same {
				return true, nil
			}
		}
		return false, nil
	}
	return false, unsupported(exc.OperatorUnsupported, "%s in %s", Describe(tx, v), Describe(tx, c))
}
