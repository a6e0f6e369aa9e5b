package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Binary runs a BINARY_OP. The operands' slots are tried in the order of binary_op1 and binary_iop1 of CPython
// 3.11, Objects/abstract.c: number slots first, then sequence slots.
func Binary(tx Translator, op opcode.BinaryOp, a, b VariableTracker) (VariableTracker, error) {
	n, inplace := op.Plain(), op.Inplace()
	if inplace && n == opcode.NB_ADD {
		if added, err := concatUnseen(tx, a, b); added || err != nil {
			return a, err
		}
	}
	a, b, err := scalarsBesideTensor(tx, n.Name(), a, b)
	if err != nil {
		return nil, err
	}
	a, b = withFlags(tx, n, a, b)
	if r, ok, err := arithmeticOfSizes(tx, n, a, b); ok || err != nil {
		return r, err
	}
	if r, ok, err := sizeBesideTensor(tx, n, inplace, a, b); ok || err != nil {
		return r, err
	}
	if r, ok, err := arrayBinary(tx, n, inplace, a, b); ok || err != nil {
		return r, err
	}
	if a, err = Realize(tx, a); err != nil {
		return nil, err
	}
	if b, err = Realize(tx, b); err != nil {
		return nil, err
	}
	if r, ok, err := tuplesOperator(tx, n, inplace, a, b); ok || err != nil {
		return r, err
	}
	if r, ok, err := constantOperator(tx, op, a, b); ok || err != nil {
		return r, err
	}
	if isLoopList(a) || isLoopList(b) {
		return nil, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(), Describe(tx, b))
	}
	if r, ok, err := operatorWithTensorOrInt(tx, n, inplace, a, b); ok || err != nil {
		return r, err
	}
	if IsTensor(a) || IsTensor(b) {
		if r, ok, err := operatorWithTensor(tx, n, inplace, a, b); ok || err != nil {
			return r, err
		}
	}
	if r, ok, err := computedOperator(tx, n, a, b); ok || err != nil {
		return r, err
	}
	if r, ok, err := shadowOperator(tx, op, n, inplace, a, b); ok || err != nil {
		return r, err
	}
	if o, isObject := a.(*ObjectVariable); n == opcode.NB_REMAINDER &&
		!(isObject && o.value != nil && o.overrides(tx, "__mod__", "__imod__", "__rmod__")) {
		if r, ok, err := percentFormat(tx, a, b); ok || err != nil {
			return r, err
		}
	}
	r, err := objectOperator(tx, n.Name(), inplace, a, b)
	if err != nil || r != nil {
		return r, err
	}
	if r, ok, err := refusedOperator(tx, n, a, b); ok || err != nil {
		return r, err
	}
	if r, ok, err := containerOperator(tx, n, inplace, valueOf(a), walkedOperand(n, inplace, a, b), a); ok ||
		err != nil {
		return r, err
	}
	if r, ok, err := heldOperator(tx, op, n, a, b); ok || err != nil {
		return r, err
	}
	return nil, operandError(tx, n, inplace, a, b)
}

// tuplesOperator runs an operator on a tuple and a builtin value. The result contains the same item objects as the
// operands.
func tuplesOperator(tx Translator, n opcode.BinaryOp, inplace bool, a,
	b VariableTracker) (VariableTracker, bool, error) {
	_, ta := a.(*TupleVariable)
	_, tb := b.(*TupleVariable)
	_, oa := a.(*ObjectVariable)
	_, ob := b.(*ObjectVariable)
	if !ta && !tb || oa || ob {
		return nil, false, nil
	}
	for _, v := range []VariableTracker{a, b} {
		// guards that the namedtuple's class defines none of these methods
		if t, ok := v.(*TupleVariable); ok && !t.class.IsNull() {
			looksFor(tx, t.class, n.Method(), n.Reflected(), n.InplaceMethod())
		}
	}
	return containerOperator(tx, n, inplace, a, b, a)
}

