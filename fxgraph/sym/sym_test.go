package sym

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program is an Env with symbols of small ranges, so that each question can be answered by trying all values.
type program struct {
	*Env
	random  *rand.Rand
	symbols []Size
	bounds  []interval
	sizes   []Size
	facts   []Cond
	values  [][]int64 // all values of the symbols under which the facts hold
}

func newProgram(seed int64) *program {
	p := &program{Env: NewEnv(), random: rand.New(rand.NewSource(seed))}
	all := [][]int64{nil}
	for i := range 2 + p.random.Intn(2) {
		lo := int64(p.random.Intn(4) - 1)
		v := interval{lo, lo + int64(1+p.random.Intn(9))}
		p.bounds = append(p.bounds, v)
		hint := v.lo + p.random.Int63n(v.hi-v.lo+1)
		p.symbols = append(p.symbols, p.NewSymbol(Info{Name: fmt.Sprint("s", i), Hint: hint, Hinted: true,
			Lo: v.lo, Hi: v.hi}))
		var more [][]int64
		for _, values := range all {
			for n := v.lo; n <= v.hi; n++ {
				more = append(more, append(append([]int64{}, values...), n))
			}
		}
		all = more
	}
	p.sizes = append(p.sizes, p.symbols...)
	p.values = all
	return p
}

func (p *program) pick() Size {
	if p.random.Intn(4) == 0 {
		return Const(int64(p.random.Intn(12) - 3))
	}
	return p.sizes[p.random.Intn(len(p.sizes))]
}

// grow makes an expression by a random operation on two others. It checks the value of the expression for all values of
// the symbols under which the facts hold.
func (p *program) grow(t *testing.T) {
	a, b := p.pick(), p.pick()
	operations := []struct {
		name string
		got  func(a, b Size) Size
		want func(a, b int64) int64
	}{
		{"+", p.Add, func(a, b int64) int64 { return a + b }},
		{"-", p.Sub, func(a, b int64) int64 { return a - b }},
		{"*", p.Mul, func(a, b int64) int64 { return a * b }},
		{"//", p.FloorDiv, func(a, b int64) int64 { q, _, _ := floorDivMod(a, b); return q }},
		{"%", p.Mod, func(a, b int64) int64 { _, r, _ := floorDivMod(a, b); return r }},
		{"max", p.Max, func(a, b int64) int64 { return max(a, b) }},
		{"min", p.Min, func(a, b int64) int64 { return min(a, b) }},
	}
	o := operations[p.random.Intn(len(operations))]
	got := o.got(a, b)
	if got.IsUnknown() {
		return
	}
	if p.random.Intn(2) == 0 {
		got = p.Simplify(got)
	}
	for _, values := range p.values {
		at := func(s Symbol) (int64, bool) { return values[s], true }
		x, ok1 := p.Eval(a, at)
		y, ok2 := p.Eval(b, at)
		n, ok := p.Eval(got, at)
		require.True(t, ok1 && ok2 && ok, "%s %s %s = %s at %v", p.Text(a), o.name, p.Text(b), p.Text(got), values)
		require.Equal(t, o.want(x, y), n, "%s %s %s = %s at %v", p.Text(a), o.name, p.Text(b), p.Text(got), values)
	}
	p.sizes = append(p.sizes, got)
}

func (p *program) cond() Cond {
	a, b := p.pick(), p.pick()
	makers := []func(a, b Size) Cond{p.Eq, p.Ne, p.Ge, p.Gt, p.Le, p.Lt}
	if p.random.Intn(4) == 0 && b.t == nil && b.c > 1 {
		return p.Eq(p.Mod(a, b), Const(p.random.Int63n(b.c)))
	}
	return makers[p.random.Intn(len(makers))](a, b)
}

// truth tries all values of the symbols under which the facts hold. It returns whether c holds for all of them, and
// whether it holds for none of them. known is false if a computation overflows int64.
func (p *program) truth(c Cond) (always, never, known bool) {
	always, never = true, true
	for _, values := range p.values {
		holds, ok := p.EvalCond(c, func(s Symbol) (int64, bool) { return values[s], true })
		if !ok {
			return false, false, false
		}
		always = always && holds
		never = never && !holds
	}
	return always, never, true
}

