package translate

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
)

// AOTAutograd drops operations whose results nothing uses, also those that draw random numbers. In eager mode they
// advance the generator. So the graph returns their results as well, without a history, and the transformed code drops
// them.

// severalResults lists operations that draw random numbers and return a tuple.
var severalResults = map[string]bool{"native_dropout": true, "lstm": true, "gru": true, "rnn_tanh": true,
	"rnn_relu": true}

// unusedDraws returns the operations of a whole graph that draw random numbers, and from which nothing is computed that
// the graph returns in results.
func (o *OutputGraph) unusedDraws(results map[*fxgraph.Node]bool) []*fxgraph.Node {
	var unused []*fxgraph.Node
	needed := map[*fxgraph.Node]bool{}
	for _, n := range slices.Backward(o.graph.Nodes()) {
		draw := drawsTensor(n) && o.drawsBy(n) == draws
		is := results[n] || needed[n]
		if changed, ok := changedBy(n); n.Inplace {
			is = is || !ok || results[changed] || needed[changed] || !o.changesOwn(n)
		}
		if draw && !is {
			if !o.TakesApart() {
				return nil
			}
			unused = append(unused, n)
		}
		if draw || is {
			n.EachInput(func(in *fxgraph.Node) { needed[in] = true })
		}
	}
	return unused
}

// drawsTensor reports whether the result of a node is a tensor if the node draws random numbers. The results of custom
// operators and of users' functions are not known.
func drawsTensor(n *fxgraph.Node) bool {
	custom := strings.HasPrefix(n.Target.Text, operators) && !strings.HasPrefix(n.Target.Text, operators+"aten.")
	return (n.Op == fxgraph.CallFunction || n.Op == fxgraph.CallMethod) &&
		!n.Opaque && !n.RunsOnce() && !custom && !severalResults[shortName(n)]
}
