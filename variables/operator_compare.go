package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Equal compares two values as containers do (PyObject_RichCompareBool(a, b, Py_EQ)). Identical objects are equal.
func Equal(tx Translator, a, b VariableTracker) (bool, error) {
	if r, ok, err := sizeComparison(tx, opcode.CMP_EQ, a, b); ok || err != nil {
		if err != nil {
			return false, err
		}
		return Truth(tx, r)
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
	if x, ok := a.(*ConstantVariable); ok {
		if y, ok := b.(*ConstantVariable); ok && x.Value == y.Value {
			return true, nil
		}
	}
	r, err := Compare(tx, opcode.CMP_EQ, a, b)
	if err != nil {
		return false, err
	}
	return Truth(tx, r)
}

// Compare runs a rich comparison in the order of do_richcompare of CPython 3.11 (Objects/object.c).
func Compare(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, error) {
	if err := tx.World().Enter(); err != nil {
		return nil, err
	}
	defer tx.World().Leave()
	a, b, err := scalarsBesideTensor(tx, op.Name(), a, b)
	if err != nil {
		return nil, err
	}
	if r, ok, err := sizeComparison(tx, op, a, b); ok || err != nil {
		return r, err
	}
	if r, ok, err := sizeComparedWithTensor(tx, op, a, b); ok || err != nil {
		return r, err
	}
	if a, err = Realize(tx, a); err != nil {
		return nil, err
	}
	if b, err = Realize(tx, b); err != nil {
		return nil, err
	}
	if r, ok, err := runTimeComparison(tx, op, a, b); ok || err != nil {
		return r, err
	}
	if oa, ok := AsConstant(tx, a); ok {
		if ob, ok := AsConstant(tx, b); ok {
			r, err := computeKnown(tx, "compare", int(op), oa, ob)
			if err != nil {
				return nil, observed(err)
			}
			return knownResult(tx, r), nil
		}
	}
	for _, v := range []VariableTracker{a, b} {
		if c, ok := enumMember(tx, v); ok && !plainMember(tx, c.Value, operatorSpecials("compare", int(op))...) {
			return nil, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), op.Name(), Describe(tx, b))
		}
	}
	if IsTensor(a) || IsTensor(b) {
		if r, ok, err := besideTensor(tx, a, b, op.Method(), op.Swapped().Method()); ok || err != nil {
			return r, err
		}
		return tensorOperator(tx, op.Name(), false, a, b)
	}
	if r, ok, err := computedComparison(tx, op, a, b); ok || err != nil {
		return r, err
	}
	if !knownComparison(a) || !knownComparison(b) {
		return nil, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), op.Name(), Describe(tx, b))
	}
	type side struct {
		op   opcode.CompareOp
		x, y VariableTracker
	}
	sides := []side{{op, a, b}, {op.Swapped(), b, a}}
	x, plain := a.(*TupleVariable)
	y, named := b.(*TupleVariable)
	if properSubclass(tx, b, a) || plain && named && x.class.IsNull() && !y.class.IsNull() {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for _, s := range sides {
		r, err := compareSlot(tx, s.op, s.x, s.y)
		if err != nil || r != nil {
			return r, err
		}
		if o, ok := s.x.(*ObjectVariable); ok && o.Class == tx.World().sorted {
			return nil, unsupported(exc.OperatorUnsupported, "sort of %s, whose comparison returns NotImplemented",
				py.TypeName(o.Class))
		}
	}
	if op == opcode.CMP_EQ || op == opcode.CMP_NE {
		same, err := Is(tx, a, b)
		if err != nil {
			return nil, err
		}
		return BoolConst(same == (op == opcode.CMP_EQ)), nil
	}
	return nil, typeError(tx, "'"+op.Symbol()+"' not supported between instances of '\x00' and '\x00'", a, b)
}

// runTimeComparison compares values that only the graph has: opaque objects and arrays. ok is false for other operands.
func runTimeComparison(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if isOpaque(a) || isOpaque(b) {
		r, err := PythonCompare(tx, op, a, b)
		return r, true, err
	}
	if isLoopList(a) || isLoopList(b) {
		return nil, true, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), op.Name(), Describe(tx, b))
	}
	return arrayOperator(tx, op.Name(), false, a, b)
}

