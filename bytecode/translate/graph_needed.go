package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
)

// before returns the nodes that precede a node; all of them if the node is not in the graph yet.
func (o *OutputGraph) before(n *fxgraph.Node) []*fxgraph.Node {
	nodes := o.graph.Nodes()
	if i := slices.Index(nodes, n); i >= 0 {
		return nodes[:i]
	}
	return nodes
}

// needed returns, in order, the nodes that the metadata of a node's result depend on: the node, its operands, their
// operands, and so on, and the operations that may have changed one of these tensors in place. To keep the order, it
// returns all nodes up to the last such operation, or up to the last mode switch before the node. After a loop that is
// captured once, it returns all nodes. Otherwise FakeTensor, which knows the number in torch.tensor(2), would run one
// turn of a loop that changes it. With all nodes, the number of the turn would have to become a constant, which fails,
// and the loop is unrolled.
func (o *OutputGraph) needed(n *fxgraph.Node) []*fxgraph.Node {
	nodes := slices.Clone(o.graph.Nodes()) // the caller may change the slice
	if o.hasLoops() {
		return nodes
	}
	set := map[*fxgraph.Node]bool{}
	var add func(n *fxgraph.Node)
	add = func(n *fxgraph.Node) {
		if set[n] {
			return
		}
		set[n] = true
		if d, ok := o.declared[n]; !ok || d.Of != nil {
			n.EachInput(add)
		} else if d.Like != nil {
			add(d.Like)
		}
	}
	add(n)
	own := o.memoryOf(n)
	for i := len(nodes) - 1; i >= 0; i-- {
		m, mayChange := nodes[i], false
		if later := m.Index > n.Index; later && own != nil {
			mayChange = m.Inplace && o.mayShare(m, own)
		} else if mayChange = m.State && !later; m.Inplace && !mayChange {
			mayChange = set[m] || o.mayChange(m, set)
		}
		if mayChange {
			for _, earlier := range nodes[:i+1] {
				set[earlier] = true
			}
			break
		}
	}
	return slices.DeleteFunc(nodes, func(m *fxgraph.Node) bool { return !set[m] })
}

// memoryOf returns the operation that has allocated the memory of n's result, and the nodes that are views of it on the
// way to n. It returns nil unless the piece has allocated it.
func (o *OutputGraph) memoryOf(n *fxgraph.Node) map[*fxgraph.Node]bool {
	if !o.ownStorage(n, 0) {
		return nil
	}
	set := map[*fxgraph.Node]bool{}
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		if set[n] {
			return
		}
		if set[n] = true; !o.world.MakesNew(o.scope, n.Target.Text) {
			n.EachInput(visit)
		}
	}
	visit(n)
	return set
}

// mayShare reports whether one of an operation's operands may share memory with one of the set (memoryOf).
func (o *OutputGraph) mayShare(n *fxgraph.Node, set map[*fxgraph.Node]bool) bool {
	found, seen := false, map[*fxgraph.Node]bool{}
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		if found = found || set[n]; found || seen[n] {
			return
		}
		if seen[n] = true; n.Inplace || !o.world.MakesNew(o.scope, n.Target.Text) {
			n.EachInput(visit)
		}
	}
	n.EachInput(visit)
	return found
}

// mayChange reports whether an in-place operation may change a tensor that shares memory with one of the set. It cannot
// if this piece has allocated the changed memory, and the set has none of the operations that may have allocated it.
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
