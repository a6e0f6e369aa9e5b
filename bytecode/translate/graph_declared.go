package translate

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Declare implements variables.Output. The operation itself may be foreign, but its result is not: it is an exact
// tensor or parameter whose metadata are known.
func (o *OutputGraph) Declare(n *fxgraph.Node, d variables.Declared) {
	if o.declared == nil {
		o.declared = map[*fxgraph.Node]variables.Declared{}
	}
	o.declared[n], n.Foreign = d, false
}

func orNone(v py.Object) py.Object {
	if v.IsNull() {
		return py.None()
	}
	return v
}

// runDeclared passes a declared result to the session of fake tensors.
func (o *OutputGraph) runDeclared(n *fxgraph.Node, d variables.Declared) error {
	s, like := o.scope, int64(-1)
	if !d.Sample.IsNull() {
		if _, err := s.CallMethod(o.meta.object, "input", s.Int(int64(n.Index)), d.Sample); err != nil {
			return exc.Break(exc.TensorMetadata, "%v", err)
		}
		return nil
	}
	if d.Like != nil {
		like = int64(d.Like.Index)
	}
	if d.History != nil {
		if _, err := s.CallMethod(o.meta.object, "recorded", s.Int(int64(n.Index))); err != nil {
			return exc.Break(exc.TensorMetadata, "%v", err)
		}
		return nil
	}
	if _, err := s.CallMethod(o.meta.object, "declared", s.Int(int64(n.Index)), s.Int(like), orNone(d.Dtype),
		orNone(d.Looks), py.Bool(d.Gradient), py.Bool(d.Computed), py.Bool(d.Sparse)); err != nil {
		return exc.Break(exc.TensorMetadata, "%v", err)
	}
	return nil
}

// declaredSizes returns the shape, dtype and device of a declared result.
func (o *OutputGraph) declaredSizes(d variables.Declared) shapes.Value {
	s := o.sizes
	if d.Like != nil {
		t, ok := s.values[d.Like].(*shapes.Tensor)
		if !ok || d.Sparse {
			return shapes.Unknown{}
		}
		if d.Batch != nil {
			batch, ok := s.values[d.Batch].(*shapes.Tensor)
			if !ok || len(batch.Shape) == 0 {
				return shapes.Unknown{}
			}
			shape := append([]sym.Size{batch.Shape[0]}, t.Shape...)
			return &shapes.Tensor{Shape: shape, Dtype: t.Dtype, Device: t.Device}
		}
		if d.Gradient || d.Dtype == py.None() {
			return t
		}
		return &shapes.Tensor{Shape: t.Shape, Dtype: s.dtypeName(o.scope, d.Dtype), Device: t.Device}
	}
	if !d.Sample.IsNull() {
		m, err := o.readMeta(d.Sample)
		if err != nil {
			return shapes.Unknown{}
		}
		return o.declaredTensor(m.Shape, m.Dtype, m.Device)
	}
	parts := o.scope.Items(d.Looks)
	var sizes []int
	for _, it := range o.scope.Items(parts[0]) {
		n, ok := py.AsInt(it)
		if !ok {
			return shapes.Unknown{}
		}
		sizes = append(sizes, int(n))
	}
	return o.declaredTensor(shapes.Sizes(sizes...), parts[2], parts[3])
}

func (o *OutputGraph) declaredTensor(shape []sym.Size, of, on py.Object) shapes.Value {
	device, ok := o.sizes.constant(o.scope, on).(shapes.Device)
	dtype := o.sizes.dtypeName(o.scope, of)
	if !ok || !dtype.Known() {
		return shapes.Unknown{}
	}
	return &shapes.Tensor{Shape: shape, Dtype: dtype, Device: device}
}
