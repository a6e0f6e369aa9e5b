package shapes

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// symbolic is an example whose tensors have a symbol for each size.
type symbolic struct {
	env   *sym.Env
	hints []int64
}

// lift returns a value with new symbols for the sizes of its tensors.
func (x *symbolic) lift(v Value) Value {
	switch v := v.(type) {
	case *Tensor:
		t := &Tensor{nil, v.Dtype, v.Device}
		for _, s := range v.Shape {
			n, _ := s.Const()
			x.hints = append(x.hints, n)
			t.Shape = append(t.Shape, x.env.NewSymbol(sym.Info{Name: fmt.Sprint("s", x.env.Len()), Hint: n,
				Hinted: true, Hi: math.MaxInt64}))
		}
		return t
	case List:
		out := List{}
		for _, item := range v {
			out = append(out, x.lift(item))
		}
		return out
	}
	return v
}

// at returns v with each symbol replaced by its value. ok is false if a size cannot be computed.
func (x *symbolic) at(v Value, values []int64) (out Value, ok bool) {
	read := func(s sym.Symbol) (int64, bool) { return values[s], true }
	switch v := v.(type) {
	case *Tensor:
		t := &Tensor{nil, v.Dtype, v.Device}
		for _, s := range v.Shape {
			n, ok := x.env.Eval(s, read)
			if !ok {
				return nil, false
			}
			t.Shape = append(t.Shape, sym.Const(n))
		}
		return t, true
	case List:
		out := List{}
		for _, item := range v {
			one, ok := x.at(item, values)
			if !ok {
				return nil, false
			}
			out = append(out, one)
		}
		return out, true
	}
	return v, true
}

// admits reports whether all conditions that the rule recorded hold for the values.
func (x *symbolic) admits(values []int64) bool {
	for _, r := range x.env.Records() {
		holds, ok := x.env.EvalCond(r.Cond, func(s sym.Symbol) (int64, bool) { return values[s], true })
		if !ok || !holds {
			return false
		}
	}
	return true
}

// vary returns random values of the symbols. Symbols with equal hints often get equal values, since the sizes of an
// operation's operands must fit.
func (x *symbolic) vary(random *rand.Rand) []int64 {
	moved := map[int64]int64{}
	out := make([]int64, len(x.hints))
	for i, hint := range x.hints {
		n, ok := moved[hint]
		if !ok || random.Intn(4) == 0 {
			switch random.Intn(5) {
			case 0:
				n = hint
			case 1:
				n = hint * int64(1+random.Intn(3))
			default:
				n = int64(random.Intn(8))
			}
			moved[hint] = n
		}
		out[i] = n
	}
	return out
}

func (e example) with(env *sym.Env, args []Value, kwargs []Kwarg) (Value, bool) {
	x := Context{DefaultDtype: torchFloat32, CPU: "cpu", Env: env, Fresh: true, Untraced: true}
	if e.method {
		return Method(x, e.name, args, kwargs)
	}
	return Function(x, e.name, args, kwargs)
}

// A result that a rule computes from symbols must be its result for all sizes that meet the recorded conditions.
func TestResultsOnSymbolsHoldAtOtherSizes(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	answered, withSymbols, compared, others := 0, 0, 0, 0
	for _, e := range examples(t) {
		if e.expected == "nothing" {
			continue
		}
		answered++
		x := &symbolic{env: sym.NewEnv()}
		args, _ := x.lift(List(e.args)).(List)
		var kwargs []Kwarg
		for _, kw := range e.kwargs {
			kwargs = append(kwargs, Kwarg{kw.Name, x.lift(kw.Value)})
		}
		v, ok := e.with(x.env, args, kwargs)
		if !assert.True(t, ok, "line %d: no answer on symbols: %s", e.line, e.text) {
			continue
		}
		withSymbols++
		if x.env.Len() > len(x.hints) {
			continue // sizes that depend on data
		}
		found, ok := x.at(v, x.hints)
		require.True(t, ok, e.text)
		require.Equal(t, e.expected, text(found), "line %d: %s", e.line, e.text)
		for range 60 {
			values := x.vary(random)
			if !x.admits(values) {
				continue
			}
			others++
			compared++
			constants, _ := x.at(args, values)
			var named []Kwarg
			for _, kw := range kwargs {
				one, _ := x.at(kw.Value, values)
				named = append(named, Kwarg{kw.Name, one})
			}
			expected, ok := e.with(sym.NewEnv(), constants.(List), named)
			require.True(t, ok, "line %d: the conditions admit %v, where the rule has no answer: %s",
				e.line, values, e.text)
			found, ok := x.at(v, values)
			require.True(t, ok, "line %d at %v: %s", e.line, values, e.text)
			require.Equal(t, text(expected), text(found), "line %d at %v: %s", e.line, values, e.text)
		}
		if len(x.hints) > 0 {
			assert.Positive(t, others, "line %d: no other sizes were tried: %s", e.line, e.text)
		}
		others = 0
	}
	t.Logf("%d of %d examples answered on symbols, %d results at other sizes", withSymbols, answered, compared)
}
