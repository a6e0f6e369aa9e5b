package translate

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/pyhook/py"
)

// The rules of fxgraph/shapes are about dense tensors. This file knows sparse gradients, and which values depend on the
// number of a sparse tensor's elements, which only a run knows.

// keepsSparse lists operations whose result is as sparse as their operand, and of the same sizes, dtype and device.
var keepsSparse = map[string]bool{"coalesce": true, "neg": true, "torch.neg": true, "operator.neg": true,
	"detach": true, "torch.detach": true, "clone": true, "torch.clone": true}

// sparseSizes returns the sizes and the layout of a sparse gradient that backward() has made, or of a result of
// keepsSparse that is computed from one.
func (o *OutputGraph) sparseSizes(n *fxgraph.Node) (*shapes.Tensor, py.Object, bool) {
	for keepsSparse[n.Target.Text] && len(n.Args) == 1 && len(n.Kwargs) == 0 {
		of, ok := n.Args[0].(*fxgraph.Node)
		if !ok {
			return nil, py.Object{}, false
		}
		n = of
	}
	d := o.declared[n]
	if !d.Sparse || d.Like == nil || o.sizes.off {
		return nil, py.Object{}, false
	}
	t, ok := o.sizes.values[d.Like].(*shapes.Tensor)
	if !ok {
		return nil, py.Object{}, false
	}
	torch, ok := py.Answered(o.scope.Import("torch"))
	if !ok {
		return nil, py.Object{}, false
	}
	layout, ok := py.Answered(o.scope.GetAttr(torch, "sparse_coo"))
	return t, layout, ok
}

// partsOfSparse lists the methods that return a sparse tensor's elements or their places.
var partsOfSparse = map[string]bool{"_values": true, "values": true, "_indices": true, "indices": true}

// OnlyAtRunTime implements variables.Output.
func (o *OutputGraph) OnlyAtRunTime(n *fxgraph.Node) bool {
	found, seen := false, map[*fxgraph.Node]bool{}
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		if found || seen[n] {
			return
		}
		seen[n] = true
		if _, declared := o.declared[n]; declared || n.Foreign {
			return
		}
		if found = n.Op == fxgraph.CallMethod && partsOfSparse[n.Target.Text]; !found {
			n.EachInput(visit)
		}
	}
	visit(n)
	return found
}