// knownComparison reports whether compareSlot covers all comparisons of v's kind.
func knownComparison(v VariableTracker) bool {
	switch v.(type) {
	case *ConstantVariable, *ListVariable, *TupleVariable, *DictVariable, *SetVariable, *DequeVariable, *ShadowVariable,
		*DictViewVariable, *RangeVariable,
		*SliceVariable, *ObjectVariable, *FunctionVariable, *MethodVariable, *ClassVariable, *BuiltinVariable,
		*TorchVariable,
		*ModuleVariable, *UnboundMethod, *OptimizedVariable, standIn:
		return true
	}
	return false
}

// typeError returns a TypeError. Each \x00 in text is replaced by an operand's type name in the form that CPython
// prints.
func typeError(tx Translator, text string, operands ...VariableTracker) error {
	out := ""
	for _, c := range text {
		if c != 0 {
			out += string(c)
			continue
		}
		t, err := PythonType(tx, operands[0])
		if err != nil {
			return err
		}
		out, operands = out+typeName(tx, t), operands[1:]
	}
	o := &exc.Observed{TypeName: "TypeError", Text: out}
	v, err := newException(tx, tx.World().Builtin("TypeError"),
		[]VariableTracker{NewConstant(tx.Scope().Str(out), nil)}, nil)
	if err == nil {
		o.Value = v
	}
	return o
}

// knownResult wraps an object that CPython computed, without copying it. The object may be a bool, NotImplemented or
// an instance of a user's class.
func knownResult(tx Translator, o py.Object) VariableTracker {
	if v, err := immutableResult(tx, o); err == nil {
		return v
	}
	return NewConstant(o, nil)
}

// compareSlot runs type(a).tp_richcompare(a, b, op). It returns nil for NotImplemented.
func compareSlot(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, error) {
	if o, ok := instance(a); ok {
		return o.compare(tx, op, b)
	}
	if c, ok := a.(*ClassVariable); ok && !tx.World().plainMetaclass(tx, c.Class,
		operatorSpecials("compare", int(op))...) {
		return nil, unsupported(exc.OperatorUnsupported, "comparison of class %s: its metaclass overrides this",
			py.TypeName(c.Class))
	}
	if o, ok := b.(*ObjectVariable); ok && o.value != nil {
		b = o.value // the builtin type's comparison reads the contents of an instance of a subclass
	}
	switch x := a.(type) {
	case *ListVariable:
		if y, ok := b.(*ListVariable); ok {
			return compareRows(tx, op, &x.items, &y.items, true)
		}
	case *ShadowVariable:
		return x.compare(tx, op, b)
	case *DequeVariable:
		if y, ok := b.(*DequeVariable); ok {
			return compareRows(tx, op, &x.items, &y.items, false)
		}
	case *TupleVariable:
		if y, ok := b.(*TupleVariable); ok {
			return compareRows(tx, op, &x.items, &y.items, false)
		}
	case *ConstantVariable:
		if x.Value.Kind() == py.Tuple { // a constant tuple x and a tracked tuple y
			if y, ok := b.(*TupleVariable); ok {
				items, err := Unpack(tx, x)
				if err != nil {
					return nil, err
				}
				return compareRows(tx, op, &items, &y.items, false)
			}
		}
		if y, ok := AsConstant(tx, b); ok {
			return compareConstants(tx, op, x.Value, y)
		}
	case *DictVariable:
		if y, ok := b.(*DictVariable); ok && (op == opcode.CMP_EQ || op == opcode.CMP_NE) {
			same, err := equalDicts(tx, x, y)
			if err != nil {
				return nil, err
			}
			return BoolConst(same == (op == opcode.CMP_EQ)), nil
		}
	case *MethodVariable:
		if y, ok := b.(*MethodVariable); ok && (op == opcode.CMP_EQ || op == opcode.CMP_NE) {
			self, err := Is(tx, x.Self, y.Self)
			if err != nil {
				return nil, err
			}
			same := self
			if self {
				if same, err = Equal(tx, x.Fn, y.Fn); err != nil {
					return nil, err
				}
			}
			return BoolConst(same == (op == opcode.CMP_EQ)), nil
		}
	}
	if setLike(a) && setLike(b) {
		return compareSets(tx, op, a, b)
	}
	// b is an instance of a subclass, and its contents are unknown
	if o, ok := b.(*ObjectVariable); ok && o.exc == nil {
		t, err := PythonType(tx, a)
		if err != nil || t != tx.World().ObjectType && py.IsSubtype(o.Class, t) || setLike(a) && untrackedSet(tx, o) {
			return nil, unsupported(exc.OperatorUnsupported, "comparison of %s with %s", Describe(tx, a),
				Describe(tx, b))
		}
	}
	return nil, nil
}

