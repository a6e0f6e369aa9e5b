package translate

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/variables"
)

// torch.nn.GRU and its kin read the number of sequences of a packed input from the data: batch_sizes[0]. If the frame
// has packed the sequences, this is a size of the tensor that it packed: torch has checked that there are as many
// lengths, and that none is 0.

const packing = "torch._pack_padded_sequence"

// ValueBySizes implements variables.Output.
func (o *OutputGraph) ValueBySizes(t *variables.TensorVariable) (sym.Size, bool) {
	n := t.Node
	if !isItem(n, "0") || o.world.Calls > 0 {
		return sym.Size{}, false
	}
	counts, _ := n.Args[0].(*fxgraph.Node)
	if !isItem(counts, "1") {
		return sym.Size{}, false
	}
	pack, _ := counts.Args[0].(*fxgraph.Node)
	if pack == nil || pack.Target.Text != packing || len(pack.Args) != 3 || o.mayHaveChanged(pack) {
		return sym.Size{}, false
	}
	in, _ := pack.Args[0].(*fxgraph.Node)
	sizes, ok := o.byRule(in).(*shapes.Tensor)
	batch := 1
	if isLiteralAt(pack, 2, "True") {
		batch = 0
	}
	if !ok || len(sizes.Shape) < 2 || batch == 1 && !isLiteralAt(pack, 2, "False") {
		return sym.Size{}, false
	}
	o.world.Asked.Sizes++
	o.needOfAll(fieldsOfSizes)
	return sizes.Shape[batch], true
}

// isItem reports whether a node is `operand[index]`.
func isItem(n *fxgraph.Node, index string) bool {
	return n != nil && n.Target.Text == "operator.getitem" && len(n.Args) == 2 && isLiteralAt(n, 1, index)
}

// mayHaveChanged reports whether a later operation may have changed the data of the tensors that `made` has returned.
func (o *OutputGraph) mayHaveChanged(made *fxgraph.Node) bool {
	since := false
	for _, e := range o.events {
		since = since || e.node == made
		switch {
		case !since:
		case e.shared:
			return true
		case e.node != nil && e.node.Inplace && !e.node.State:
			if comesFrom(e.node, made, map[*fxgraph.Node]bool{}) {
				return true
			}
		}
	}
	return false
}

// comesFrom reports whether n is computed from the node `from`.
func comesFrom(n, from *fxgraph.Node, seen map[*fxgraph.Node]bool) bool {
	if n == from {
		return true
	}
	if seen[n] || n.Index < from.Index {
		return false
	}
	seen[n] = true
	found := false
	n.EachInput(func(in *fxgraph.Node) { found = found || comesFrom(in, from, seen) })
	return found
}
