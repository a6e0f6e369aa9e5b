package shapes

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// These operations have no examples: the library transformers need not be installed, and the samples of
// python/godynamo/_translator/higher.py are our own.

func TestSamples(t *testing.T) {
	x := Context{DefaultDtype: torchFloat32, CPU: "cpu", Env: sym.NewEnv(), Fresh: true}
	for _, c := range []struct {
		name string
		args List
		want string
	}{
		{"torch.func.stand_in", nil, "float64[2, 3, 4]"},
		{"torch.func.differentiated", nil, "float64[2, 3, 4]"},
		{"torch.func.first_slice", nil, "float64[3, 4]"},
		{"torch.func.one_of_none", List{Constant(1)}, "float64[2, 4]"},
		{"torch.func.score", nil, "float64[()]"},
		{"torch.func.index", nil, "int32[()]"},
	} {
		v, ok := Function(x, c.name, append(List{&Tensor{Sizes(2, 3, 4), torchFloat64, "cpu"}}, c.args...), nil)
		assert.True(t, ok, c.name)
		assert.Equal(t, c.want, text(v), c.name)
	}
	_, ok := Function(x, "torch.func.first_slice", List{&Tensor{nil, torchFloat64, "cpu"}}, nil)
	assert.False(t, ok)
}

func TestGroupedProduct(t *testing.T) {
	x := Context{DefaultDtype: torchFloat32, CPU: "cpu", Env: sym.NewEnv(), Fresh: true}
	rows, weights := &Tensor{Sizes(6, 4), torchFloat64, "cpu"}, &Tensor{Sizes(3, 4, 8), torchFloat64, "cpu"}
	ends := []Kwarg{{"offs", &Tensor{Sizes(3), torchInt32, "cpu"}}}
	v, ok := Function(x, "torch.ops.transformers.grouped_mm_fallback", List{rows, weights}, ends)
	assert.True(t, ok)
	assert.Equal(t, "float64[6, 8]", text(v))
	_, ok = Function(x, "torch.ops.transformers.grouped_mm_fallback", List{weights, rows}, ends)
	assert.False(t, ok)
}
