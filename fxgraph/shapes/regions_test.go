package shapes

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// torchvision's operations have no examples, since the library need not be installed.
func TestRegions(t *testing.T) {
	x := Context{DefaultDtype: torchFloat32, CPU: "cpu", Env: sym.NewEnv(), Fresh: true}
	boxes, scores := &Tensor{Sizes(5, 4), torchFloat32, "cpu"}, &Tensor{Sizes(5), torchFloat32, "cpu"}
	v, ok := Function(x, "torch.ops.torchvision.nms", List{boxes, scores, Float(0.5)}, nil)
	assert.True(t, ok)
	kept := v.(*Tensor)
	assert.Equal(t, torchInt64, kept.Dtype)
	assert.Equal(t, sym.True, x.Env.Ask(x.Env.Le(kept.Shape[0], sym.Const(5))))
	_, hinted := x.Env.Hint(kept.Shape[0])
	assert.False(t, hinted)

	image, rois := &Tensor{Sizes(2, 3, 8, 8), torchFloat32, "cpu"}, &Tensor{Sizes(6, 5), torchFloat32, "cpu"}
	args := List{image, rois, Float(1), Constant(4), Constant(7), Constant(-1), Bool(false)}
	v, ok = Function(x, "torch.ops.torchvision.roi_align", args, nil)
	assert.True(t, ok)
	assert.Equal(t, "float32[6, 3, 4, 7]", text(v))
}
