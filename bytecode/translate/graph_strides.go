package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/variables"
)

// The strides of an input are expressions over its sizes where they can be, and constants otherwise. A guard compares
// each with the stride of the tensor that is passed. So x.stride(0) of a contiguous matrix is the number of its columns,
// in any call, and x.is_contiguous() does not depend on the sizes.

// Layout implements variables.Output.
func (o *OutputGraph) Layout(t *variables.TensorVariable) (sizes, strides []sym.Size, ok bool, err error) {
	if t.Example.IsNull() || t.Changed || o.world.Calls > 0 || o.bodies > 0 || !o.symbolic(t) {
		return nil, nil, false, nil
	}
	o.byRule(t.Node)
	if _, plain := o.inputSizes(t).(*shapes.Tensor); !plain {
		return nil, nil, false, nil
	}
	if sizes, strides, err = o.inputLayout(t); err != nil {
		return nil, nil, false, err
	}
	o.world.Asked.Sizes++
	o.tensorArgs[t].Fields |= fieldRank | fieldStride
	return sizes, strides, true, nil
}

// inputLayout returns the sizes and strides of an input. A stride that cannot be computed from the sizes is a constant.
// All strides become guards.
func (o *OutputGraph) inputLayout(in *variables.TensorVariable) (sizes, strides []sym.Size, err error) {
	m, err := o.readMeta(in.Example)
	if err != nil {
		return nil, nil, err
	}
	env, args := o.world.Env(), o.tensorArgs[in]
	known, err := o.shapeOf(in, m.Shape)
	if err != nil {
		return nil, nil, err
	}
	sizes = slices.Clone(known)
	for i, size := range sizes {
		sizes[i] = env.Simplify(size)
	}
	if args.Fields&fieldStride == 0 {
		args.StaticStrides = 0 // no guard compares strides yet
	}
	strides = stridesBySizes(env, sizes, m)
	for i, stride := range strides {
		strides[i] = env.Simplify(stride)
		if _, constant := strides[i].Const(); constant {
			args.StaticStrides |= 1 << i
			continue
		}
		src := guards.NewTensorPropertySource(in.Source(), guards.TensorStride, i)
		o.AddGuards(guards.ShapeEnv(&guards.SizeCond{Rel: guards.SizeEQ, Right: o.sizeProgram(strides[i]),
			Left: []guards.SizeInst{{Op: guards.SizeLoad, Src: src, Hint: int64(m.Stride[i])}}}).At(o.userLine()))
	}
	return sizes, strides, nil
}

// stridesBySizes returns the strides of a tensor. A stride that equals the size times the stride of another dimension
// is returned as that product. The next dimension is preferred.
func stridesBySizes(env *sym.Env, shape []sym.Size, m *variables.TensorMeta) []sym.Size {
	out, order := make([]sym.Size, len(shape)), make([]int, len(shape))
	for i := range order {
		order[i] = len(shape) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int { return m.Stride[a] - m.Stride[b] })
	for k, i := range order {
		out[i] = sym.Const(int64(m.Stride[i]))
		for _, j := range slices.Backward(order[:k]) {
			product := env.Mul(out[j], shape[j])
			if n, ok := env.Hint(product); ok && n == int64(m.Stride[i]) {
				out[i] = product
				break
			}
		}
	}
	return out
}
