package translate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// body is the captured code of a function given to an operation. The operations of the function have been removed from
// the frame's graph.
type body struct {
	events   []*event
	operands []operands      // operands of the events' nodes; a removed node loses its operands
	places   []*fxgraph.Node // placeholders of the function's arguments
	outside  int             // number of frames that a traceback shows around the frame of the function
	replayed bool
}

type operands struct {
	args   []fxgraph.Arg
	kwargs []fxgraph.Kwarg
}

// Body implements variables.Output. It captures a function that is passed to an operation such as torch.cond. run calls
// the function once, on samples of the tensors with which the operation will call it. The captured operations become a
// separate graph, and outer tensors that the function reads become operands of the operation. The function must have no
// effect, and must not change outer values or tensors that it has not made.
func (o *OutputGraph) Body(tx variables.Translator, accepts variables.BodyRules, samples,
	run func() ([]variables.VariableTracker, error)) (*variables.Body, error) {
	if accepts.Foreign && o.bodies == 0 {
		o.foreign.outside = tx.(*InstructionTranslator)
		defer func() { o.foreign.outside = nil }()
	}
	w, from, ops, protected := o.world, len(o.events), o.numOps, o.hasProtected
	nodes, forgetSwitch, err := len(o.graph.Nodes()), func() {}, error(nil)
	if accepts.Grad {
		if forgetSwitch, err = o.switchGradOn(tx); err != nil {
			return nil, err
		}
		defer func() { py.Answered(o.scope.Call(o.world.SetGradEnabled, py.Bool(false))) }()
	}
	effects, calls, mode := w.Effects, w.Calls, o.state.now
	o.foreign.sampling = accepts.Foreign
	given, err := samples()
	o.foreign.sampling = false
	if err != nil {
		return nil, err
	}
	inside := len(o.events)
	results, written, err := o.inBody(accepts, run)
	if err != nil {
		return nil, err
	}
	end := len(o.events)
	o.holdAgain(from)
	if slices.ContainsFunc(o.events[from:inside], func(e *event) bool { return e.node == nil && e.drops == nil }) {
		return nil, exc.Break(exc.CallUnsupported, "a function given to an operation, with arguments made for it")
	}
	b := newBody(tx, o.events[inside:end], given)
	left := ""
	switch {
	case w.Effects != effects || w.Calls != calls:
		left = "has an effect"
	case !o.inModes(mode):
		left = "switches a mode"
	case o.heldOutside(tx, written):
		left = "changes a value from outside"
	}
	does, drew, foreign := o.contents(b)
	left = cmp.Or(does, left)
	if left != "" {
		return nil, exc.Break(exc.CallUnsupported, "a function that %s, given to an operation", left)
	}
	if accepts.Fresh {
		if err := b.shared(o, results); err != nil {
			return nil, err
		}
	}
	out, err := b.result(o, results, drew)
	if err != nil {
		return nil, err
	}
	if out.Foreign = foreign; foreign {
		out.Ends = o.foreignEnds(results)
	}
	out.Sizes = o.sizesOfResults(results)
	for i := len(o.events) - 1; i >= from; i-- {
		if n := o.events[i].node; n != nil {
			if err := o.graph.Erase(n); err != nil {
				return nil, err
			}
		}
	}
	o.forget(nodes)
	forgetSwitch()
	maps.DeleteFunc(o.symbols.nodeOf, func(_ sym.Size, n *fxgraph.Node) bool { return o.isErased(n) })
	o.inside = append(o.inside, b)
	o.events, o.numOps, o.hasProtected = o.events[:from], ops, protected
	o.counted = min(o.counted, from)
	return out, nil
}

// newBody returns the body that has run between these events, on samples.
func newBody(tx variables.Translator, events []*event, samples []variables.VariableTracker) *body {
	b := &body{outside: tx.(*InstructionTranslator).chainHere().depth}
	for _, e := range events {
		if e.drops == nil {
			b.events = append(b.events, e)
		}
	}
	for _, v := range samples {
		b.places = append(b.places, v.(*variables.TensorVariable).Node)
	}
	return b
}