// constantOperator lets CPython compute an operator on two constants.
func constantOperator(tx Translator, op opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	ownText, err := memberOperand(tx, op.Plain(), a, b)
	if err != nil {
		return nil, false, err
	}
	oa, ok := AsConstant(tx, a)
	if !ok || ownText {
		return nil, false, nil
	}
	ob, ok := AsConstant(tx, b)
	if !ok {
		return nil, false, nil
	}
	if tooBig(tx, op.Plain(), oa, ob) {
		return nil, false, unsupported(exc.TooLarge, "constant of great size")
	}
	r, err := computeKnown(tx, "binary", int(op), oa, ob)
	if err != nil {
		return nil, false, observed(err)
	}
	v, err := immutableResult(tx, r)
	return v, true, err
}

// operatorWithTensor runs an operator with a tensor operand. It returns false for list += tensor, which runs the
// list's method.
func operatorWithTensor(tx Translator, n opcode.BinaryOp, inplace bool, a,
	b VariableTracker) (VariableTracker, bool, error) {
	if o, ok := instance(a); ok && inplace {
		m, err := o.slotMethod(tx, n.InplaceMethod())
		if err != nil {
			return nil, false, err
		}
		if m != nil {
			if r, err := unlessNotImplemented(tx, m, b); err != nil || r != nil {
				return r, true, err
			}
		}
	}
	if r, ok, err := besideTensor(tx, a, b, n.Method(), n.Reflected()); ok || err != nil {
		return r, true, err
	}
	if l, ok := a.(*ListVariable); ok && inplace && l != nil {
		return nil, false, nil
	}
	r, err := tensorOperator(tx, n.Function(), inplace, a, b)
	return r, true, err
}

// refusedOperator handles an operator whose methods written in Python have returned NotImplemented. A builtin base
// type of an operand's class may still accept the operands.
func refusedOperator(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if ra, rb := refuses(tx, n, a), refuses(tx, n, b); ra || rb {
		if !ra || !rb { // only one class rejected the operands, so the other operand's builtin slot is tried
			if v, ok, err := onceRefused(tx, n, a, b); ok || err != nil {
				return v, ok, err
			}
		}
		return nil, false, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(),
			Describe(tx, b))
	}
	for _, v := range []VariableTracker{a, b} { // repetition of a sequence calls __index__
		if o, ok := v.(*ObjectVariable); ok && o.value != nil && n == opcode.NB_MULTIPLY &&
			o.overrides(tx, "__index__") {
			return nil, false, unsupported(exc.OperatorUnsupported, "%s mul %s", Describe(tx, a), Describe(tx, b))
		}
	}
	return nil, false, nil
}

// walkedOperand returns the right operand in the form that the left container's method uses. `list += b` and `dict |=
// b` call methods of b's class. So they get b itself, and all other operators get b's contents.
func walkedOperand(n opcode.BinaryOp, inplace bool, a, b VariableTracker) VariableTracker {
	switch valueOf(a).(type) {
	case *ListVariable, *DequeVariable:
		if inplace && n == opcode.NB_ADD {
			return b
		}
	case *DictVariable:
		if inplace && n == opcode.NB_OR {
			return b
		}
	}
	return valueOf(b)
}

// onceRefused computes an operator on two numbers after the class of one operand has returned NotImplemented. It uses
// the builtin slot of the other operand. An instance of a subclass counts as the number that it holds. If CPython would
// raise, the graph breaks.
func onceRefused(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	ha, ok := AsConstant(tx, valueOf(a))
	hb, ok2 := AsConstant(tx, valueOf(b))
	if !ok || !ok2 || !isReal(ha) || !isReal(hb) || tooBig(tx, n, ha, hb) {
		return nil, false, nil
	}
	left := ha // the number whose builtin slot runs
	if refuses(tx, n, a) {
		left = hb
	}
	if left.Kind() != py.Float && (ha.Kind() == py.Float || hb.Kind() == py.Float) {
		return nil, false, nil // int's slot rejects floats
	}
	r, err := computeKnown(tx, "binary", int(n), ha, hb)
	if err != nil {
		return nil, false, nil
	}
	v, err := immutableResult(tx, r)
	return v, true, err
}

func isReal(o py.Object) bool {
	return o.Kind() == py.Int || o.Kind() == py.Float || o.Kind() == py.BoolKind
}

// printsBy reports whether o is a str or bytes, so that o % v formats v as text.
func printsBy(o py.Object) bool { return o.Kind() == py.Str || o.Kind() == py.Bytes }

