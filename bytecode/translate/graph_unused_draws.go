package translate

import (
	"slices"

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
		draw := (n.Op == fxgraph.CallFunction || n.Op == fxgraph.CallMethod) && !n.Opaque && o.drawsBy(n) == draws &&
			!severalResults[shortName(n)]
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
