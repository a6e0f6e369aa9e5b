package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
)

// before returns the nodes that precede a node; all of them if the node is not in the graph yet.
func (o *OutputGraph) before(n *fxgraph.Node) []*fxgraph.Node {
	nodes := o.graph.Nodes()
	for i, m := range nodes {
		if m == n {
			return nodes[:i]
		}
	}
	return nodes
}

// needed returns, in order, the nodes on which the metadata of a node's result depend now: the node, its operands and
// theirs, and operations that may have changed one of these tensors in place. Up to the last such operation, or switch
// of torch's modes, all nodes are needed, so that they run in order. All nodes are also needed if a loop is captured
// once: FakeTensor, which knows the number in torch.tensor(2), would run one turn of a loop that changes it. Such a
// graph has the number of the turn as a node, which cannot become a constant, so the loop is captured turn by turn.
func (o *OutputGraph) needed(n *fxgraph.Node) []*fxgraph.Node {
	nodes := o.graph.Nodes()
	if o.hasLoops() {
		return nodes
	}
	set := map[*fxgraph.Node]bool{}
	var add func(n *fxgraph.Node)
	add = func(n *fxgraph.Node) {
		if !set[n] {
			set[n] = true
			n.EachInput(add)
		}
	}
	add(n)
	for i := len(nodes) - 1; i >= 0; i-- {
		if m := nodes[i]; m.State || m.Inplace && (set[m] || o.mayChange(m, set)) {
			for _, earlier := range nodes[:i+1] {
				set[earlier] = true
			}
			break
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(m *fxgraph.Node) bool { return !set[m] })
}

// mayChange reports whether an operation in place may change a tensor that shares its memory with one of the set. It
// does not if all operations that may have made the changed memory are in this piece, and outside the set.
func (o *OutputGraph) mayChange(n *fxgraph.Node, set map[*fxgraph.Node]bool) bool {
	changed, ok := changedBy(n)
	if !ok || !o.ownStorage(changed, 0) {
		return true
	}
	makers := false
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		makers = makers || set[n]
		if !makers && !o.world.MakesNew(o.scope, n.Target.Text) {
			n.EachInput(visit)
		}
	}
	visit(changed)
	return makers
}
