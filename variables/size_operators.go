package variables

import (
	"math"
	"strconv"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// nonZero reports whether a divisor is not 0.
func nonZero(tx Translator, s sym.Size) (bool, error) { return decide(tx, sym.NotZero(s)) }

// arithmeticOfSizes computes an arithmetic operator with at least one size among its operands. It returns false if
// there is none, or if the result needs the value of the size.
func arithmeticOfSizes(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if asSymNode(tx, a) == nil && asSymNode(tx, b) == nil {
		return nil, false, nil
	}
	if r, err := floatArithmetic(tx, n, a, b); r != nil || err != nil {
		return r, true, err
	}
	x, ok := sizeOf(tx, a)
	y, ok2 := sizeOf(tx, b)
	if !ok || !ok2 {
		return sizeAndNumber(tx, n, a, b)
	}
	env := tx.World().Env()
	switch n {
	case opcode.NB_FLOOR_DIVIDE, opcode.NB_REMAINDER, opcode.NB_TRUE_DIVIDE:
		if valid, err := nonZero(tx, y); err != nil || !valid {
			return nil, false, err
		}
	}
	var r sym.Size
	switch n {
	case opcode.NB_ADD:
		r = env.Add(x, y)
	case opcode.NB_SUBTRACT:
		r = env.Sub(x, y)
	case opcode.NB_MULTIPLY:
		r = env.Mul(x, y)
	case opcode.NB_FLOOR_DIVIDE:
		r = env.FloorDiv(x, y)
	case opcode.NB_REMAINDER:
		r = env.Mod(x, y)
	case opcode.NB_POWER:
		k, known := y.Const()
		if !known || k < 0 || k > 4 {
			return nil, false, nil
		}
		r = sym.Const(1)
		for range k {
			r = env.Mul(r, x)
		}
	case opcode.NB_TRUE_DIVIDE:
		if tx.World().FixesOpaque {
			return nil, false, nil
		}
		v, err := floatOfSizes(tx, n, a, b) // b is not 0
		return v, err == nil, err
	default:
		return nil, false, nil
	}
	if r.IsUnknown() || tooLarge(env, r, x, y) {
		return nil, false, nil
	}
	return NewSize(tx, r), true, nil
}

// tooLarge reports whether the result r exceeds 64 bits in the translated call, in which the operands' values are
// known.
func tooLarge(env *sym.Env, r sym.Size, operands ...sym.Size) bool {
	for _, x := range operands {
		if _, ok := env.Hint(x); !ok {
			return false
		}
	}
	_, ok := env.Hint(r)
	return !ok
}

// floatOfSizes returns the result of an operator as a float computed at run time. The operator must not raise.
func floatOfSizes(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, error) {
	operands := []VariableTracker{a, b}
	for i, v := range operands {
		if err := tx.Output().Freeze(tx, v); err != nil {
			return nil, err
		}
		operands[i] = settled(tx, v)
	}
	tx.World().Opaque++
	return compute(tx, tx.World().Builtin("float"), operands, func(e Emitter) error {
		if err := LoadAll(e, operands); err != nil {
			return err
		}
		e.BinaryOp(n)
		return nil
	})
}

// settled returns the constant that a size equals, and other values unchanged.
func settled(tx Translator, v VariableTracker) VariableTracker {
	if x, ok := v.(*SymNodeVariable); ok {
		if c := x.Settled(tx.World()); c != nil {
			return c
		}
	}
	return v
}

// sizeAndNumber computes an arithmetic operator of a size and a float or a value computed at run time.
func sizeAndNumber(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if tx.World().FixesOpaque {
		return nil, false, nil
	}
	operands := []VariableTracker{a, b}
	for i, v := range operands {
		if x := asSymNode(tx, v); x != nil {
			c, err := x.computed(tx)
			if err != nil {
				return nil, false, err
			}
			operands[i] = c
			continue
		}
		l, lazy := v.(*LazyVariable)
		if lazy && l.real == nil && l.obj.Kind() != py.Float {
			return nil, false, nil
		}
		operands[i] = MustRealize(tx, v)
		if k, ok := operands[i].(*ConstantVariable); ok && k.Value.Kind() != py.Float {
			return nil, false, nil
		} else if _, ok := numberLetter(tx, operands[i]); !ok {
			return nil, false, nil
		}
	}
	r, ok, err := computedOperator(tx, n, operands[0], operands[1])
	if _, refused := err.(*exc.Unsupported); refused {
		return nil, false, nil // a constant in place of the size may work
	}
	return r, ok, err
}

// sizeComparison compares two values, at least one of them a size. It returns false if there is none, or if the
// comparison needs the value of the size.
func sizeComparison(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if asSymNode(tx, a) == nil && asSymNode(tx, b) == nil {
		return nil, false, nil
	}
	x, ok := sizeOf(tx, a)
	y, ok2 := sizeOf(tx, b)
	if isComputed(a) || isComputed(b) {
		if holds, ok, err := floatComparison(tx, op, a, b); ok || err != nil {
			return BoolConst(holds), true, err
		}
	}
	if !ok || !ok2 {
		other := b
		if ok2 {
			other = a
		}
		if l, lazy := other.(*LazyVariable); lazy && l.real == nil && !plainKind[l.obj.Kind()] {
			return nil, false, nil
		}
		c, known := AsConstant(tx, MustRealize(tx, other))
		if known && unequalToInts[c.Kind()] && (op == opcode.CMP_EQ || op == opcode.CMP_NE) {
			return BoolConst(op == opcode.CMP_NE), true, nil
		}
		if known && c.Kind() == py.Float && ok {
			return sizeAgainstFloat(tx, op, x, c)
		} else if known && c.Kind() == py.Float && ok2 {
			return sizeAgainstFloat(tx, op.Swapped(), y, c)
		}
		return nil, false, nil
	}
	env := tx.World().Env()
	var c sym.Cond
	switch op {
	case opcode.CMP_EQ:
		c = env.Eq(x, y)
	case opcode.CMP_NE:
		c = env.Ne(x, y)
	case opcode.CMP_LT:
		c = env.Lt(x, y)
	case opcode.CMP_LE:
		c = env.Le(x, y)
	case opcode.CMP_GT:
		c = env.Gt(x, y)
	case opcode.CMP_GE:
		c = env.Ge(x, y)
	default:
		return nil, false, nil
	}
	outcome, err := tx.Output().Compared(tx, c)
	if err != nil {
		outcome, err = comparedAtRunTime(tx, c, err, []VariableTracker{a, b}, func(e Emitter) { e.CompareOp(op) })
	}
	return outcome, true, err
}

// sizeAgainstFloat compares a size with a known float. It returns false unless a comparison with an int has the same
// outcome.
func sizeAgainstFloat(tx Translator, op opcode.CompareOp, x sym.Size, float py.Object) (VariableTracker, bool, error) {
	f, err := strconv.ParseFloat(tx.Scope().Repr(float), 64)
	if err != nil || !(math.Abs(f) < exactInt) {
		return nil, false, nil
	}
	env, below := tx.World().Env(), sym.Const(int64(math.Floor(f)))
	whole := math.Floor(f) == f
	var c sym.Cond
	switch {
	case op == opcode.CMP_GT || op == opcode.CMP_GE && !whole:
		c = env.Gt(x, below)
	case op == opcode.CMP_GE:
		c = env.Ge(x, below)
	case op == opcode.CMP_LE || op == opcode.CMP_LT && !whole:
		c = env.Le(x, below)
	case op == opcode.CMP_LT:
		c = env.Lt(x, below)
	case (op == opcode.CMP_EQ || op == opcode.CMP_NE) && !whole:
		return BoolConst(op == opcode.CMP_NE), true, nil
	case op == opcode.CMP_EQ:
		c = env.Eq(x, below)
	case op == opcode.CMP_NE:
		c = env.Ne(x, below)
	default:
		return nil, false, nil
	}
	holds, err := decide(tx, c)
	if err != nil {
		return nil, false, nil // the size is known at run time only
	}
	return BoolConst(holds), true, nil
}

// plainKind has the kinds of values that a comparison with a size may read. unequalToInts has the kinds that equal no
// int.
var (
	plainKind = map[py.Kind]bool{py.NoneKind: true, py.Str: true, py.Bytes: true, py.Int: true,
		py.Float: true}
	unequalToInts = map[py.Kind]bool{py.NoneKind: true, py.Str: true, py.Bytes: true, py.EllipsisKind: true,
		py.Tuple: true}
)

// sizeUnary computes +v (op is 0), -v (1) or ~v (2).
func sizeUnary(tx Translator, op int, v *SymNodeVariable) (VariableTracker, bool) {
	env, r := tx.World().Env(), v.Size
	switch op {
	case 1:
		r = env.Neg(r)
	case 2:
		r = env.Sub(env.Neg(r), sym.Const(1))
	}
	if r.IsUnknown() || op > 2 || tooLarge(env, r, v.Size) {
		return nil, false
	}
	return NewSize(tx, r), true
}

// sizeCall calls a builtin with sizes among its arguments. It returns false for builtins that need their values.
func sizeCall(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil, false, nil
	}
	v := asSymNode(tx, args[0])
	if len(args) == 2 && (v != nil || asSymNode(tx, args[1]) != nil) {
		return sizeCall2(tx, name, args)
	}
	if v == nil || len(args) > 1 {
		return nil, false, nil
	}
	env := tx.World().Env()
	switch name {
	case "int", "round", "operator.index", "math.ceil", "math.floor", "math.trunc":
		return v, true, nil
	case "bool":
		t, err := v.Truth(tx)
		return BoolConst(t), true, err
	case "type":
		return NewBuiltin(tx.World().Builtin("int"), "int", nil), true, nil
	case "abs", "operator.abs":
		negative, err := decide(tx, env.Lt(v.Size, sym.Size{}))
		if err != nil || !negative {
			return v, true, err
		}
		r, ok := sizeUnary(tx, 1, v)
		return r, ok, nil
	case "float":
		if takesSizeFloats(tx) {
			fn := tx.World().Builtin(name)
			r, err := callOnNumbers(tx, fn, env.ToFloat(env.Simplify(v.Size)), []VariableTracker{v})
			if r != nil || err != nil {
				return r, true, err
			}
		}
		if tx.World().FixesOpaque {
			return nil, false, nil
		}
		c, err := v.computed(tx)
		if err != nil {
			return nil, true, err
		}
		return computedCall(tx, tx.World().Builtin(name), name, []VariableTracker{c}, nil)
	}
	return nil, false, nil
}

