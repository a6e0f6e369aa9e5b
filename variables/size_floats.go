package variables

import (
	"math"
	"strconv"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/pyhook/py"
)

// A float computed from sizes by arithmetic, min, max and math.sqrt is a ComputedVariable with an expression
// (sym.Float). The sizes of the translated call decide a comparison of such floats, which becomes a guard. If such a
// float is rounded to an int, the int is a size with an expression, which guards compute. So a tensor that is resized
// by a computed factor has sizes that depend only on the input's sizes.

// takesSizeFloats reports whether floats computed from sizes have expressions in this translation. They have none in
// exported programs, where float() of a SymInt makes the size a constant.
func takesSizeFloats(tx Translator) bool {
	w := tx.World()
	return w.FixesSizes == 0 && !w.FixesOpaque && !w.Exporting && tx.Output().TakesNumbers()
}

// sizeNumber is a number as an expression over sizes. An int is converted to a float.
type sizeNumber struct {
	value  sym.Float
	float  bool // the number is a float
	varies bool // the number depends on sizes
}

// sizeNumberOf returns a number as an expression. ok is false if it has none.
func sizeNumberOf(tx Translator, v VariableTracker) (n sizeNumber, ok bool) {
	if l, lazy := v.(*LazyVariable); lazy {
		if k := l.obj.Kind(); l.real == nil && k != py.Int && k != py.Float {
			return n, false
		}
		v = MustRealize(tx, v)
	}
	env := tx.World().Env()
	switch x := v.(type) {
	case *ComputedVariable:
		if x.size != nil {
			return sizeNumber{*x.size, true, true}, true
		}
	case *ConstantVariable:
		switch x.Value.Kind() {
		case py.Float:
			c, err := strconv.ParseFloat(tx.Scope().Repr(x.Value), 64)
			return sizeNumber{sym.FloatConst(c), true, false}, err == nil
		case py.Int:
			i, small := py.AsInt(x.Value)
			n = sizeNumber{env.ToFloat(sym.Const(i)), false, false}
			return n, small && !n.value.IsUnknown()
		}
	case *SymNodeVariable:
		if asSymNode(tx, x) != nil {
			n = sizeNumber{env.ToFloat(env.Simplify(x.Size)), false, true}
			return n, !n.value.IsUnknown()
		}
	}
	return n, false
}

// sizeNumbers returns the operands of an operation as expressions. ok is false if an operand has no expression or if no
// operand depends on sizes. If `floats` is set, ok is also false if no operand is a float.
func sizeNumbers(tx Translator, operands []VariableTracker, floats bool) (values []sym.Float, ok bool) {
	float, varies := !floats, false
	for _, v := range operands {
		n, known := sizeNumberOf(tx, v)
		if !known {
			return nil, false
		}
		values = append(values, n.value)
		float, varies = float || n.float, varies || n.varies
	}
	return values, float && varies
}

// newSizeFloat returns the tracker of a float with an expression. emit writes the code that computes it from the
// operands. It returns nil if the float has no value in the translated call.
func newSizeFloat(tx Translator, f sym.Float, operands []VariableTracker,
	emit func(e Emitter, operands []VariableTracker) error) (VariableTracker, error) {
	if _, ok := tx.World().Env().FloatHint(f); f.IsUnknown() || !ok {
		return nil, nil
	}
	loaded := make([]VariableTracker, len(operands))
	for i, v := range operands {
		if l, lazy := v.(*LazyVariable); lazy {
			v = MustRealize(tx, l)
		}
		if err := tx.Output().Freeze(tx, v); err != nil {
			return nil, err
		}
		loaded[i] = settled(tx, v)
	}
	tx.World().Opaque++
	v, err := compute(tx, tx.World().Builtin("float"), loaded, func(e Emitter) error { return emit(e, loaded) })
	if err != nil {
		return nil, err
	}
	v.size = &f
	return v, nil
}

var floatOps = map[opcode.BinaryOp]sym.Op{opcode.NB_ADD: sym.FloatAdd, opcode.NB_SUBTRACT: sym.FloatSub,
	opcode.NB_MULTIPLY: sym.FloatMul, opcode.NB_TRUE_DIVIDE: sym.FloatDiv}