// heldOperator computes an operator on instances of subclasses of int, str, ... that do not override the operator.
func heldOperator(tx Translator, op, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	ha, ok := AsConstant(tx, valueOf(a))
	hb, ok2 := AsConstant(tx, valueOf(b))
	if !ok || !ok2 {
		return nil, false, nil
	}
	if o, ok := b.(*ObjectVariable); ok && n == opcode.NB_REMAINDER && printsBy(ha) && !o.plainValue(tx) {
		return nil, false, unsupported(exc.OperatorUnsupported, "%s mod %s", Describe(tx, a), Describe(tx, b))
	}
	if tooBig(tx, n, ha, hb) {
		return nil, false, unsupported(exc.TooLarge, "constant of great size")
	}
	oa, ok, err := operandObject(tx, a)
	if !ok || err != nil {
		return nil, false, err
	}
	ob, ok, err := operandObject(tx, b)
	if !ok || err != nil {
		return nil, false, err
	}
	r, err := computeKnown(tx, "binary", int(op), oa, ob)
	if err != nil {
		return nil, false, observed(err)
	}
	v, err := immutableResult(tx, r)
	return v, true, err
}

// refuses reports whether v's class extends a builtin type and defines one of the operator's methods. The caller knows
// that these methods have returned NotImplemented.
func refuses(tx Translator, n opcode.BinaryOp, v VariableTracker) bool {
	o, ok := v.(*ObjectVariable)
	if !ok || o.value == nil {
		return false
	}
	for _, name := range []string{n.Method(), n.Reflected(), n.InplaceMethod()} {
		if m, err := o.slotMethod(tx, name); err != nil || m != nil {
			return true
		}
	}
	return false
}

// valueOf returns the contents of an instance whose class extends a builtin type. It returns other values unchanged.
func valueOf(v VariableTracker) VariableTracker {
	if o, ok := v.(*ObjectVariable); ok && o.value != nil {
		return o.value
	}
	return v
}

// operandError returns the TypeError for operands that no type accepts.
func operandError(tx Translator, n opcode.BinaryOp, inplace bool, a, b VariableTracker) error {
	for _, v := range []VariableTracker{a, b} {
		if _, member := enumMember(tx, v); member {
			return unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(), Describe(tx, b))
		}
		if o, ok := v.(*ObjectVariable); ok && o.exc == nil && (o.value != nil || !tx.Scope().MadeOfObject(o.Class)) {
			return unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(), Describe(tx, b))
		}
		switch v.(type) {
		case *ObjectVariable, *ListVariable, *TupleVariable, *DictVariable, *SetVariable, *ConstantVariable,
			*DequeVariable, *DictViewVariable:
		default:
			return unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(), Describe(tx, b))
		}
	}
	if c, ok := valueOf(a).(*ConstantVariable); ok && n == opcode.NB_REMAINDER && printsBy(c.Value) {
		return unsupported(exc.OperatorUnsupported, "%s %% %s", Describe(tx, a), Describe(tx, b))
	}
	switch left := valueOf(a).(type) {
	case *ListVariable, *TupleVariable, *DequeVariable:
		if n == opcode.NB_ADD {
			kind := map[string]string{"ListVariable": "list", "TupleVariable": "tuple", "NamedTupleVariable": "tuple",
				"DequeVariable": "deque"}[left.Kind()]
			return typeError(tx, "can only concatenate "+kind+" (not \"\x00\") to "+kind, b)
		}
	case *ConstantVariable:
		if n == opcode.NB_ADD {
			switch left.Value.Kind() {
			case py.Str:
				return typeError(tx, "can only concatenate str (not \"\x00\") to str", b)
			case py.Bytes:
				return typeError(tx, "can't concat \x00 to bytes", b)
			}
		}
	}
	if n == opcode.NB_MULTIPLY {
		for _, pair := range [][2]VariableTracker{{a, b}, {b, a}} {
			if isRepeatable(valueOf(pair[0])) {
				return typeError(tx, "can't multiply sequence by non-int of type '\x00'", pair[1])
			}
		}
	}
	op := n
	if inplace {
		op = n.InplaceOp()
	}
	return typeError(tx, "unsupported operand type(s) for "+op.InMessages()+": '\x00' and '\x00'", a, b)
}