// learn makes c, or its opposite, a fact, if some values remain.
func (p *program) learn(t *testing.T, c Cond) {
	always, never, known := p.truth(c)
	if !known || always || never {
		return
	}
	holds, ok := p.Decide(c, nil)
	require.True(t, ok)
	if !holds {
		c = p.Not(c)
	}
	p.keep(c)
}

func (p *program) keep(c Cond) {
	p.facts = append(p.facts, c)
	var left [][]int64
	for _, values := range p.values {
		if holds, _ := p.EvalCond(c, func(s Symbol) (int64, bool) { return values[s], true }); holds {
			left = append(left, values)
		}
	}
	p.values = left
}

func TestAskAgreesWithTryingAllValues(t *testing.T) {
	programs := 2000
	if testing.Short() {
		programs = 300
	}
	asked, decidable, decided := 0, 0, 0
	for seed := range programs {
		p := newProgram(int64(seed))
		for range 14 {
			p.grow(t)
			if p.random.Intn(3) == 0 {
				p.learn(t, p.cond())
				require.NotEmpty(t, p.values, "seed %d", seed)
			}
			for range 5 {
				c := p.cond()
				always, never, known := p.truth(c)
				if !known {
					continue
				}
				asked++
				if always || never {
					decidable++
				}
				switch p.Ask(c) {
				case True:
					decided++
					require.True(t, always, "seed %d: %s is not always true under %v", seed, p.CondText(c),
						p.factTexts())
				case False:
					decided++
					require.True(t, never, "seed %d: %s is not always false under %v", seed, p.CondText(c),
						p.factTexts())
				}
			}
		}
	}
	t.Logf("%d questions, %d decidable, %.1f %% of these decided", asked, decidable,
		100*float64(decided)/float64(decidable))
	assert.Greater(t, float64(decided), 0.9*float64(decidable))
}

func (p *program) factTexts() (out []string) {
	for _, c := range p.facts {
		out = append(out, p.CondText(c))
	}
	return out
}

func TestRequireRecordsWithoutHints(t *testing.T) {
	env := NewEnv()
	u := env.NewSymbol(Info{Name: "u0", Lo: 0, Hi: math.MaxInt64})
	env.Require(env.Ge(u, Const(2)), "the user")
	env.Require(env.Ge(u, Const(1)), "the user")
	require.Len(t, env.Records(), 1)
	assert.Equal(t, True, env.Ask(env.Gt(u, Const(1))))
	assert.Equal(t, Undecided, env.Ask(env.Gt(u, Const(2))))
	fixed, records := env.Essential()
	assert.Empty(t, fixed)
	assert.Len(t, records, 1)
}

func TestUndoForgets(t *testing.T) {
	for seed := range 600 {
		p := newProgram(int64(seed))
		for range 6 {
			p.grow(t)
			p.learn(t, p.cond())
		}
		var conds []Cond
		var answers []Answer
		for range 20 {
			c := p.cond()
			conds = append(conds, c)
			answers = append(answers, p.Ask(c))
		}
		mark, values, sizes, records := p.Mark(), p.values, len(p.sizes), len(p.Records())
		for range 6 {
			p.grow(t)
			p.learn(t, p.cond())
		}
		p.Undo(mark)
		p.values, p.sizes = values, p.sizes[:sizes]
		require.Len(t, p.Records(), records)
		for i, c := range conds {
			got := p.Ask(c)
			if answers[i] != Undecided { // more may be decided now, since expressions are simplified again after Undo
				require.Equal(t, answers[i], got, "seed %d: %s", seed, p.CondText(c))
			}
			always, never, known := p.truth(c)
			require.True(t, !known || got == Undecided || got == True && always || got == False && never,
				"seed %d: %s is %d after Undo", seed, p.CondText(c), got)
		}
	}
}