// floatArithmetic computes an arithmetic operator whose result is a float that depends on sizes. It returns nil for
// other operands and operators.
func floatArithmetic(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, error) {
	if n == opcode.NB_POWER {
		return sizePower(tx, a, b)
	}
	op, known := floatOps[n]
	if !known || !takesSizeFloats(tx) {
		return nil, nil
	}
	operands := []VariableTracker{a, b}
	values, ok := sizeNumbers(tx, operands, op != sym.FloatDiv)
	if !ok {
		return nil, nil
	}
	env := tx.World().Env()
	r := env.FloatOp(op, values[0], values[1])
	if _, ok := env.FloatHint(r); r.IsUnknown() || !ok {
		return nil, nil
	}
	if op == sym.FloatDiv { // a guard checks that the division does not raise
		zero, err := decide(tx, env.FloatEq(values[1], sym.FloatConst(0)))
		if err != nil || zero {
			return nil, nil
		}
	}
	return newSizeFloat(tx, r, operands, func(e Emitter, operands []VariableTracker) error {
		if err := LoadAll(e, operands); err != nil {
			return err
		}
		e.BinaryOp(n)
		return nil
	})
}

// sizePower computes x ** k for a known k, such as n ** -0.5. It returns nil unless x is a size and k a float, or x is
// a float that depends on sizes. The conditions on x and the bound of k ensure that the power is a float that is
// computed without an exception: 2 ** 63 to the power of 16 is below the largest float.
func sizePower(tx Translator, a, b VariableTracker) (VariableTracker, error) {
	if asSymNode(tx, b) != nil || isComputed(b) || !takesSizeFloats(tx) {
		return nil, nil
	}
	base, ok := sizeNumberOf(tx, a)
	if !ok || !base.varies {
		return nil, nil
	}
	k, constant := MustRealize(tx, b).(*ConstantVariable)
	if !constant || k.Value.Kind() != py.Float && (!base.float || k.Value.Kind() != py.Int) {
		return nil, nil
	}
	exponent, err := strconv.ParseFloat(tx.Scope().Repr(k.Value), 64)
	if err != nil || !(math.Abs(exponent) <= 16) {
		return nil, nil
	}
	env := tx.World().Env()
	conditions := []sym.Cond{env.FloatLe(sym.FloatConst(leastBase), base.value),
		env.FloatLe(base.value, sym.FloatConst(1/leastBase))}
	if !base.float {
		x, _ := sizeOf(tx, a)
		least := sym.Const(1)
		if exponent > 0 {
			least = sym.Const(0)
		}
		conditions = []sym.Cond{env.Ge(x, least)}
	}
	for _, c := range conditions {
		if holds, err := decide(tx, c); err != nil || !holds {
			return nil, nil
		}
	}
	r := env.FloatOp(sym.FloatPow, base.value, sym.FloatConst(exponent))
	if _, hinted := env.FloatHint(r); !hinted && !base.float {
		return floatOfSizes(tx, opcode.NB_POWER, a, k)
	}
	return newSizeFloat(tx, r, []VariableTracker{a, k}, func(e Emitter, operands []VariableTracker) error {
		if err := LoadAll(e, operands); err != nil {
			return err
		}
		e.BinaryOp(opcode.NB_POWER)
		return nil
	})
}

// leastBase and its reciprocal bound a float that is raised to a power.
const leastBase = 0x1p-60

// power returns x ** y as CPython computes it. The results of Go's math.Pow may differ in their last bits.
func (w *World) power(x, y float64) (r float64, ok bool) {
	s := w.scope
	v, ok := py.Answered(s.Binary(opcode.NB_POWER, s.Float(x), s.Float(y)))
	if !ok || v.Kind() != py.Float {
		return 0, false
	}
	r, err := strconv.ParseFloat(s.Repr(v), 64)
	return r, err == nil
}

