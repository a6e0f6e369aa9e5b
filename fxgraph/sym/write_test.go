package sym

import (
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// evaluator is a Writer that computes the value of the expression. It checks that Begin has announced each operator.
type evaluator struct {
	t      *testing.T
	values []int64
	stack  []int64
	begun  []Op
}

func (e *evaluator) Begin(op Op)     { e.begun = append(e.begun, op) }
func (e *evaluator) Const(n int64)   { e.stack = append(e.stack, n) }
func (e *evaluator) Symbol(s Symbol) { e.stack = append(e.stack, e.values[s]) }
func (e *evaluator) FloatConst(f float64) {
	e.stack = append(e.stack, int64(math.Float64bits(f)))
}

func (e *evaluator) Apply(op Op) {
	require.NotEmpty(e.t, e.begun)
	require.Equal(e.t, op, e.begun[len(e.begun)-1])
	e.begun = e.begun[:len(e.begun)-1]
	n := len(e.stack)
	if op.Unary() {
		e.stack[n-1], _ = floatValue(operationOf[op], e.stack[n-1], 0)
		return
	}
	a, b := e.stack[n-2], e.stack[n-1]
	e.stack = e.stack[:n-1]
	if op >= FloatAdd {
		e.stack[n-2], _ = floatValue(operationOf[op], a, b)
		return
	}
	q, r := int64(0), int64(0)
	if b != 0 {
		q, r, _ = floorDivMod(a, b)
	}
	e.stack[n-2] = map[Op]int64{Add: a + b, Sub: a - b, Mul: a * b, FloorDiv: q, Mod: r, Max: max(a, b),
		Min: min(a, b)}[op]
}

// A written expression has the value of the expression, and the written sides of a condition compare as the condition
// does.
func TestWrittenExpressionsHaveTheirValue(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	for range 400 {
		env := NewEnv()
		for i := range 3 {
			env.NewSymbol(Info{Name: string(rune('a' + i)), Hint: 2, Hinted: true, Lo: 1, Hi: math.MaxInt64})
		}
		e := randomSize(env, random, 4)
		if e.IsUnknown() {
			continue
		}
		for range 10 {
			values := []int64{1 + random.Int63n(9), 1 + random.Int63n(9), 1 + random.Int63n(9)}
			read := func(s Symbol) (int64, bool) { return values[s], true }
			want, ok := env.Eval(e, read)
			if !ok {
				continue
			}
			w := &evaluator{t: t, values: values}
			env.Write(e, w)
			require.Empty(t, w.begun, env.Text(e))
			require.Equal(t, []int64{want}, w.stack, "%s at %v", env.Text(e), values)
			for _, c := range []Cond{NotNegative(e), Zero(e), NotZero(e)} {
				holds, _ := env.EvalCond(c, read)
				left, rel, right, ok := env.Sides(c)
				require.True(t, ok)
				l, _ := env.Eval(left, read)
				r, _ := env.Eval(right, read)
				got := map[Relation]bool{EQ: l == r, NE: l != r, GE: l >= r, LE: l <= r}[rel]
				require.Equal(t, holds, got, "%s at %v", env.CondText(c), values)
			}
		}
	}
}

// randomSize returns a random expression over the symbols of env.
func randomSize(env *Env, random *rand.Rand, depth int) Size {
	if depth == 0 || random.Intn(5) == 0 {
		if random.Intn(3) == 0 {
			return Const(random.Int63n(7) - 3)
		}
		return env.fromAtom(env.leaves[random.Intn(len(env.leaves))])
	}
	a, b := randomSize(env, random, depth-1), randomSize(env, random, depth-1)
	switch random.Intn(7) {
	case 0:
		return env.Add(a, b)
	case 1:
		return env.Sub(a, b)
	case 2:
		return env.Mul(a, b)
	case 3:
		return env.FloorDiv(a, Const(1+random.Int63n(5)))
	case 4:
		return env.Mod(a, Const(1+random.Int63n(5)))
	case 5:
		return env.Max(a, b)
	}
	return env.Min(a, b)
}

// Essential keeps records that together imply all records.
func TestEssentialRecords(t *testing.T) {
	env := NewEnv()
	var s [3]Size
	for i := range s {
		s[i] = env.NewSymbol(Info{Name: "s" + string(rune('0'+i)), Hint: 4, Hinted: true, Hi: math.MaxInt64})
	}
	for _, c := range []Cond{env.Ge(s[0], Const(1)), env.Ge(s[0], Const(2)), env.Eq(s[1], s[2]), env.Eq(s[2], Const(4)),
		env.Le(s[0], Const(9)), env.Ne(s[0], Const(3))} {
		holds, ok := env.Decide(c, nil)
		require.True(t, ok)
		require.True(t, holds)
	}
	fixed, records := env.Essential()
	assert.Equal(t, map[Symbol]int64{1: 4, 2: 4}, fixed)
	var texts []string
	for _, r := range records {
		texts = append(texts, env.CondText(r.Cond))
	}
	assert.Equal(t, []string{"s0 - 2 >= 0", "-s0 + 9 >= 0", "s0 - 3 != 0"}, texts)
}