func isRepeatable(v VariableTracker) bool {
	switch x := v.(type) {
	case *ListVariable, *TupleVariable, *DequeVariable:
		return true
	case *ConstantVariable:
		k := x.Value.Kind()
		return k == py.Str || k == py.Bytes || k == py.Tuple
	}
	return false
}

// nativeSlot calls the number slot of x's builtin type with y. name is its method: __sub__, __rsub__ or __isub__. ok
// is false if the type has no such slot or the slot returns NotImplemented.
func nativeSlot(tx Translator, special, name string, x, y VariableTracker) (r VariableTracker, ok bool, err error) {
	switch own := valueOf(x).(type) {
	case *ConstantVariable:
		if _, member := enumMember(tx, own); member {
			return nil, false, unsupported(exc.OperatorUnsupported, "%s of %s", name, Describe(tx, x))
		}
		if printsBy(own.Value) {
			if name == "__mod__" {
				return nil, false, unsupported(exc.OperatorUnsupported, "%s mod %s", Describe(tx, x), Describe(tx, y))
			}
			return nil, false, nil
		}
		if own.Value.Kind() == py.FrozenSet {
			return nativeSet(tx, special, name, x, y)
		}
		d, has := tx.Scope().TypeLookup(own.Value.Type(), name)
		other, known := AsConstant(tx, valueOf(y))
		if !has || d.Kind() != py.WrapperDescr || !known || tx.World().IsEnum(tx.Scope(), other) {
			return nil, false, nil
		}
		for _, o := range []py.Object{own.Value, other} {
			if k := o.Kind(); !isReal(o) && k != py.Complex {
				return nil, false, nil
			}
		}
		n, known := opcode.BinaryOpOf(special)
		if known && (tooBig(tx, n, own.Value, other) || tooBig(tx, n, other, own.Value)) {
			return nil, false, unsupported(exc.TooLarge, "constant of great size")
		}
		got, err := tx.Scope().CallMethod(own.Value, name, other)
		if err != nil || got.Kind() == py.NotImplemented {
			return nil, false, observed(err)
		}
		r, err = immutableResult(tx, got)
		return r, true, err
	case *DictVariable, *SetVariable, *DictViewVariable:
		return nativeSet(tx, special, name, x, y)
	case *ListVariable, *TupleVariable, *DequeVariable: // Binary tries sequence slots later
		_, subclass := x.(*ObjectVariable)
		// in a subclass, list's __iadd__ also fills the number slot
		if _, tuple := own.(*TupleVariable); subclass && !tuple && name == "__iadd__" {
			return concatenate(tx, true, own, y, x)
		}
	default:
		t, err := PythonType(tx, own)
		if err != nil || special == "add" || special == "mul" {
			return nil, false, nil
		}
		if d, has := tx.Scope().TypeLookup(t, name); has && d.Kind() == py.WrapperDescr {
			return nil, false, unsupported(exc.OperatorUnsupported, "%s of %s", name, Describe(tx, x))
		}
	}
	return nil, false, nil
}

// nativeSet does the same as nativeSlot, for sets, dicts and dict views.
func nativeSet(tx Translator, special, name string, x, y VariableTracker) (VariableTracker, bool, error) {
	n, known := opcode.BinaryOpOf(special)
	inplace := name == n.InplaceMethod()
	if !known {
		return nil, false, nil
	}
	left, right := x, y
	if name == "__r"+special+"__" {
		left, right = y, x
	}
	if r, ok, err := setOperator(tx, n, inplace, valueOf(left), valueOf(right)); ok || err != nil {
		if inplace && r == valueOf(left) {
			r = x
		}
		return r, ok, err
	}
	if untrackedSet(tx, left) || untrackedSet(tx, right) {
		return nil, false, unsupported(exc.OperatorUnsupported, "%s of %s and %s", special, Describe(tx, left),
			Describe(tx, right))
	}
	if special == "or" {
		return mergeDicts(tx, inplace, valueOf(left), valueOf(right), left)
	}
	return nil, false, nil
}