// floatComparison compares a float that depends on sizes. It returns false for other operands.
func floatComparison(tx Translator, op opcode.CompareOp, a, b VariableTracker) (holds, ok bool, err error) {
	if !takesSizeFloats(tx) {
		return false, false, nil
	}
	values, ok := sizeNumbers(tx, []VariableTracker{a, b}, true)
	if !ok {
		return false, false, nil
	}
	env, x, y := tx.World().Env(), values[0], values[1]
	var c sym.Cond
	switch op {
	case opcode.CMP_LT:
		c = env.FloatLt(x, y)
	case opcode.CMP_LE:
		c = env.FloatLe(x, y)
	case opcode.CMP_GT:
		c = env.FloatLt(y, x)
	case opcode.CMP_GE:
		c = env.FloatLe(y, x)
	case opcode.CMP_EQ, opcode.CMP_NE:
		c = env.FloatEq(x, y)
	default:
		return false, false, nil
	}
	holds, err = decide(tx, c)
	return holds != (op == opcode.CMP_NE), err == nil, nil
}

// sizeTruth returns the truth of a float that depends on sizes. ok is false for other values.
func (v *ComputedVariable) sizeTruth(tx Translator) (truth, ok bool) {
	if v.size == nil || !takesSizeFloats(tx) {
		return false, false
	}
	zero, err := decide(tx, tx.World().Env().FloatEq(*v.size, sym.FloatConst(0)))
	return !zero, err == nil
}

var roundingOps = map[string]sym.Op{"int": sym.Trunc, "round": sym.Round, "math.floor": sym.Floor,
	"math.ceil": sym.Ceil, "math.trunc": sym.Trunc}

// exactLow is the least value of a float that is rounded to a size.
var exactLow = sym.Const(-exactInt)

// roundedSize rounds a float that depends on sizes to an int. It returns nil for other floats. A condition on the int
// makes the guards of each call compute it. So the code that computes it later does not raise.
func roundedSize(tx Translator, name string, x *ComputedVariable) VariableTracker {
	if x.size == nil || !takesSizeFloats(tx) {
		return nil
	}
	env := tx.World().Env()
	s := env.Rounded(roundingOps[name], *x.size)
	if _, ok := env.Hint(s); s.IsUnknown() || !ok {
		return nil
	}
	if within, err := decide(tx, env.Ge(s, exactLow)); err != nil || !within {
		return nil
	}
	return NewSize(tx, s)
}

// sizeSqrt returns math.sqrt of a number that depends on sizes, or nil for other numbers.
func sizeSqrt(tx Translator, fn py.Object, v VariableTracker) (VariableTracker, error) {
	if !takesSizeFloats(tx) {
		return nil, nil
	}
	values, ok := sizeNumbers(tx, []VariableTracker{v}, false)
	if !ok {
		return nil, nil
	}
	env := tx.World().Env()
	if valid, err := decide(tx, env.FloatLe(sym.FloatConst(0), values[0])); err != nil || !valid {
		return nil, nil
	}
	tx.Output().Const(fn)
	return callOnNumbers(tx, fn, env.Sqrt(values[0]), []VariableTracker{v})
}

// callOnNumbers returns the float that a function of numbers returns, with its expression.
func callOnNumbers(tx Translator, fn py.Object, f sym.Float, operands []VariableTracker) (VariableTracker, error) {
	return newSizeFloat(tx, f, operands, func(e Emitter, operands []VariableTracker) error {
		return EmitCall(e, fn, operands)
	})
}

// extremeOfSizes returns the min or max of two sizes, or of two floats, that depend on sizes. It returns nil for other
// values.
func extremeOfSizes(tx Translator, name string, a, b VariableTracker) (VariableTracker, error) {
	env := tx.World().Env()
	if asSymNode(tx, a) != nil || asSymNode(tx, b) != nil {
		x, ok := sizeOf(tx, a)
		y, ok2 := sizeOf(tx, b)
		r := env.Min(x, y)
		if name == "max" {
			r = env.Max(x, y)
		}
		if !ok || !ok2 || r.IsUnknown() {
			return nil, nil
		}
		return NewSize(tx, r), nil
	}
	if !isComputed(a) && !isComputed(b) || !takesSizeFloats(tx) {
		return nil, nil
	}
	x, ok := sizeNumberOf(tx, a)
	y, ok2 := sizeNumberOf(tx, b)
	if !ok || !ok2 || !x.float || !y.float {
		return nil, nil
	}
	op := map[string]sym.Op{"min": sym.FloatMin, "max": sym.FloatMax}[name]
	return callOnNumbers(tx, tx.World().Builtin(name), env.FloatOp(op, x.value, y.value), []VariableTracker{a, b})
}
