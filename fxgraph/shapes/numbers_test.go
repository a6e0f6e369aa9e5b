package shapes

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

func numberOf(x Context, name string, args []Value, kwargs ...Kwarg) (Size, bool) {
	t, n, ok := Number(x, name, args, kwargs)
	if ok && (t.Dtype != torchInt64 || t.Device != "cpu" || len(t.Shape) > 0) {
		panic(t)
	}
	return n, ok
}

func TestNumbersInTensors(t *testing.T) {
	x := Context{DefaultDtype: torchFloat32, CPU: "cpu", Env: sym.NewEnv()}
	for _, mode := range []Value{Str("trunc"), Str("floor")} {
		for a := range 20 {
			for b := 1; b < 8; b++ {
				n, ok := numberOf(x, "torch.div", []Value{Constant(a), Constant(b)}, Kwarg{"rounding_mode", mode})
				require.True(t, ok)
				assert.Equal(t, sym.Const(int64(a/b)), n)
			}
		}
	}
	rounded := Kwarg{"rounding_mode", Str("trunc")}
	for name, c := range map[string]struct {
		operation string
		args      []Value
		kwargs    []Kwarg
	}{
		"negative":           {"torch.div", []Value{Constant(-3), Constant(2)}, []Kwarg{rounded}},
		"a negative divisor": {"torch.div", []Value{Constant(3), Constant(-2)}, []Kwarg{rounded}},
		"by zero":            {"torch.div", []Value{Constant(3), Constant(0)}, []Kwarg{rounded}},
		"not rounded":        {"torch.div", []Value{Constant(3), Constant(2)}, nil},
		"not rounded, None":  {"torch.div", []Value{Constant(3), Constant(2)}, []Kwarg{{"rounding_mode", None{}}}},
		"a float":            {"torch.div", []Value{Float(3), Constant(2)}, []Kwarg{rounded}},
		"a bool":             {"torch.tensor", []Value{Bool(true)}, nil},
		"a dtype":            {"torch.tensor", []Value{Constant(3)}, []Kwarg{{"dtype", torchFloat32}}},
		"other operand":      {"torch.div", []Value{Constant(3), Constant(2)}, []Kwarg{rounded, {"out", None{}}}},
		"a tensor":           {"operator.add", []Value{&Tensor{Dtype: torchInt64, Device: "cpu"}, Constant(2)}, nil},
		"overflow":           {"operator.mul", []Value{Constant(math.MaxInt64), Constant(2)}, nil},
	} {
		_, ok := numberOf(x, c.operation, c.args, c.kwargs...)
		assert.False(t, ok, name)
	}
	_, ok := numberOf(Context{Env: sym.NewEnv()}, "torch.tensor", []Value{Constant(3)})
	assert.False(t, ok, "tensors are made on another device")
}

func TestNumberOfASymbol(t *testing.T) {
	env := sym.NewEnv()
	s := env.NewSymbol(sym.Info{Name: "s", Hint: 7, Hinted: true, Hi: math.MaxInt64})
	x := Context{DefaultDtype: torchFloat32, CPU: "cpu", Env: env}
	n, ok := numberOf(x, "torch.div", []Value{Int{s}, Constant(2)}, Kwarg{"rounding_mode", Str("floor")})
	require.True(t, ok)
	n, ok = numberOf(x, "operator.sub", []Value{Int{n}, Constant(1)})
	require.True(t, ok)
	v, ok := env.Eval(n, func(sym.Symbol) (int64, bool) { return 101, true })
	require.True(t, ok)
	assert.Equal(t, int64(49), v)
}

func TestWhatMayChangeANumber(t *testing.T) {
	number, other := &Tensor{Dtype: torchInt64}, &Tensor{Dtype: torchFloat32}
	assert.True(t, MayChange([]Value{other, List{other, number}}, nil))
	assert.True(t, MayChange([]Value{other}, []Kwarg{{"out", number}}))
	assert.True(t, MayChange([]Value{Unknown{}}, nil))
	assert.False(t, MayChange([]Value{other, Constant(1), None{}}, []Kwarg{{"alpha", Float(2)}}))
}