// objectOperator runs an operator's special methods that are written in Python, in this order: the in-place method, the
// method of the left operand, the reflected method of the right operand. If the right operand's class extends the left
// operand's class and overrides the reflected method, that method precedes the left operand's. The result is nil if no
// method accepts the operands.
func objectOperator(tx Translator, special string, inplace bool, a, b VariableTracker) (VariableTracker, error) {
	type step struct {
		x, y VariableTracker
		name string
	}
	names := []string{"__" + special + "__", "__r" + special + "__", "__i" + special + "__"}
	for _, v := range []VariableTracker{a, b} { // CPython may try a slot of the builtin type before it calls None
		if o, ok := v.(*ObjectVariable); ok && o.value != nil && setsToNone(tx, o.Class, names...) {
			return nil, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), special, Describe(tx, b))
		}
	}
	var steps []step
	if inplace {
		steps = append(steps, step{a, b, "__i" + special + "__"})
	}
	left := step{a, b, "__" + special + "__"}
	right := step{b, a, "__r" + special + "__"}
	switch {
	case sameClass(a, b):
		steps = append(steps, left)
	case properSubclass(tx, b, a) && overloads(tx, b, a, right.name):
		steps = append(steps, right, left)
	default:
		steps = append(steps, left, right)
	}
	// ahead(i) tries the builtin slot of step i if a later step has a method written in Python. A builtin slot accepts
	// instances of subclasses as well.
	ahead := func(i int) (VariableTracker, bool, error) {
		for _, later := range steps[i+1:] {
			if o, ok := instance(later.x); ok {
				if m, err := o.lookupSpecial(tx, later.name); m != nil || err != nil {
					return nativeSlot(tx, special, steps[i].name, steps[i].x, steps[i].y)
				}
			}
		}
		return nil, false, nil
	}
	for i, s := range steps {
		o, ok := instance(s.x)
		if !ok {
			if r, ok, err := ahead(i); ok || err != nil {
				return r, err
			}
			continue
		}
		if l, ok := a.(*ObjectVariable); ok && s.x == b && l != o && l.value != nil && l.overrides(tx, s.name) &&
			!l.overrides(tx, left.name) {
			return nil, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), special, Describe(tx, b))
		}
		m, err := o.slotMethod(tx, s.name)
		if err != nil {
			return nil, err
		}
		if m == nil {
			if r, ok, err := ahead(i); ok || err != nil {
				return r, err
			}
			continue
		}
		if r, err := unlessNotImplemented(tx, m, s.y); err != nil || r != nil {
			return r, err
		}
	}
	return nil, nil
}

// setsToNone reports whether the class sets one of these names to None.
func setsToNone(tx Translator, class py.Object, names ...string) bool {
	for _, name := range names {
		if d, ok := tx.Scope().TypeLookup(class, name); ok && d.Kind() == py.NoneKind {
			return true
		}
	}
	return false
}

// instance returns the instance whose class defines v's special methods. It is v itself, or the state of a stand-in
// for a C object.
func instance(v VariableTracker) (*ObjectVariable, bool) {
	if s, ok := v.(standIn); ok {
		return s.parts().state, true
	}
	o, ok := v.(*ObjectVariable)
	return o, ok
}

func sameClass(a, b VariableTracker) bool {
	x, ok := a.(*ObjectVariable)
	y, ok2 := b.(*ObjectVariable)
	return ok && ok2 && x.Class == y.Class
}

// properSubclass reports whether type(b) is a proper subclass of type(a). It returns false if type(a) is object.
func properSubclass(tx Translator, b, a VariableTracker) bool {
	bo, ok := b.(*ObjectVariable)
	if !ok {
		return false
	}
	t, err := PythonType(tx, a)
	return err == nil && bo.Class != t && t != tx.World().ObjectType && py.IsSubtype(bo.Class, t)
}

// overloads reports whether type(b) defines the method `name` and type(a) does not define the same one, as
// method_is_overloaded of CPython 3.11 does (Objects/typeobject.c).
func overloads(tx Translator, b, a VariableTracker, name string) bool {
	t, err := PythonType(tx, a)
	if err != nil {
		return false
	}
	own, ok := tx.Scope().TypeLookup(b.(*ObjectVariable).Class, name)
	theirs, has := tx.Scope().TypeLookup(t, name)
	return ok && (!has || own != theirs)
}