// TestConclusions checks questions that shape rules and models ask. Env.Ask must answer them without hints.
func TestConclusions(t *testing.T) {
	env := NewEnv()
	size := func(name string, lo int64) Size {
		return env.NewSymbol(Info{Name: name, Lo: lo, Hi: math.MaxInt64})
	}
	b, s, h := size("b", 0), size("s", 2), size("h", 1)
	c := Const
	for _, row := range []struct {
		what string
		cond Cond
		want Answer
	}{
		{"a size is not negative", env.Ge(b, c(0)), True},
		{"s >= 2 is not 1", env.Eq(s, c(1)), False},
		{"b may be 1", env.Eq(b, c(1)), Undecided},
		{"b * s * 64 is divisible by 8", env.Eq(env.Mod(env.Mul(env.Mul(b, s), c(64)), c(8)), c(0)), True},
		{"(b * s) // s is b", env.Eq(env.FloorDiv(env.Mul(b, s), s), b), True},
		{"view of b, s, h as b * s, h: same number of elements",
			env.Eq(env.Mul(env.Mul(b, s), h), env.Mul(env.Mul(s, b), h)), True},
		{"s + 1 > s", env.Gt(env.Add(s, c(1)), s), True},
		{"b * s >= b, since s >= 2", env.Ge(env.Mul(b, s), b), True},
		{"2 * s is not odd", env.Eq(env.Mul(c(2), s), c(7)), False},
		{"s // 2 <= s", env.Le(env.FloorDiv(s, c(2)), s), True},
		{"s // 2 >= 1", env.Ge(env.FloorDiv(s, c(2)), c(1)), True},
		{"s - s // 2 >= 1", env.Ge(env.Sub(s, env.FloorDiv(s, c(2))), c(1)), True},
		{"min(s, 10) <= 10", env.Le(env.Min(s, c(10)), c(10)), True},
		{"max(s, 1) is s", env.Eq(env.Max(s, c(1)), s), True},
		{"convolution: (s + 2 - 3) // 1 + 1 is s",
			env.Eq(env.Add(env.FloorDiv(env.Sub(env.Add(s, c(2)), c(3)), c(1)), c(1)), s), True},
	} {
		assert.Equal(t, row.want, env.Ask(row.cond), row.what)
	}
	env.Assume(env.Eq(env.Mod(s, c(8)), c(0)))
	assert.Equal(t, True, env.Ask(env.Eq(env.Mul(c(8), env.FloorDiv(s, c(8))), s)),
		"8 * (s // 8) is s where s is divisible by 8")
	assert.Equal(t, True, env.Ask(env.Eq(env.Mod(s, c(4)), c(0))), "and divisible by 4")
	assert.Equal(t, False, env.Ask(env.Eq(s, c(12))), "and not 12")
	env.Assume(env.Eq(h, env.Mul(c(2), b)))
	assert.Equal(t, True, env.Ask(env.Eq(env.Mod(h, c(2)), c(0))), "h = 2 * b is even")
	assert.Equal(t, True, env.Ask(env.Ge(b, c(1))), "and since h >= 1, b is not 0")
}

func TestArithmeticLeavesInt64(t *testing.T) {
	env := NewEnv()
	s := env.NewSymbol(Info{Name: "s", Lo: 0, Hi: math.MaxInt64})
	big := Const(math.MaxInt64)
	assert.True(t, env.Mul(env.Add(s, Const(2)), env.Mul(big, s)).IsUnknown())
	assert.True(t, env.Add(big, Const(1)).IsUnknown())
	assert.True(t, env.Neg(Const(math.MinInt64)).IsUnknown())
	assert.True(t, env.FloorDiv(Const(math.MinInt64), Const(-1)).IsUnknown())
	assert.True(t, env.Mod(s, Const(0)).IsUnknown())
	assert.True(t, env.FloorDiv(Const(1), s).IsUnknown(), "s may be 0")
	assert.Equal(t, Undecided, env.Ask(Zero(Unknown())))
	_, ok := env.Decide(Zero(Unknown()), nil)
	assert.False(t, ok)
	power := s
	for range maxDegree {
		power = env.Mul(power, s)
	}
	assert.True(t, power.IsUnknown())
}

