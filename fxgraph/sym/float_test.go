package sym

import (
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// randomFloat returns an expression on the sizes, and a function that computes it. ok is false if it has no value.
func randomFloat(env *Env, random *rand.Rand, depth int) (f Float, value func(values []int64) (x float64, ok bool)) {
	if depth == 0 {
		if random.Intn(3) == 0 {
			c := []float64{0, 0.5, 3, 32, 1.0 / 3, -2.25}[random.Intn(6)]
			return FloatConst(c), func([]int64) (float64, bool) { return c, true }
		}
		s := Symbol(random.Intn(3))
		return env.ToFloat(env.Symbol(s)), func(values []int64) (float64, bool) { return float64(values[s]), true }
	}
	a, x := randomFloat(env, random, depth-1)
	if random.Intn(5) == 0 {
		return env.Sqrt(a), func(values []int64) (float64, bool) {
			v, ok := x(values)
			return math.Sqrt(v), ok && v >= 0
		}
	}
	b, y := randomFloat(env, random, depth-1)
	op := FloatAdd + Op(random.Intn(6))
	return env.FloatOp(op, a, b), func(values []int64) (float64, bool) {
		v, ok := x(values)
		w, ok2 := y(values)
		return map[Op]float64{FloatAdd: v + w, FloatSub: v - w, FloatMul: v * w, FloatDiv: v / w,
			FloatMax: math.Max(v, w), FloatMin: math.Min(v, w)}[op], ok && ok2 && (op != FloatDiv || w != 0)
	}
}

func symbolsForFloats(env *Env) {
	for i := range 3 {
		env.NewSymbol(Info{Name: string(rune('a' + i)), Hint: int64(i) + 2, Hinted: true, Lo: 0, Hi: math.MaxInt64})
	}
}

// Float expressions, their roundings and their comparisons have the values that Go computes, and so do their written
// forms.
func TestFloatsHaveTheirValue(t *testing.T) {
	random := rand.New(rand.NewSource(5))
	compared := 0
	for range 600 {
		env := NewEnv()
		symbolsForFloats(env)
		f, value := randomFloat(env, random, 1+random.Intn(4))
		for range 6 {
			values := []int64{random.Int63n(9), random.Int63n(200), random.Int63n(9)}
			read := func(s Symbol) (int64, bool) { return values[s], true }
			want, defined := value(values)
			if f.IsUnknown() || !defined || math.IsNaN(want) || math.IsInf(want, 0) || want == 0 {
				continue // a constant part may have no value, and the signs of zeros may differ
			}
			got, ok := env.Eval(f.bits, read)
			require.True(t, ok, env.Text(f.bits))
			require.Equal(t, want, math.Float64frombits(uint64(got)))
			w := &evaluator{t: t, values: values}
			env.WriteFloat(f, w)
			require.Equal(t, []int64{got}, w.stack)
			if math.Abs(want) < exact {
				floor, _ := env.Eval(env.Rounded(Floor, f), read)
				require.Equal(t, int64(math.Floor(want)), floor)
				even, _ := env.Eval(env.Rounded(Round, f), read)
				require.Equal(t, int64(math.RoundToEven(want)), even)
			}
			less, ok := env.EvalCond(env.FloatLt(f, FloatConst(3)), read)
			require.True(t, ok)
			require.Equal(t, want < 3, less)
			compared++
		}
	}
	assert.Greater(t, compared, 600)
}

// A comparison is decided by the hints and recorded. Afterwards it is a fact.
func TestAComparisonOfFloatsIsACondition(t *testing.T) {
	env := NewEnv()
	symbolsForFloats(env)
	half := env.FloatOp(FloatDiv, env.ToFloat(env.Symbol(1)), FloatConst(2))
	c := env.FloatLt(half, FloatConst(2))
	holds, ok := env.Decide(c, nil)
	assert.True(t, holds && ok)
	assert.Equal(t, True, env.Ask(c))
	assert.Equal(t, "((float(b) / 2.0) < 2.0) != 0", env.CondText(c))
	_, records := env.Essential()
	assert.Len(t, records, 1)
	zero := env.ToFloat(env.Sub(env.Symbol(0), Const(2)))
	_, ok = env.Decide(env.FloatEq(env.FloatOp(FloatDiv, half, zero), half), nil)
	assert.False(t, ok, "the divisor is 0 in the translated call")
}

// A power has the value that Env.Power computes, unless it is too large or too small, or the base is negative.
func TestPowersOfFloats(t *testing.T) {
	env := NewEnv()
	symbolsForFloats(env)
	a := env.ToFloat(env.Symbol(0))
	root := env.FloatOp(FloatPow, a, FloatConst(0.5))
	_, ok := env.FloatHint(root)
	assert.False(t, ok, "nothing computes powers")
	env.Power = func(x, y float64) (float64, bool) { return math.Pow(x, y), true }
	assert.Equal(t, "int((float(a) ** 0.5))", env.Text(env.Rounded(Trunc, root)))
	for _, c := range []struct {
		base     int64
		exponent float64
		want     float64
		ok       bool
	}{{9, 0.5, 3, true}, {0, 0.5, 0, true}, {0, -0.5, 0, false}, {0, 0, 0, false}, {-4, 2, 0, false},
		{10, 308, 1e308, true}, {10, 309, 0, false}, {10, -309, 0, false}, {2, math.NaN(), 0, false}} {
		f := env.FloatOp(FloatPow, a, FloatConst(c.exponent))
		got, ok := env.Eval(f.bits, func(Symbol) (int64, bool) { return c.base, true })
		require.Equal(t, c.ok, ok, "%d ** %g", c.base, c.exponent)
		if ok {
			require.InEpsilon(t, c.want+1, math.Float64frombits(uint64(got))+1, 1e-14)
		}
	}
}

// roundingNames writes an expression with a name in place of each rounded float.
type roundingNames struct{ evaluator }

func (w *roundingNames) Rounded(Size) bool {
	w.stack = append(w.stack, 7)
	return true
}

// A RoundingWriter writes a rounded float as one operand.
func TestARoundedFloatIsOneOperand(t *testing.T) {
	env := NewEnv()
	symbolsForFloats(env)
	k := env.Rounded(Trunc, env.Sqrt(env.ToFloat(env.Symbol(0))))
	w := &roundingNames{evaluator{t: t, values: []int64{100, 5, 6}}}
	env.Write(env.Add(env.Mul(k, env.Symbol(1)), Const(3)), w)
	assert.Equal(t, []int64{7*5 + 3}, w.stack)
}

// A size that is converted to a float and rounded is the size again, if it is small enough to be exact.
func TestRoundingUndoesTheConversion(t *testing.T) {
	env := NewEnv()
	symbolsForFloats(env)
	a := env.Symbol(0)
	assert.NotEqual(t, a, env.Rounded(Trunc, env.ToFloat(a)))
	env.Assume(env.Le(a, Const(1<<20)))
	assert.Equal(t, a, env.Rounded(Trunc, env.ToFloat(a)))
	assert.True(t, env.ToFloat(Const(1<<53+1)).IsUnknown())
	assert.Equal(t, Const(7), env.Rounded(Ceil, FloatConst(6.5)))
	for text, f := range map[string]float64{"1.0": 1, "0.1": 0.1, "1e+20": 1e20, "float('inf')": math.Inf(1)} {
		assert.Equal(t, text, FloatText(f))
	}
}

// A chain of halvings, as in a backbone, is one division.
func TestChainsOfDivisionsAreOneDivision(t *testing.T) {
	env := NewEnv()
	symbolsForFloats(env)
	s := env.Symbol(1)
	for range 5 {
		s = env.Add(env.FloorDiv(env.Sub(s, Const(1)), Const(2)), Const(1))
	}
	assert.Equal(t, env.FloorDiv(env.Add(env.Symbol(1), Const(31)), Const(32)), s)
}
