package translate

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
)

// A program may compute a size with torch: torch.div(n, 2, rounding_mode="trunc") is a tensor, which x.view takes for
// an int. The number in it follows from sizes (shapes.Number), until an operation may have changed the tensor.

// sizeInTensor returns the tensor that a node makes of a number computed from sizes, and records the number. Compilers
// do not get such a number as a size: while they trace, such a tensor has no value.
func (o *OutputGraph) sizeInTensor(n *fxgraph.Node) (*shapes.Tensor, bool) {
	name := n.Target.Text
	if n.Op != fxgraph.CallFunction || !shapes.MakesNumber(name) || o.forCompiler() || o.bodies > 0 {
		return nil, false
	}
	if strings.HasPrefix(name, "operator.") && !slices.ContainsFunc(n.Args, o.holdsSize) {
		return nil, false
	}
	args, kwargs := o.operandsOf(n, true)
	t, number, ok := shapes.Number(o.sizes.context, n.Target.Text, args, kwargs)
	if ok {
		if o.sizes.numbers == nil {
			o.sizes.numbers = map[*fxgraph.Node]shapes.Size{}
		}
		o.sizes.numbers[n] = number
	}
	return t, ok
}

// forgetNumbers makes unknown what is known of the data of the tensors made so far.
func (o *OutputGraph) forgetNumbers() {
	if nodes := o.graph.Nodes(); len(nodes) > 0 {
		o.byRule(nodes[len(nodes)-1])
		o.sizes.forgetData()
	}
}

// holdsSize reports whether an operand is a tensor of a number computed from sizes.
func (o *OutputGraph) holdsSize(a fxgraph.Arg) bool {
	n, is := a.(*fxgraph.Node)
	_, known := o.sizes.numbers[n]
	return is && known
}