// compare compares an instance. It uses a method of its class that is written in Python, else the method of the builtin
// type that the class extends, else object's method.
func (o *ObjectVariable) compare(tx Translator, op opcode.CompareOp, b VariableTracker) (VariableTracker, error) {
	m, err := o.slotMethod(tx, op.Method())
	if err != nil {
		return nil, err
	}
	if m != nil {
		return unlessNotImplemented(tx, m, b)
	}
	if o.value != nil {
		d, _ := tx.Scope().TypeLookup(o.Class, op.Method())
		if !tx.World().IsObjectMethod(tx.Scope(), op.Method(), d) {
			return compareValue(tx, op, o.value, b)
		}
	}
	switch op {
	case opcode.CMP_EQ:
		same, err := Is(tx, o, b)
		if err != nil || !same {
			return nil, err
		}
		return BoolConst(true), nil
	case opcode.CMP_NE:
		r, err := o.compare(tx, opcode.CMP_EQ, b)
		if err != nil || r == nil {
			return nil, err
		}
		t, err := Truth(tx, r)
		return BoolConst(!t), err
	}
	return nil, nil
}

// compareValue compares value, the contents of an instance whose class extends a builtin type, with b.
func compareValue(tx Translator, op opcode.CompareOp, value, b VariableTracker) (VariableTracker, error) {
	if o, ok := b.(*ObjectVariable); ok && o.value != nil {
		b = o.value
	}
	x, ok := AsConstant(tx, value)
	y, ok2 := AsConstant(tx, b)
	if ok && ok2 {
		return compareConstants(tx, op, x, y)
	}
	return compareSlot(tx, op, value, b)
}

// compareConstants calls x's comparison method with y. It returns nil for NotImplemented.
func compareConstants(tx Translator, op opcode.CompareOp, x, y py.Object) (VariableTracker, error) {
	if err := tx.World().computable(tx, []py.Object{x, y}, operatorSpecials("compare", int(op))...); err != nil {
		return nil, err
	}
	r, err := tx.Scope().CallMethod(x, op.Method(), y)
	if err != nil {
		return nil, observed(err)
	}
	if r.Kind() == py.NotImplemented {
		return nil, nil
	}
	return knownResult(tx, r), nil
}

// unlessNotImplemented calls a special method. It returns nil if the method returns NotImplemented.
func unlessNotImplemented(tx Translator, m VariableTracker, args ...VariableTracker) (VariableTracker, error) {
	r, err := Call(tx, m, args, nil)
	if err != nil {
		return nil, err
	}
	if r, err = Realize(tx, r); err != nil {
		return nil, err
	}
	if c, ok := AsConstant(tx, r); ok && c.Kind() == py.NotImplemented {
		return nil, nil
	}
	return r, nil
}

// compareRows compares two sequences of items. The first pair that differs decides, then the lengths. lengthFirst
// selects the rules of lists (list_richcompare of CPython 3.11, Objects/listobject.c): == and != compare the lengths
// first, and a comparison of two items may change the lists.
func compareRows(tx Translator, op opcode.CompareOp, x, y *[]VariableTracker,
	lengthFirst bool) (VariableTracker, error) {
	if lengthFirst && len(*x) != len(*y) && (op == opcode.CMP_EQ || op == opcode.CMP_NE) {
		return BoolConst(op == opcode.CMP_NE), nil
	}
	for i := 0; i < min(len(*x), len(*y)); i++ {
		a, b := (*x)[i], (*y)[i]
		same, err := Equal(tx, a, b)
		if err != nil {
			return nil, err
		}
		if same {
			continue
		}
		if i >= min(len(*x), len(*y)) {
			break
		}
		if op == opcode.CMP_EQ || op == opcode.CMP_NE {
			return BoolConst(op == opcode.CMP_NE), nil
		}
		return Compare(tx, op, (*x)[i], (*y)[i])
	}
	r, err := tx.Scope().Compare(op, tx.Scope().Int(int64(len(*x))), tx.Scope().Int(int64(len(*y))))
	if err != nil {
		return nil, err
	}
	return NewConstant(r, nil), nil
}

// equalDicts reports whether two dicts are equal. Two OrderedDicts must also have the same order.
func equalDicts(tx Translator, x, y *DictVariable) (bool, error) {
	if len(x.keys) != len(y.keys) {
		return false, nil
	}
	for i, k := range x.keys {
		v, ok, err := y.get(tx, k)
		if err != nil || !ok {
			return false, err
		}
		same, err := Equal(tx, x.values[i], v)
		if err != nil || !same {
			return false, err
		}
	}
	if x.isOrdered(tx) && y.isOrdered(tx) {
		for i, k := range x.keys {
			same, err := Equal(tx, k, y.keys[i])
			if err != nil || !same {
				return false, err
			}
		}
	}
	return true, nil
}