func TestDecideRecordsWhatHintsDecide(t *testing.T) {
	env := NewEnv()
	s := env.NewSymbol(Info{Name: "s", Hint: 7, Hinted: true, Lo: 0, Hi: math.MaxInt64})
	u := env.NewSymbol(Info{Name: "u", Lo: 0, Hi: math.MaxInt64})
	holds, ok := env.Decide(env.Gt(s, Const(5)), "line 3")
	assert.True(t, holds && ok)
	holds, ok = env.Decide(env.Ge(s, Const(6)), "line 4")
	assert.True(t, holds && ok)
	holds, ok = env.Decide(env.Eq(s, Const(9)), "line 5")
	assert.True(t, !holds && ok)
	require.Len(t, env.Records(), 2, "the second follows from the first")
	assert.Equal(t, "s - 6 >= 0", env.CondText(env.Records()[0].Cond))
	assert.Equal(t, "line 3", env.Records()[0].Why)
	assert.Equal(t, "s - 9 != 0", env.CondText(env.Records()[1].Cond))
	_, ok = env.Decide(env.Gt(u, Const(5)), nil)
	assert.False(t, ok, "no hint")
	env.Assume(env.Gt(u, Const(5)))
	holds, ok = env.Decide(env.Gt(u, Const(4)), nil)
	assert.True(t, holds && ok)
	require.Len(t, env.Records(), 2)
}

// BenchmarkDecoder asks the questions of the views, broadcasts and matrix products in a decoder with 24 layers.
func BenchmarkDecoder(b *testing.B) {
	for b.Loop() {
		env := NewEnv()
		batch := env.NewSymbol(Info{Name: "s0", Hint: 3, Hinted: true, Lo: 0, Hi: math.MaxInt64})
		length := env.NewSymbol(Info{Name: "s1", Hint: 17, Hinted: true, Lo: 0, Hi: math.MaxInt64})
		for range 24 {
			tokens := env.Mul(batch, length)
			elements := env.Mul(tokens, Const(512))
			env.Decide(env.Eq(batch, Const(1)), nil)
			env.Decide(env.Eq(length, Const(1)), nil)
			env.Decide(env.Ne(tokens, Const(0)), nil)
			head := env.FloorDiv(elements, env.Mul(env.Mul(batch, length), Const(8)))
			env.Decide(env.Eq(head, Const(64)), nil)
			env.Decide(env.Eq(env.Mul(env.Mul(batch, Const(8)), env.Mul(length, head)), elements), nil)
			env.Decide(env.Ge(length, Const(2)), nil)
		}
	}
}

func TestDecideUsesThatSizesOfThisCallArePositive(t *testing.T) {
	env := NewEnv()
	rows := env.NewSymbol(Info{Name: "s0", Hint: 4, Hinted: true, Hi: math.MaxInt64})
	none := env.NewSymbol(Info{Name: "s1", Hint: 0, Hinted: true, Hi: math.MaxInt64})
	found := env.NewSymbol(Info{Name: "u2", Hi: math.MaxInt64})

	_, ok := env.Decide(env.Eq(found, Size{}), nil)
	assert.False(t, ok)
	_, ok = env.Decide(env.Eq(env.Add(found, none), Size{}), nil)
	assert.False(t, ok, "s1 is 0 in this call")
	_, ok = env.Decide(env.Lt(found, rows), nil)
	assert.False(t, ok)
	assert.Empty(t, env.Records())

	holds, ok := env.Decide(env.Eq(env.Add(found, rows), Size{}), "why")
	assert.True(t, ok)
	assert.False(t, holds)
	require.Len(t, env.Records(), 1)
	assert.Equal(t, "s0 - 1 >= 0", env.CondText(env.Records()[0].Cond))
	assert.Equal(t, "why", env.Records()[0].Why)
	holds, ok = env.Decide(env.Eq(env.Add(found, rows), Size{}), nil)
	assert.True(t, ok && !holds)
	assert.Len(t, env.Records(), 1)
}