// besideTensor runs an operator between a tensor and an instance by the instance's special methods. If the tensor is on
// the left, its own operator runs first and rejects all objects but numbers and tensors.
func besideTensor(tx Translator, a, b VariableTracker, left, right string) (VariableTracker, bool, error) {
	o, name := a, left
	if IsTensor(a) {
		o, name = b, right
	}
	obj, ok := o.(*ObjectVariable)
	if !ok {
		return nil, false, nil
	}
	s := tx.Scope()
	if d, has := s.TypeLookup(obj.Class, name); has && d.Kind() == py.Function && !IsTensor(a) {
		// the special method comes before __torch_function__
		if _, handler := s.TypeLookup(obj.Class, "__torch_function__"); handler {
			return nil, false, unsupported(exc.TensorSubclass, "%s of a %s and a tensor", name, py.TypeName(obj.Class))
		}
	}
	if answersReads(tx, obj.Class) {
		return nil, false, unsupported(exc.TensorSubclass, "a %s with its own __torch_function__ lookup",
			py.TypeName(obj.Class))
	}
	for _, hook := range []string{"__torch_function__", "__index__", "__int__", "__float__", "__complex__", "__bool__",
		"__array__", "__len__", "__getitem__"} {
		if _, has := s.TypeLookup(obj.Class, hook); has && (IsTensor(a) || hook == "__torch_function__") {
			return nil, false, nil
		}
	}
	if obj.value != nil && IsTensor(a) { // the tensor's operator reads the instance as a number
		return nil, false, nil
	}
	m, err := obj.lookupSpecial(tx, name)
	if err != nil || m == nil {
		return nil, false, err
	}
	other := b
	if IsTensor(a) {
		other = a
	}
	r, err := unlessNotImplemented(tx, m, other)
	return r, r != nil, err
}

// containerOperator runs an operator of Python's containers. If a is the contents of an instance, owner is that
// instance, else owner is a.
func containerOperator(tx Translator, n opcode.BinaryOp, inplace bool, a, b,
	owner VariableTracker) (VariableTracker, bool, error) {
	if r, ok, err := setOperator(tx, n, inplace, a, b); ok || err != nil {
		if _, same := a.(*SetVariable); same && r == a {
			r = owner
		}
		return r, ok, err
	}
	if isSizeTuple(tx, a) || isSizeTuple(tx, b) {
		if r, ok, err := sizeOperator(tx, n, a, b); ok || err != nil {
			return r, ok, err
		}
	}
	switch n.Function() {
	case "add":
		return concatenate(tx, inplace, a, b, owner)
	case "mul":
		return multiply(tx, inplace, a, b, owner)
	case "or_":
		return mergeDicts(tx, inplace, a, b, owner)
	}
	return nil, false, nil
}

func isSizeTuple(tx Translator, v VariableTracker) bool {
	t, ok := v.(*TupleVariable)
	return ok && t.class == tx.World().SizeType
}

// sizeOperator runs + or * with a torch.Size operand. CPython computes the result, since the result and the accepted
// items vary with torch's version.
func sizeOperator(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if name := n.Function(); name != "add" && name != "mul" {
		return nil, false, nil
	}
	x, known := AsConstant(tx, a)
	y, both := AsConstant(tx, b)
	if r, err := symbolicSizes(tx, n, a, b); r != nil || err != nil {
		return r, true, err
	}
	if !known || !both {
		if _, isTuple, err := tupleItems(tx, a); !isTuple || err != nil {
			return nil, false, err
		}
		if _, isTuple, err := tupleItems(tx, b); !isTuple || err != nil {
			return nil, false, err
		}
		return nil, false, unsupported(exc.OperatorUnsupported, "%s of a torch.Size and unknown values", n.Function())
	}
	r, err := tx.Scope().Binary(n, x, y)
	if err != nil {
		return nil, false, observed(err)
	}
	if r.Type() != tx.World().SizeType {
		return nil, false, nil
	}
	items := tx.Scope().Items(r)
	out := make([]VariableTracker, len(items))
	for i, it := range items {
		out[i] = NewConstant(it, nil)
	}
	return NewTupleOf(out, r.Type(), nil), true, nil
}

