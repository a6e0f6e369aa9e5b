package sym

import "math"

// exact bounds the absolute values of ints that are converted to floats, and of floats that are rounded to ints. All
// ints within it are floats exactly.
const exact = 1 << 53

// Float is a float computed from sizes, as Python computes it: int / int, float * float, and so on. It is stored as a
// Size: the bits of the IEEE double as an int64. So floats and ints have one form in expressions, hints and guard
// programs. Integer arithmetic is never applied to these bits.
//
// A Float has no value if an int in it exceeds 2**53, a divisor is 0, a square root or a power has a negative operand,
// or if a power of another number than 0 is too large or too small for a float of full precision.
type Float struct{ bits Size }

// FloatConst is the constant f.
func FloatConst(f float64) Float { return Float{Const(int64(math.Float64bits(f)))} }

// Const returns the value of a constant.
func (f Float) Const() (float64, bool) {
	n, ok := f.bits.Const()
	return math.Float64frombits(uint64(n)), ok
}

// IsUnknown reports whether f results from arithmetic on Unknown.
func (f Float) IsUnknown() bool { return f.bits.IsUnknown() }

// Written returns f in the form that Env.Write takes. It must not be used for arithmetic.
func (f Float) Written() Size { return f.bits }

// ToFloat returns float(s).
func (env *Env) ToFloat(s Size) Float { return Float{env.apply(opToFloat, s, Size{})} }

// FloatOp returns the result of FloatAdd, FloatSub, FloatMul, FloatDiv, FloatMax, FloatMin or FloatPow. FloatMax and
// FloatMin compare as Python's max(a, b) and min(a, b).
func (env *Env) FloatOp(op Op, a, b Float) Float {
	return Float{env.apply(operationOf[op], a.bits, b.bits)}
}

// Sqrt returns math.sqrt(f).
func (env *Env) Sqrt(f Float) Float { return Float{env.apply(opSqrt, f.bits, Size{})} }

// Rounded rounds f to an int with Floor, Ceil, Trunc or Round (half to even). The result has no value if f is no finite
// number or exceeds 2**53.
func (env *Env) Rounded(op Op, f Float) Size { return env.apply(operationOf[op], f.bits, Size{}) }

// FloatLt is a < b.
func (env *Env) FloatLt(a, b Float) Cond { return env.compared(opFloatLt, a, b) }

// FloatLe is a <= b.
func (env *Env) FloatLe(a, b Float) Cond { return env.compared(opFloatLe, a, b) }

// FloatEq is a == b.
func (env *Env) FloatEq(a, b Float) Cond { return env.compared(opFloatEq, a, b) }

func (env *Env) compared(op operation, a, b Float) Cond {
	return NotZero(env.apply(op, a.bits, b.bits))
}

// FloatHint returns the value of f in the translated call. ok is false if f has no value there.
func (env *Env) FloatHint(f Float) (x float64, ok bool) {
	n, ok := env.Hint(f.bits)
	return math.Float64frombits(uint64(n)), ok
}

// apply returns the atom op(a, b) of an operation on floats, or its value if both operands are constants.
func (env *Env) apply(op operation, a, b Size) Size {
	if a.IsUnknown() || b.IsUnknown() {
		return Unknown()
	}
	if a.t == nil && b.t == nil {
		if n, ok := env.floatValue(op, a.c, b.c); ok {
			return Const(n)
		}
		return Unknown()
	}
	if x := a.atom(); x != nil && a.c == 0 && x.op == opToFloat && op.rounds() {
		if v := env.simpleBounds(x.a); v.lo >= -exact && v.hi <= exact {
			return x.a
		}
	}
	return env.operand(op, a, b)
}

// onFloats reports whether an operation takes or returns floats.
func (op operation) onFloats() bool { return op >= opToFloat }

// rounds reports whether an operation returns an int for a float.
func (op operation) rounds() bool { return op >= opFloor && op <= opRound }

// takesFloats reports whether the operands are floats.
func (op operation) takesFloats() bool { return op > opToFloat }

// unary reports whether an operation has one operand.
func (op operation) unary() bool { return op >= opToFloat && op <= opRound }

// floatValue computes an operation on floats. Floats are passed and returned as bits. ok is false if there is no value.
func (env *Env) floatValue(op operation, a, b int64) (n int64, ok bool) {
	if op != opFloatPow {
		return floatValue(op, a, b)
	}
	x, y := math.Float64frombits(uint64(a)), math.Float64frombits(uint64(b))
	if x == 0 {
		return 0, y > 0
	}
	if !(x > 0) || env.Power == nil {
		return 0, false
	}
	r, ok := env.Power(x, y)
	return int64(math.Float64bits(r)), ok && r >= minNormal && r <= math.MaxFloat64
}

// minNormal is the smallest positive float of full precision.
const minNormal = 0x1p-1022

// floatValue does the same, without powers.
func floatValue(op operation, a, b int64) (n int64, ok bool) {
	x, y := math.Float64frombits(uint64(a)), math.Float64frombits(uint64(b))
	switch op {
	case opToFloat:
		return int64(math.Float64bits(float64(a))), a >= -exact && a <= exact
	case opSqrt:
		return int64(math.Float64bits(math.Sqrt(x))), x >= 0
	case opFloor, opCeil, opTrunc, opRound:
		x = roundings[op](x)
		if !(x >= -exact && x <= exact) { // also true for NaN
			return 0, false
		}
		return int64(x), true
	case opFloatLt:
		return bit(x < y), true
	case opFloatLe:
		return bit(x <= y), true
	case opFloatEq:
		return bit(x == y), true
	}
	return arithmeticValue(op, x, y)
}

var roundings = map[operation]func(float64) float64{opFloor: math.Floor, opCeil: math.Ceil, opTrunc: math.Trunc,
	opRound: math.RoundToEven}

func arithmeticValue(op operation, x, y float64) (n int64, ok bool) {
	switch op {
	case opFloatAdd:
		x += y
	case opFloatSub:
		x -= y
	case opFloatMul:
		x *= y
	case opFloatDiv:
		if y == 0 {
			return 0, false
		}
		x /= y
	case opFloatMax:
		if y > x {
			x = y
		}
	case opFloatMin:
		if y < x {
			x = y
		}
	}
	return int64(math.Float64bits(x)), true
}

func bit(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}