// switchGradOn switches grad mode on while a function is captured, for an operation that does the same at run time. The
// node of the switch is removed with the function's. The function that it returns forgets the switch. The caller
// switches grad mode off again.
func (o *OutputGraph) switchGradOn(tx variables.Translator) (forget func(), err error) {
	if err := o.noteState(); err != nil {
		return nil, err
	}
	before := o.state
	if _, err := o.SwitchState(tx, o.world.SetGradEnabled, "torch._C._set_grad_enabled",
		[]variables.VariableTracker{variables.BoolConst(true)}); err != nil {
		return nil, err
	}
	return func() {
		o.state, o.meta = before, nil // the session of fake tensors has run the switch
	}, nil
}

// contents looks at the operations of a function. left says, in words, what the function must not do; drew and foreign
// report whether it draws random numbers and runs foreign operations.
func (o *OutputGraph) contents(b *body) (left string, drew, foreign bool) {
	for _, e := range b.events {
		if e.node == nil {
			left = "makes an object"
			continue
		}
		if e.node.RunsOnce() && !e.node.Inplace {
			foreign = true
			continue
		}
		switch t := o.traceOf(e.node); {
		case e.node.State && o.opts.Exporting && gradModes[e.node.Target.Text]:
			// torch.export turns the two switches of a block into an operation that has the block as a graph
		case e.node.State:
			left = "switches a mode"
		case t >= copied:
			left = "changes a tensor from outside"
		case t == draws:
			drew = true
		}
	}
	return left, drew, foreign
}

// inModes reports whether a function has left torch's modes as they were. before is the snapshot before it, Null if
// the function's first switch is the frame's first. Only an export accepts switches in a function.
func (o *OutputGraph) inModes(before py.Object) bool {
	if before.IsNull() {
		before = o.state.entry
	}
	if o.state.now == before {
		return true
	}
	same, ok := py.Answered(o.scope.Compare(opcode.CMP_EQ, o.state.now, before))
	return o.opts.Exporting && ok && same == py.True()
}

// sizesOfResults returns the sizes of the results of a body, nil for those that the rules do not yield.
func (o *OutputGraph) sizesOfResults(results []variables.VariableTracker) []variables.ResultSizes {
	out := make([]variables.ResultSizes, len(results))
	for i, r := range results {
		if sizes := o.ownSizes(r); sizes != nil {
			out[i] = sizes
		}
	}
	return out
}

// inBody runs a function that is passed to an operation. Sizes are constants in it, unless the operation accepts them
// or in an export: a call with other sizes could not translate again. written has the values that the function has
// changed.
func (o *OutputGraph) inBody(accepts variables.BodyRules, run func() ([]variables.VariableTracker, error)) (results,
	written []variables.VariableTracker, err error) {
	o.bodies++
	o.numBodies++
	if !o.opts.Exporting && !accepts.Sizes {
		o.world.FixesSizes++
		defer func() { o.world.FixesSizes-- }()
	}
	o.world.Watch()
	results, err = run()
	written = o.world.Watched()
	o.bodies--
	return results, written, err
}

// forget makes the metadata sessions process the n-th node and all later nodes again, since these are renumbered.
func (o *OutputGraph) forget(n int) {
	if o.meta != nil && len(o.meta.done) > n {
		if _, ok := py.Answered(o.scope.CallMethod(o.meta.object, "forget", o.scope.Int(int64(n)))); !ok {
			o.meta = nil
		} else {
			o.meta.forget(n)
		}
	}
	if o.sizes != nil {
		o.sizes.done = min(o.sizes.done, n)
	}
}

// heldOutside reports whether a frame outside the function holds one of the values to which the function has written.
func (o *OutputGraph) heldOutside(tx variables.Translator, written []variables.VariableTracker) bool {
	if len(written) == 0 {
		return false
	}
	seen := map[variables.VariableTracker]bool{}
	var reach func(v variables.VariableTracker)
	reach = func(v variables.VariableTracker) {
		if l, ok := v.(*variables.LazyVariable); ok {
			v = l.Real()
		}
		if v == nil || seen[v] {
			return
		}
		seen[v] = true
		if c, ok := v.(variables.Container); ok {
			for _, child := range c.Children() {
				reach(child)
			}
		}
	}
	for t := tx.(*InstructionTranslator); t != nil; t = t.parent {
		for _, v := range slices.Concat(t.locals, t.stack) {
			if v != nil {
				reach(v)
			}
		}
	}
	return slices.ContainsFunc(written, func(v variables.VariableTracker) bool {
		_, generator := v.(*GeneratorVariable)
		return seen[v] || variables.Materialized(v) || generator && seen[v]
	})
}