func concatenate(tx Translator, inplace bool, a, b, owner VariableTracker) (VariableTracker, bool, error) {
	join := func(x, y []VariableTracker) []VariableTracker {
		return append(append([]VariableTracker(nil), x...), y...)
	}
	switch x := a.(type) {
	case *ListVariable:
		if inplace {
			_, err := rearrange(tx, x, listRearranging["extend"], "extend", []VariableTracker{b})
			return owner, true, err
		}
		if y, ok := b.(*ListVariable); ok {
			return NewList(join(x.items, y.items), nil), true, nil
		}
	case *DequeVariable:
		if inplace {
			_, err := rearrange(tx, x, dequeRearranging["extend"], "extend", []VariableTracker{b})
			return owner, true, err
		}
		if y, ok := b.(*DequeVariable); ok {
			c := &DequeVariable{items: append([]VariableTracker(nil), x.items...), maxlen: x.maxlen}
			_, err := rearrange(tx, c, dequeRearranging["extend"], "extend", []VariableTracker{NewTuple(y.items, nil)})
			return c, true, err
		}
	case *TupleVariable:
		items, ok, err := tupleItems(tx, b)
		if ok && err == nil {
			if len(items) == 0 && x.Exact() {
				return x, true, nil // CPython returns the left operand itself
			}
			if y, exact := b.(*TupleVariable); exact && len(x.items) == 0 && y.Exact() {
				return y, true, nil
			}
			return NewTuple(join(x.items, items), nil), true, nil
		}
		return nil, false, err
	case *ConstantVariable:
		if x.Value.Kind() == py.Tuple {
			items, err := Unpack(tx, x)
			if err != nil {
				return nil, false, err
			}
			return concatenate(tx, inplace, NewTuple(items, nil), b, owner)
		}
	}
	return nil, false, nil
}

// tupleItems returns the items of a tuple. ok is false for other values.
func tupleItems(tx Translator, v VariableTracker) ([]VariableTracker, bool, error) {
	switch x := v.(type) {
	case *TupleVariable:
		return x.items, true, nil
	case *ConstantVariable:
		if x.Value.Kind() == py.Tuple {
			items, err := Unpack(tx, x)
			return items, true, err
		}
	}
	return nil, false, nil
}

func multiply(tx Translator, inplace bool, a, b, owner VariableTracker) (VariableTracker, bool, error) {
	seq, times := a, b
	if !isRepeatable(a) {
		seq, times = b, a
		// `*=` repeats the right operand only if the left operand has no sequence slots
		if c, ok := owner.(*ConstantVariable); inplace && (!ok || c.Value.Type() != tx.World().Builtin("int")) {
			return nil, false, unsupported(exc.OperatorUnsupported, "%s *= %s", Describe(tx, owner), Describe(tx, b))
		}
	}
	if !isRepeatable(seq) || isRepeatable(times) {
		return nil, false, nil
	}
	k, err := indexOf(tx, times)
	if o, ok := times.(*ObjectVariable); ok && err != nil {
		if _, has := tx.Scope().TypeLookup(o.Class, "__index__"); has {
			return nil, false, err
		}
	}
	if err != nil || (k.Kind() != py.Int && k.Kind() != py.BoolKind) {
		return nil, false, nil // times is not an integer: the caller raises the TypeError
	}
	n, ok := py.AsInt(k)
	if !ok {
		return nil, true, unsupported(exc.TooLarge, "repetition")
	}
	count := int(max(n, 0))
	switch x := seq.(type) {
	case *ListVariable:
		if !unrolls(len(x.items), count) {
			return nil, true, unsupported(exc.TooLarge, "list of more than %d items", maxUnroll)
		}
		if !inplace || seq != a {
			return NewList(repeat(x.items, count), nil), true, nil
		}
		x.items = repeat(x.items, count)
		return owner, true, methodEffect(tx, x, "__imul__", []VariableTracker{NewConstant(k, nil)})
	case *DequeVariable:
		return nil, true, unsupported(exc.OperatorUnsupported, "%s mul %s", Describe(tx, a), Describe(tx, b))
	case *TupleVariable:
		if !unrolls(len(x.items), count) {
			return nil, true, unsupported(exc.TooLarge, "tuple of more than %d items", maxUnroll)
		}
		if x.Exact() && (count == 1 || len(x.items) == 0) {
			return x, true, nil // CPython returns the tuple itself
		}
		return NewTuple(repeat(x.items, count), nil), true, nil
	case *ConstantVariable:
		if tooBig(tx, 5, x.Value, k) {
			return nil, true, unsupported(exc.TooLarge, "constant of great size")
		}
		r, err := tx.Scope().Binary(opcode.NB_MULTIPLY, x.Value, k)
		if err != nil {
			return nil, true, observed(err)
		}
		v, err := immutableResult(tx, r)
		return v, true, err
	}
	return nil, false, nil
}

