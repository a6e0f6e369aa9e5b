package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
)

// changedMemory returns the numbers of the graph's inputs whose memory the graph may change. A compiler assumes that
// such an input overlaps another input exactly if it does so in the call that is translated; see
// godynamo._backends.memory.
func (o *OutputGraph) changedMemory() []int {
	visit := memoryVisit{o: o, seen: map[*fxgraph.Node]bool{}}
	for _, n := range o.graph.Nodes() {
		switch {
		case n.State:
		case changesStatistics(n):
			for _, t := range statistics(n) {
				visit.node(t)
			}
		case n.Inplace && !o.changesOwn(n):
			if t, ok := changedBy(n); ok && !strings.HasPrefix(n.Target.Text, "^") {
				visit.node(t)
			} else {
				visit.operands(n)
			}
		case n.Inplace:
		case observers[shortName(n)] || o.drawsInside(n) == lasts:
			visit.operands(n)
		}
	}
	return o.inputsWhere(func(n *fxgraph.Node) bool { return visit.seen[n] })
}

// inputsWhere returns the numbers of the graph's inputs for which `holds` is true.
func (o *OutputGraph) inputsWhere(holds func(n *fxgraph.Node) bool) (found []int) {
	number := 0
	for _, n := range o.graph.Nodes() {
		if n.Op == fxgraph.Placeholder {
			if holds(n) {
				found = append(found, number)
			}
			number++
		}
	}
	return found
}

// memoryVisit collects the nodes with which a tensor may share its memory.
type memoryVisit struct {
	o    *OutputGraph
	seen map[*fxgraph.Node]bool
}

func (v *memoryVisit) node(n *fxgraph.Node) {
	if v.seen[n] || v.o.ownStorage(n, 0) {
		return
	}
	v.seen[n] = true
	v.operands(n)
}

func (v *memoryVisit) operands(n *fxgraph.Node) {
	for _, a := range n.Args {
		fxgraph.EachNode(a, v.node)
	}
	for _, k := range n.Kwargs {
		fxgraph.EachNode(k.Value, v.node)
	}
}