// compareSets compares sets, frozensets and dict views as sets.
func compareSets(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, error) {
	x, err := setOf(tx, a, false)
	if err != nil {
		return nil, err
	}
	_, real, err := x.operand(tx, b)
	if err != nil {
		return nil, err
	}
	if real, err = tx.Scope().Call(tx.World().FrozenSetType, real); err != nil {
		return nil, err
	}
	left, err := tx.Scope().Call(tx.World().FrozenSetType, x.real)
	if err != nil {
		return nil, err
	}
	r, err := tx.Scope().Compare(op, left, real)
	if err != nil {
		return nil, observed(err)
	}
	return NewConstant(r, nil), nil
}

// Contains returns `v in c`.
func Contains(tx Translator, c, v VariableTracker) (bool, error) {
	if found, decided, err := lookUp(tx, c, v); decided || err != nil {
		return found != nil, err
	}
	if in, decided, err := isMember(tx, c, v); decided || err != nil {
		return in, err
	}
	c, err := Realize(tx, c)
	if err != nil {
		return false, err
	}
	if v, err = Argument(tx, v); err != nil {
		return false, err
	}
	if s := asSymNode(tx, v); s != nil {
		if lacks, err := lacksNumber(tx, c, s); lacks || err != nil {
			return false, err
		}
	}
	if v, err = Realize(tx, v); err != nil {
		return false, err
	}
	if found, decided, err := containsByKind(tx, c, v); decided || err != nil {
		return found, err
	}
	if found, decided, err := constantContains(tx, c, v); decided || err != nil {
		return found, err
	}
	return containsByIteration(tx, c, v)
}

// maxNumberKeys bounds the keys with which a number that is no constant is compared.
const maxNumberKeys = 16

// lacksNumber reports whether a dict of few numbers or texts has no key that is equal to v. Guards compare v with each.
func lacksNumber(tx Translator, c VariableTracker, v *SymNodeVariable) (bool, error) {
	if o, ok := c.(*ObjectVariable); ok && o.value != nil {
		if m, err := o.lookupSpecial(tx, "__contains__"); err != nil || m != nil {
			return false, err
		}
		return onHeld(o, func() (bool, error) { return lacksNumber(tx, o.value, v) })
	}
	d, ok := c.(*DictVariable)
	if !ok || len(d.keys) > maxNumberKeys {
		return false, nil
	}
	var numbers []VariableTracker
	for _, it := range d.keys {
		k, ok := AsConstant(tx, it)
		switch {
		case ok && k.Kind() == py.Int:
			numbers = append(numbers, it)
		case !ok || !comparesByValue(k):
			return false, nil
		}
	}
	for _, k := range numbers {
		r, err := Compare(tx, opcode.CMP_EQ, v, k)
		if err != nil {
			return false, err
		}
		if equal, err := Truth(tx, r); err != nil || equal {
			return false, err
		}
	}
	return true, nil
}

// containsByKind looks v up in a container of a known kind. decided is false for other kinds.
func containsByKind(tx Translator, c, v VariableTracker) (found, decided bool, err error) {
	switch x := c.(type) {
	case *DictVariable:
		_, found, err = x.get(tx, v)
	case *SetVariable:
		found, err = x.contains(tx, v)
	case *DictViewVariable:
		return x.contains(tx, v)
	case *ShadowVariable:
		r, err := x.CallMethod(tx, "__contains__", []VariableTracker{v}, nil)
		if err != nil {
			return false, true, err
		}
		found, err = Truth(tx, r)
		return found, true, err
	case *ObjectVariable:
		return x.contains(tx, v)
	case *ClassVariable:
		m, err := x.metaMethod(tx, "__contains__")
		if err != nil || m == nil {
			return false, false, err
		}
		found, err = containsByMethod(tx, m, v)
		return found, true, err
	case *GlobalsVariable:
		found, err = x.contains(tx, v)
	case *TensorVariable:
		err = unsupported(exc.TensorToPython, "membership in a tensor")
	default:
		return false, false, nil
	}
	return found, true, err
}

// containsByMethod returns the truth value of the result of __contains__.
func containsByMethod(tx Translator, m, v VariableTracker) (bool, error) {
	r, err := Call(tx, m, []VariableTracker{v}, nil)
	if err != nil {
		return false, err
	}
	return Truth(tx, r)
}