// sizeCall2 does the same as sizeCall, for two arguments.
func sizeCall2(tx Translator, name string, args []VariableTracker) (VariableTracker, bool, error) {
	if name == "isinstance" && asSymNode(tx, args[0]) != nil {
		// The class and metaclass of int have no user code, so any int serves.
		one := NewConstant(tx.Scope().Int(1), nil)
		r, err := builtinIsInstance(tx, []VariableTracker{one, args[1]})
		return r, true, err
	}
	x, ok := sizeOf(tx, args[0])
	y, ok2 := sizeOf(tx, args[1])
	if !ok || !ok2 {
		return nil, false, nil
	}
	env := tx.World().Env()
	var r sym.Size
	switch name {
	case "max":
		r = env.Max(x, y)
	case "min":
		r = env.Min(x, y)
	case "divmod":
		if valid, err := nonZero(tx, y); err != nil || !valid {
			return nil, false, err
		}
		q, rest := env.FloorDiv(x, y), env.Mod(x, y)
		if q.IsUnknown() || rest.IsUnknown() {
			return nil, false, nil
		}
		return NewTuple([]VariableTracker{NewSize(tx, q), NewSize(tx, rest)}, nil), true, nil
	default:
		return nil, false, nil
	}
	if r.IsUnknown() {
		return nil, false, nil
	}
	return NewSize(tx, r), true, nil
}