func mergeDicts(tx Translator, inplace bool, a, b, owner VariableTracker) (VariableTracker, bool, error) {
	x, ok := a.(*DictVariable)
	if !ok {
		return nil, false, nil
	}
	y, isDict := b.(*DictVariable)
	if inplace {
		return owner, true, x.update(tx, []VariableTracker{b}, nil)
	}
	if !isDict {
		return nil, false, nil
	}
	for _, d := range []*DictVariable{x, y} {
		if d.holder != nil && !d.class.IsNull() { // | of OrderedDict and defaultdict makes an instance of the subclass
			return nil, true, unsupported(exc.OperatorUnsupported, "%s | %s", Describe(tx, a), Describe(tx, b))
		}
	}
	c, err := x.duplicate(tx)
	if err != nil {
		return nil, true, err
	}
	// __ror__ of OrderedDict and defaultdict returns a dict of their own type
	if x.class.IsNull() && x.holder == nil && !y.class.IsNull() {
		c.class, c.factory = y.class, y.factory
	}
	return c, true, c.update(tx, []VariableTracker{y}, nil)
}

// tooBig reports whether a result may be huge (2 ** 10**9, "a" * 10**9). Constant folding leaves such operations to run
// time.
func tooBig(tx Translator, n opcode.BinaryOp, a, b py.Object) bool {
	if b.Kind() != py.Int {
		return false
	}
	y, ok := py.AsInt(b)
	switch n.Function() {
	case "pow", "lshift":
		return a.Kind() == py.Int && (!ok || y > 4096)
	case "mul":
		k := a.Kind()
		return (k == py.Str || k == py.Bytes || k == py.Tuple) && (!ok || y > maxUnroll)
	}
	return false
}

func repeat(items []VariableTracker, k int) []VariableTracker {
	if len(items) == 0 {
		return nil
	}
	var out []VariableTracker
	for i := 0; i < k; i++ {
		out = append(out, items...)
	}
	return out
}

var unaryNames = [...]string{"pos", "neg", "invert"}

// Unary runs the operator + (0), - (1), ~ (2) or `not` (3).
func Unary(tx Translator, op int, v VariableTracker) (VariableTracker, error) {
	if flag := flagOf(v); flag != nil && op <= 1 {
		v = flag
	}
	if x := asSymNode(tx, v); x != nil {
		if r, ok := sizeUnary(tx, op, x); ok {
			return r, nil
		}
		if op == 3 {
			t, err := x.Truth(tx)
			return BoolConst(!t), err
		}
	}
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if op == 3 {
		t, err := Truth(tx, v)
		if c, ok := v.(*ComputedVariable); ok && err != nil && c.Type == tx.World().Builtin("bool") {
			return negated(tx, c)
		}
		if err != nil {
			return nil, err
		}
		return BoolConst(!t), nil
	}
	if isOpaque(v) {
		return PythonUnary(tx, op, v)
	}
	if r, ok, err := arrayOperator(tx, unaryNames[op], false, v); ok || err != nil {
		return r, err
	}
	if IsTensor(v) {
		return tensorOperator(tx, unaryNames[op], false, v)
	}
	if c, ok := v.(*ComputedVariable); ok {
		return computedUnary(tx, op, c)
	}
	if o, ok := AsConstant(tx, v); ok {
		r, err := computeKnown(tx, "unary", op, o)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, r)
	}
	if o, ok := v.(*ObjectVariable); ok {
		m, err := o.slotMethod(tx, "__"+unaryNames[op]+"__")
		if err != nil {
			return nil, err
		}
		if m != nil {
			return Call(tx, m, nil, nil)
		}
		if real, ok, err := o.realInstance(tx); err != nil {
			return nil, err
		} else if ok {
			r, err := computeKnown(tx, "unary", op, real)
			if err != nil {
				return nil, observed(err)
			}
			return immutableResult(tx, r)
		}
		return nil, typeError(tx, "bad operand type for unary "+[]string{"+", "-", "~"}[op]+": '\x00'", o)
	}
	return nil, unsupported(exc.OperatorUnsupported, "%s %s", unaryNames[op], Describe(tx, v))
}