// result builds the graph of the captured operations.
func (b *body) result(o *OutputGraph, results []variables.VariableTracker, drew bool) (*variables.Body, error) {
	g := fxgraph.NewGraph()
	at := map[*fxgraph.Node]*fxgraph.Node{}
	for _, n := range b.places {
		at[n] = g.Placeholder(n.Name)
	}
	out := &variables.Body{Draws: drew}
	inside := map[*fxgraph.Node]bool{}
	for _, e := range b.events {
		inside[e.node] = true
	}
	free := func(n *fxgraph.Node) {
		if at[n] == nil && !inside[n] {
			at[n] = g.Placeholder(n.Name)
			out.Free = append(out.Free, o.outerValue(n))
		}
	}
	for _, e := range b.events {
		e.node.EachInput(free)
	}
	for _, e := range b.events {
		b.operands = append(b.operands, operands{e.node.Args, e.node.Kwargs})
	}
	var ends []fxgraph.Arg
	for _, r := range results {
		n := r.(*variables.TensorVariable).Node
		free(n)
		ends = append(ends, n)
	}
	for i, e := range b.events {
		n := e.node
		args, kwargs := b.operands[i].mapped(at)
		switch n.Op {
		case fxgraph.CallFunction:
			at[n] = g.CallFunction(n.Target, args, kwargs)
		case fxgraph.CallMethod:
			at[n] = g.CallMethod(n.Target.Text, args, kwargs)
		default:
			return nil, exc.Break(exc.CallUnsupported, "%s in a function given to an operation", n.Op)
		}
		// Names must be unique among the graphs of all functions, for tracebackTable.
		at[n].Stack, at[n].Name = n.Stack, n.Name
	}
	for i, e := range ends {
		ends[i] = at[e.(*fxgraph.Node)]
	}
	g.Output(fxgraph.Tuple{Items: ends})
	for _, n := range b.places {
		out.Uses = append(out.Uses, at[n].NumUsers() > 0)
	}
	ref := o.refClass()
	var rows []py.Object
	for _, n := range g.Nodes() {
		row, err := NodeRow(o.scope, n, o.pool, ref)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	out.Rows = o.scope.Tuple(rows...)
	out.Elementwise = b.elementwise(o)
	out.Replay = func(places []variables.VariableTracker) ([]variables.VariableTracker, error) {
		return b.replay(o, places, results)
	}
	return out, nil
}

// outerValue returns the value that a node outside a function represents.
func (o *OutputGraph) outerValue(n *fxgraph.Node) variables.VariableTracker {
	if v := o.inputOf[n]; v != nil {
		return v
	}
	if v := o.sizeOfNode(n); v != nil {
		return v
	}
	return variables.NewTensor(n)
}

// viewOrCopy has the operations that return a view if the layout allows it, and a copy otherwise: it depends on sizes.
// _backends/unbacked.py has the same list for GraphModules.
var viewOrCopy = map[string]bool{"contiguous": true, "cpu": true, "cuda": true, "flatten": true, "ravel": true,
	"reshape": true, "reshape_as": true, "sum_to_size": true, "to": true, "torch.flatten": true, "torch.ravel": true,
	"torch.reshape": true}

// shared returns a graph break if results share memory with one another or with an outer tensor.
func (b *body) shared(o *OutputGraph, results []variables.VariableTracker) error {
	if err := o.runForMemory(); err != nil {
		return err
	}
	s := o.scope
	inside := map[*fxgraph.Node]bool{}
	for _, e := range b.events {
		inside[e.node] = true
	}
	var outside, ends []py.Object
	for _, n := range o.graph.Nodes() {
		if !inside[n] {
			outside = append(outside, s.Int(int64(n.Index)))
		}
	}
	for _, r := range results {
		ends = append(ends, s.Int(int64(r.(*variables.TensorVariable).Node.Index)))
	}
	own, ok := py.Answered(s.CallMethod(o.meta.object, "own_memory", s.Tuple(ends...), s.Tuple(outside...)))
	if !ok || own != py.True() {
		return exc.Break(exc.CallUnsupported, "a function whose results share memory, given to an operation")
	}
	return nil
}

// runForMemory runs all nodes on fake tensors, to see which results share memory. Where this depends on sizes, these
// become constants, except for an export: torch.export checks the memory for the sizes that it takes to be possible.
func (o *OutputGraph) runForMemory() error {
	maybeView := func(n *fxgraph.Node) bool { return viewOrCopy[n.Target.Text] }
	if !o.opts.Exporting && slices.ContainsFunc(o.graph.Nodes(), maybeView) {
		o.needOfAll(fieldAll)
		return o.runFakes(o.graph.Nodes())
	}
	return o.runWithHints(o.graph.Nodes())
}

// OwnMemory implements variables.Output.
func (o *OutputGraph) OwnMemory(vs []variables.VariableTracker) (bool, error) {
	if err := o.runForMemory(); err != nil {
		return false, err
	}
	s := o.scope
	seen := map[*fxgraph.Node]bool{}
	var ends []py.Object
	for _, v := range vs {
		if n := v.(*variables.TensorVariable).Node; !seen[n] {
			seen[n] = true
			ends = append(ends, s.Int(int64(n.Index)))
		}
	}
	own, err := s.CallMethod(o.meta.object, "own_memory", s.Tuple(ends...), s.Tuple())
	return own == py.True(), err
}

func (o operands) mapped(at map[*fxgraph.Node]*fxgraph.Node) ([]fxgraph.Arg, []fxgraph.Kwarg) {
	to := func(n *fxgraph.Node) *fxgraph.Node { return at[n] }
	args := make([]fxgraph.Arg, len(o.args))
	for i, a := range o.args {
		args[i] = fxgraph.MapNodes(a, to)
	}
	kwargs := make([]fxgraph.Kwarg, len(o.kwargs))
	for i, k := range o.kwargs {
		kwargs[i] = fxgraph.Kwarg{Name: k.Name, Value: fxgraph.MapNodes(k.Value, to)}
	}
	return args, kwargs
}

// elementwise reports whether a body yields the same result for a whole tensor as for each slice of the tensor along
// the first dimension. This requires that no operation mixes elements. It also requires that no operand comes from
// outside, since one of its dimensions could be broadcast against the first dimension.
func (b *body) elementwise(o *OutputGraph) bool {
	if !b.closed() {
		return false
	}
	ranks := -1
	for _, e := range b.events {
		if e.node.Inplace || !shapes.Elementwise(e.node.Op == fxgraph.CallMethod, e.node.Target.Text) {
			return false
		}
		same := true
		e.node.EachInput(func(in *fxgraph.Node) {
			t, ok := o.byRule(in).(*shapes.Tensor)
			if !ok {
				if m, err := o.Meta(o.current, variables.NewTensor(in)); err == nil {
					t, ok = &shapes.Tensor{Shape: m.Shape}, true
				}
			}
			if !ok || ranks >= 0 && len(t.Shape) != ranks || len(t.Shape) == 0 {
				same = false
				return
			}
			ranks = len(t.Shape)
		})
		if !same {
			return false
		}
	}
	return true
}

// closed reports whether every operand is a placeholder of an argument of the function, or the result of an operation
// of the body.
func (b *body) closed() bool {
	known := map[*fxgraph.Node]bool{}
	for _, n := range b.places {
		known[n] = true
	}
	own := true
	for _, e := range b.events {
		e.node.EachInput(func(in *fxgraph.Node) { own = own && known[in] })
		known[e.node] = true
	}
	return own
}

// replay captures the operations again, on other tensors.
func (b *body) replay(o *OutputGraph, places,
	results []variables.VariableTracker) ([]variables.VariableTracker, error) {
	at := map[*fxgraph.Node]*fxgraph.Node{}
	b.replayed = true
	for i, n := range b.places {
		at[n] = places[i].(*variables.TensorVariable).Node
	}
	for i, e := range b.events {
		if err := o.protect(o.current); err != nil {
			return nil, err
		}
		args, kwargs := b.operands[i].mapped(at)
		if e.node.Op == fxgraph.CallMethod {
			at[e.node] = o.graph.CallMethod(e.node.Target.Text, args, kwargs)
		} else {
			at[e.node] = o.graph.CallFunction(e.node.Target, args, kwargs)
		}
		n := o.added(at[e.node])
		o.events[len(o.events)-1].chain = e.chain
		n.Stack = e.node.Stack
	}
	out := make([]variables.VariableTracker, len(results))
	for i, r := range results {
		out[i] = variables.NewTensor(at[r.(*variables.TensorVariable).Node])
	}
	return out, nil
}