// sizeIs reports whether two values are the same object. It knows the answer if one is a size and the other cannot be
// an int.
func sizeIs(tx Translator, a, b VariableTracker) (same, known bool) {
	if asSymNode(tx, a) == nil {
		a, b = b, a
	}
	if asSymNode(tx, a) == nil {
		return false, false
	}
	switch x := b.(type) {
	case *LazyVariable:
		return false, x.real == nil && x.obj.Kind() == py.NoneKind && MustRealize(tx, x) != nil
	case *ConstantVariable:
		return false, x.Value.Kind() != py.Int
	}
	return false, false
}

// sizeBesideTensor runs an operator on a tensor and a size. It returns false for other operands.
func sizeBesideTensor(tx Translator, n opcode.BinaryOp, inplace bool, a, b VariableTracker) (VariableTracker, bool,
	error) {
	a, b, ok, err := tensorAndSize(tx, a, b)
	if !ok || err != nil {
		return nil, false, err
	}
	return operatorWithTensor(tx, n, inplace, a, b)
}

// sizeComparedWithTensor runs a comparison of a tensor and a size. It returns false for other operands.
func sizeComparedWithTensor(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, bool, error) {
	a, b, ok, err := tensorAndSize(tx, a, b)
	if !ok || err != nil {
		return nil, false, err
	}
	if r, ok, err := besideTensor(tx, a, b, op.Method(), op.Swapped().Method()); ok || err != nil {
		return r, true, err
	}
	r, err := tensorOperator(tx, op.Name(), false, a, b)
	return r, true, err
}

