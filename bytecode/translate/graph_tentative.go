package translate

import (
	"cmp"
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Tentative implements variables.Output. It runs a translation to find its guards and effects, then removes the
// captured operations from the graph again. seen is true if the translation cannot be undone, because it has an
// effect, materializes a value or leaves a trace. seen is also true if it reads a tensor that is not yet an input of
// a whole graph. sizes is nil if the rules do not determine them, or if the result is not a new tensor.
func (o *OutputGraph) Tentative(run func() (variables.VariableTracker, error)) (sizes variables.ResultSizes,
	seen, drawn bool, err error) {
	from, ops, protected := len(o.events), o.numOps, o.hasProtected
	effects, calls, nodes, inputs := o.world.Effects, o.world.Calls, len(o.graph.Nodes()), len(o.inputs)
	modes := cmp.Or(o.state.now, o.state.entry)
	o.tentative++
	result, err := run()
	o.tentative--
	if err != nil {
		return nil, true, false, err
	}
	switched, err := o.switchedSince(modes)
	if err != nil {
		return nil, true, false, err
	}
	if t := o.sizesOfResult(result); t != nil {
		sizes = t
	}
	seen = switched || o.world.Effects != effects || o.world.Calls != calls
	if !o.backend.Inline() && len(o.inputs) > inputs {
		seen = true // a whole graph would lack the new input
	}
	for _, e := range o.events[from:] {
		if e.drops == nil {
			drawn = drawn || e.node != nil && o.traceOf(e.node) == draws
			seen = seen || e.node == nil || o.traceOf(e.node) > draws
		}
	}
	o.holdAgain(from)
	for i := len(o.events) - 1; i >= from; i-- {
		if n := o.events[i].node; n != nil {
			if err := o.graph.Erase(n); err != nil {
				return nil, true, false, err
			}
		}
	}
	if o.sizes != nil {
		o.sizes.done = min(o.sizes.done, nodes)
	}
	if o.meta != nil && len(o.meta.done) >= nodes {
		o.meta = nil // the session identifies nodes by their numbers, which are used again
	}
	o.events, o.numOps, o.hasProtected = o.events[:from], ops, protected
	o.counted = min(o.counted, from)
	return sizes, seen, drawn, nil
}

// switchedSince reports whether torch's modes have changed since a snapshot was taken. A null snapshot stands for the
// one of the frame's start.
func (o *OutputGraph) switchedSince(before py.Object) (bool, error) {
	if before.IsNull() {
		before = o.state.entry
	}
	if before == o.state.now {
		return false, nil
	}
	same, err := o.scope.Compare(opcode.CMP_EQ, before, o.state.now)
	return same != py.True(), err
}

// sizesOfResult returns, by the rules, the sizes of a tensor that operations have made. It returns nil if the rules
// yield none, or if a size depends on data: the operation that reads such a size is removed.
func (o *OutputGraph) sizesOfResult(v variables.VariableTracker) *shapes.Tensor {
	found := o.ownSizes(v)
	if found != nil {
		o.world.Asked.Sizes++
		o.needOfAll(fieldsOfSizes)
	}
	return found
}

// ownSizes is sizesOfResult for sizes that may not be used: it adds no guards.
func (o *OutputGraph) ownSizes(v variables.VariableTracker) *shapes.Tensor {
	t, ok := v.(*variables.TensorVariable)
	if !ok || t.Changed || o.bodies > 0 && !o.opts.Exporting || o.inputOf[t.Node] != nil {
		return nil
	}
	found, ok := o.byRule(t.Node).(*shapes.Tensor)
	if !ok || slices.ContainsFunc(found.Shape, func(s sym.Size) bool { _, ok := o.world.Env().Hint(s); return !ok }) {
		return nil
	}
	return found
}

// GiveSizes implements variables.Output.
func (o *OutputGraph) GiveSizes(n *fxgraph.Node, sizes variables.ResultSizes) {
	o.world.Asked.Sizes++
	o.needOfAll(fieldsOfSizes)
	o.sizes.given[n], _ = sizes.(*shapes.Tensor)
	o.sizes.done = min(o.sizes.done, n.Index) // the rules may have passed the node
}
