package sym

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openSymbols returns n symbols with the hint 7, the first with the given mark.
func openSymbols(env *Env, n int, marked bool) []Size {
	out := make([]Size, n)
	for i := range out {
		out[i] = env.NewSymbol(Info{Name: fmt.Sprint("s", i), Hint: 7, Hinted: true, Marked: marked && i == 0, Lo: 0,
			Hi: math.MaxInt64})
	}
	return out
}

func limitsOf(records []Record) (out []Record) {
	for _, r := range records {
		if r.Limit {
			out = append(out, r)
		}
	}
	return out
}

func TestManyConditionsOnASymbolMakeItAConstant(t *testing.T) {
	env := NewEnv()
	s := openSymbols(env, 2, false)
	env.Decide(env.Ge(s[1], Const(2)), "other")
	for k := int64(2); k < 40; k++ {
		why := "most"
		if k%3 == 0 {
			why = "fewer"
		}
		env.Decide(Zero(env.Mod(s[0], Const(k*1000))), why)
	}
	fixed, records := env.Essential()
	assert.Equal(t, map[Symbol]int64{0: 7}, fixed)
	require.Len(t, records, 1, "the condition on the other symbol stays")
	assert.Equal(t, "other", records[0].Why)
	limits := limitsOf(env.All())
	require.Len(t, limits, 1)
	assert.Equal(t, "most", limits[0].Why)
	by, _ := env.FixedBy(0)
	assert.True(t, by.Limit)
}

func TestBoundsOfOneExpressionCountOnce(t *testing.T) {
	env := NewEnv()
	s := openSymbols(env, 1, false)
	for k := int64(200); k > 7; k-- {
		env.Decide(env.Lt(s[0], Const(k)), k)
	}
	fixed, records := env.Essential()
	assert.Empty(t, fixed)
	assert.Len(t, records, 1)
}

func TestMarkedSymbolsBecomeConstantsLast(t *testing.T) {
	ask := func(n int) (map[Symbol]int64, []Record) {
		env := NewEnv()
		s := openSymbols(env, 5, true)
		for k := range n {
			env.Decide(env.Ne(s[0], Const(int64(100+k))), "line")
		}
		for k := range 20 {
			for _, x := range s[1:] {
				env.Decide(env.Ne(x, Const(int64(100+k))), "line")
			}
		}
		fixed, records := env.Essential()
		assert.LessOrEqual(t, len(records), MaxInAll)
		return fixed, records
	}
	fixed, _ := ask(40)
	assert.Empty(t, fixed, "40 conditions on a marked symbol, 120 in all")
	fixed, records := ask(100)
	assert.NotContains(t, fixed, Symbol(0))
	assert.NotEmpty(t, fixed, "symbols without a mark go first")
	assert.GreaterOrEqual(t, len(records), 100)
	fixed, _ = ask(140)
	assert.Equal(t, int64(7), fixed[0])
}

func TestUndoForgetsALimit(t *testing.T) {
	env := NewEnv()
	s := openSymbols(env, 1, false)
	m := env.Mark()
	for k := range 60 {
		env.Decide(env.Ne(s[0], Const(int64(100+k))), nil)
	}
	_, ok := env.Simplify(s[0]).Const()
	assert.True(t, ok)
	env.Undo(m)
	fixed, records := env.Essential()
	assert.Empty(t, fixed)
	assert.Empty(t, records)
}