// tensorAndSize realizes the operands. ok is true if one is a tensor and the other a size.
func tensorAndSize(tx Translator, a, b VariableTracker) (x, y VariableTracker, ok bool, err error) {
	if (asSymNode(tx, a) == nil) == (asSymNode(tx, b) == nil) {
		return a, b, false, nil
	}
	if x, err = Argument(tx, a); err != nil {
		return a, b, false, err
	}
	if y, err = Argument(tx, b); err != nil {
		return a, b, false, err
	}
	return x, y, IsTensor(x) || IsTensor(y), nil
}

// constantTuple returns the tracker of a tuple or a torch.Size with constant items.
func constantTuple(tx Translator, o py.Object) *TupleVariable {
	objects := tx.Scope().Items(o)
	items := make([]VariableTracker, len(objects))
	for i, it := range objects {
		items[i] = NewConstant(it, nil)
	}
	if o.Type() == tx.World().SizeType {
		return NewTupleOf(items, o.Type(), nil)
	}
	return NewTuple(items, nil)
}

// symbolicSizes runs + or * with a torch.Size operand of which some sizes may differ between calls. It returns nil for
// other operands. The class of the result depends on torch's version but not on the sizes. So CPython runs the operator
// on numbers that represent the items.
func symbolicSizes(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, error) {
	s := tx.Scope()
	var items []VariableTracker
	symbolic := false
	standsFor := func(v VariableTracker) (py.Object, bool) {
		t, ok := v.(*TupleVariable)
		if !ok {
			o, known := AsConstant(tx, MustRealize(tx, v))
			if !known || o.Type() != tx.World().SizeType && o.Kind() != py.Tuple {
				return o, known && n == opcode.NB_MULTIPLY && o.Kind() == py.Int
			}
			t = constantTuple(tx, o)
		}
		stand := make([]py.Object, len(t.items))
		for i, it := range t.items {
			if _, isInt := sizeOf(tx, it); !isInt {
				return py.Object{}, false
			}
			symbolic = symbolic || asSymNode(tx, it) != nil
			stand[i] = s.Int(int64(len(items)))
			items = append(items, it)
		}
		if t.class.IsNull() {
			return s.Tuple(stand...), true
		}
		return py.Answered(s.Call(t.class, s.Tuple(stand...)))
	}
	x, ok := standsFor(a)
	y, ok2 := standsFor(b)
	if !ok || !ok2 || !symbolic || tooBig(tx, n, x, y) {
		return nil, nil
	}
	r, err := s.Binary(n, x, y)
	if err != nil {
		return nil, observed(err)
	}
	var out []VariableTracker
	for _, it := range s.Items(r) {
		i, _ := py.AsInt(it)
		out = append(out, items[i])
	}
	if r.Type() == tx.World().SizeType {
		return NewTupleOf(out, tx.World().SizeType, nil), nil
	}
	return NewTuple(out, nil), nil
}

// numelOf returns the product of ints. ok is false if an item is no int, or if the product needs their values.
func numelOf(tx Translator, items []VariableTracker) (v VariableTracker, ok bool) {
	n, env := sym.Const(1), tx.World().Env()
	for _, it := range items {
		s, isInt := sizeOf(tx, it)
		if n = env.Mul(n, s); !isInt || n.IsUnknown() {
			return nil, false
		}
	}
	return NewSize(tx, n), true
}