// contains reports membership in a dict's keys or items. For its values, decided is false.
func (d *DictViewVariable) contains(tx Translator, v VariableTracker) (found, decided bool, err error) {
	switch d.what {
	case "keys":
		_, found, err = d.dict.get(tx, v)
		return found, true, err
	case "items":
		item, ok := v.(*TupleVariable)
		if !ok || len(item.items) != 2 {
			return false, true, nil
		}
		value, ok, err := d.dict.get(tx, item.items[0])
		if err != nil || !ok {
			return false, true, err
		}
		found, err = Equal(tx, value, item.items[1])
		return found, true, err
	}
	return false, false, nil
}

// contains reports membership in an instance. It uses the class's __contains__, or else the contents. decided is false
// if the instance has neither.
func (o *ObjectVariable) contains(tx Translator, v VariableTracker) (found, decided bool, err error) {
	m, err := o.lookupSpecial(tx, "__contains__")
	if err != nil {
		return false, true, err
	}
	if d, set := tx.Scope().TypeLookup(o.Class, "__contains__"); set && d.Kind() == py.NoneKind {
		return false, true, typeError(tx, "'\x00' object is not a container", o)
	}
	if m != nil {
		found, err = containsByMethod(tx, m, v)
		return found, true, err
	}
	if o.value != nil {
		found, err = onHeld(o, func() (bool, error) { return Contains(tx, o.value, v) })
		return found, true, err
	}
	return false, false, nil
}

// constantContains reports membership in a constant. decided is false if the constant must be iterated.
func constantContains(tx Translator, c, v VariableTracker) (found, decided bool, err error) {
	oc, ok := AsConstant(tx, c)
	if !ok {
		return false, false, nil
	}
	if ov, ok := AsConstant(tx, v); ok {
		found, err = knownContains(tx, oc, ov)
		return found, true, err
	}
	if k := oc.Kind(); k == py.Str || k == py.Bytes || k == py.TypeKind || k == py.TypeSub ||
		tx.World().IsEnum(tx.Scope(), oc) {
		return false, true, unsupported(exc.OperatorUnsupported, "membership of %s in %s", Describe(tx, v),
			Describe(tx, c))
	}
	if oc.Kind() == py.FrozenSet {
		s, err := setOf(tx, c, true)
		if err != nil {
			return false, true, err
		}
		found, err = s.contains(tx, v)
		return found, true, err
	}
	return false, false, nil
}

// knownContains lets CPython look up one constant in another.
func knownContains(tx Translator, c, v py.Object) (bool, error) {
	if err := tx.World().computable(tx, []py.Object{c, v}, "__contains__", "__iter__", "__getitem__", "__eq__",
		"__hash__"); err != nil {
		return false, err
	}
	if k := c.Kind(); (k == py.TypeKind || k == py.TypeSub) && tx.World().IsEnumClass(tx.Scope(), c) {
		tx.World().RestsOnBases(tx, v.Type())
	}
	if tx.World().IsEnum(tx.Scope(), v) { // the member is looked up by name
		if err := readsMember(tx, v); err != nil {
			return false, err
		}
	}
	r, err := tx.Scope().Contains(c, v)
	return r, observed(err)
}

// containsByIteration compares the container's items until one equals v.
func containsByIteration(tx Translator, c, v VariableTracker) (bool, error) {
	it, err := Iter(tx, c)
	if err != nil {
		if o, ok := err.(*exc.Observed); ok && o.TypeName == "TypeError" {
			t, typed := PythonType(tx, c)
			if typed != nil {
				return false, typed
			}
			err = raiseWords(tx, "TypeError", tx.World().notContainer, t)
		}
		return false, err
	}
	for n := 0; n < maxUnroll; n++ {
		item, more, err := next(tx, it)
		if err != nil || !more {
			return false, err
		}
		same, err := Equal(tx, item, v)
		if err != nil || same {
			return same, err
		}
	}
	return false, unsupported(exc.TooLarge, "iterator of more than %d items", maxUnroll)
}

// next advances an iterator by one step. The iterator may be an instance of a user's class.
func next(tx Translator, it VariableTracker) (VariableTracker, bool, error) {
	it, err := Realize(tx, it)
	if err != nil {
		return nil, false, err
	}
	if i, ok := it.(Iterator); ok {
		return i.Next(tx)
	}
	return nil, false, unsupported(exc.IterUnsupported, "next of %s", Describe(tx, it))
}
