package guards

import (
	"math"
	"strconv"
	"strings"
)

// exactInt bounds the absolute values of ints that are converted to floats, and of floats that are rounded to ints.
const exactInt = 1 << 53

var sizeRoundings = map[SizeOp]func(float64) float64{SizeFloor: math.Floor, SizeCeil: math.Ceil,
	SizeTrunc: math.Trunc, SizeRound: math.RoundToEven}

// minNormal is the smallest positive float of full precision.
const minNormal = 0x1p-1022

// applyFloat does the same as apply, for floats, which are passed and returned as their bits. Operations on one value
// ignore b. The last bits of a SizeFloatPow may differ from C's.
func (o SizeOp) applyFloat(a, b int64) (int64, bool) {
	x, y := math.Float64frombits(uint64(a)), math.Float64frombits(uint64(b))
	switch o {
	case SizeFloat:
		return int64(math.Float64bits(float64(a))), a >= -exactInt && a <= exactInt
	case SizeSqrt:
		return int64(math.Float64bits(math.Sqrt(x))), x >= 0
	case SizeFloor, SizeCeil, SizeTrunc, SizeRound:
		x = sizeRoundings[o](x)
		if !(x >= -exactInt && x <= exactInt) { // false for a NaN
			return 0, false
		}
		return int64(x), true
	case SizeFloatLT, SizeFloatLE, SizeFloatEQ:
		if x < y && o != SizeFloatEQ || x == y && o != SizeFloatLT {
			return 1, true
		}
		return 0, true
	case SizeFloatAdd:
		x += y
	case SizeFloatSub:
		x -= y
	case SizeFloatMul:
		x *= y
	case SizeFloatDiv:
		if y == 0 {
			return 0, false
		}
		x /= y
	case SizeFloatMax:
		if y > x {
			x = y
		}
	case SizeFloatMin:
		if y < x {
			x = y
		}
	case SizeFloatPow:
		r := math.Pow(x, y)
		if x != 0 && !(x > 0 && r >= minNormal && r <= math.MaxFloat64) || x == 0 && !(y > 0) {
			return 0, false
		}
		x = r
	default:
		return 0, false
	}
	return int64(math.Float64bits(x)), true
}

// floatText returns a float, given as its bits, as Python writes it.
func floatText(bits int64) string {
	f := math.Float64frombits(uint64(bits))
	text := strconv.FormatFloat(f, 'g', -1, 64)
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	case !strings.ContainsAny(text, ".e"):
		return text + ".0"
	}
	return text
}
