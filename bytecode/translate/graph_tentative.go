package translate

// Tentative implements variables.Output. It runs a translation to find its guards and effects, then removes the
// captured operations from the graph again. seen is true if the translation cannot be undone, because it has an
// effect, materializes a value or leaves a trace. seen is also true if it reads a tensor that is not yet an input of
// a whole graph.
func (o *OutputGraph) Tentative(run func() error) (seen bool, err error) {
	from, ops, protected := len(o.events), o.numOps, o.hasProtected
	effects, calls, nodes, inputs := o.world.Effects, o.world.Calls, len(o.graph.Nodes()), len(o.inputs)
	o.tentative++
	err = run()
	o.tentative--
	if err != nil {
		return true, err
	}
	seen = o.world.Effects != effects || o.world.Calls != calls
	if !o.backend.Inline() && len(o.inputs) > inputs {
		seen = true // a whole graph would lack the new input
	}
	for _, e := range o.events[from:] {
		if e.drops == nil {
			seen = seen || e.node == nil || o.traceOf(e.node) != noTrace
		}
	}
	o.holdAgain(from)
	for i := len(o.events) - 1; i >= from; i-- {
		if n := o.events[i].node; n != nil {
			if err := o.graph.Erase(n); err != nil {
				return true, err
			}
		}
	}
	if o.meta != nil && o.meta.rows >= nodes {
		o.meta = nil // the session identifies nodes by their numbers, which are used again
	}
	o.events, o.numOps, o.hasProtected = o.events[:from], ops, protected
	o.counted = min(o.counted, from)
	return seen, nil
}
