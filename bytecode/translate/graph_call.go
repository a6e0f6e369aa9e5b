package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
)

// graphCall puts the call of the compiled graph in front of what has been written, but for effects that lead.
func (c *Codegen) graphCall() error {
	o := c.out
	if o.backend.Inline() || o.numOps == 0 {
		return nil
	}
	outputs := c.graphOutputs()
	after, err := o.stateAfterGraph()
	if err != nil {
		return err
	}
	o.closeGraph(outputs)
	held := o.runsOnce() || o.holdsSignals()
	fn, loads, err := c.compileGraph()
	if err != nil {
		return err
	}
	at := 0
	if o.lead > 0 {
		at = c.leadEnd
	}
	in := c.insertAt(at)
	c.pos = bytecode.NoPosition
	states, err := c.computeEarly()
	if err != nil {
		return err
	}
	start := len(c.list)
	c.markGraph()
	if o.hasProtected {
		if err := c.saveStateOf(o.events); err != nil {
			return err
		}
	}
	if held {
		c.calls = heldCalls
	}
	c.PushNull()
	c.LoadConst(fn)
	for _, load := range loads {
		if err := load(); err != nil {
			return err
		}
	}
	err = c.restoring(o.state.entry, func() error { // up to the next event: the modes may be the graph's last ones
		c.Call(len(loads), nil)
		c.calls = plainCalls
		if o.rerunnable() || o.hasProtected {
			c.lookForSignals() // there is no look after a call of a Python function
		}
		if err := c.switchTo(after); err != nil {
			return err
		}
		c.putBack(start, states)
		if err := c.storeOutputs(outputs); err != nil {
			return err
		}
		if o.rerunnable() || o.hasProtected {
			return c.handOver(nil)
		}
		return nil
	})
	if err != nil {
		return err
	}
	in.close()
	return nil
}

// graphOutputs are the nodes of the graph that the code behind it loads, in the graph's order.
func (c *Codegen) graphOutputs() []*fxgraph.Node {
	var outputs []*fxgraph.Node
	for _, n := range c.out.graph.Nodes() {
		if c.loaded[n] {
			outputs = append(outputs, n)
		}
	}
	return outputs
}

// closeGraph gives the graph its outputs and drops what was captured for questions alone.
func (o *OutputGraph) closeGraph(outputs []*fxgraph.Node) {
	args := make([]fxgraph.Arg, len(outputs))
	for i, n := range outputs {
		args[i] = n
	}
	o.graph.Output(fxgraph.Tuple{Items: args})
	if len(o.foreseenBy) > 0 {
		o.graph.EliminateDeadCode(func(n *fxgraph.Node) bool { return !o.foreseenBy[n] })
	}
}

// compileGraph hands the graph to the backend: what runs it, and what loads each of its inputs.
func (c *Codegen) compileGraph() (fn py.Object, loads []func() error, err error) {
	o := c.out
	loads, inputs, err := o.graphInputs(c)
	if err != nil {
		return fn, nil, err
	}
	o.opts.Clock.Begin(Compiling)
	fn, err = o.backend.Compile(o.scope, o.graph, o.pool, inputs, o.apartMatters && !o.opts.TakesApart)
	o.opts.Clock.End()
	if o.apartMatters && !o.opts.TakesApart {
		if apart, e := o.backend.TakesApart(o.scope); e != nil {
			return fn, nil, e
		} else if apart {
			return fn, nil, errTakenApart
		}
	}
	return fn, loads, err
}

// markGraph marks the code that follows as the graph's, at the place of its first operation.
func (c *Codegen) markGraph() {
	for _, e := range c.out.events {
		if e.node != nil {
			c.at(e.chain, false)
			c.marks[len(c.marks)-1].graph = true
			c.marks[len(c.marks)-1].protected = c.out.hasProtected
			break
		}
	}
}

// storeOutputs takes the graph's results from the stack.
func (c *Codegen) storeOutputs(outputs []*fxgraph.Node) error {
	if c.putsBack.end = len(c.list); len(outputs) == 0 {
		c.PopTop()
		return nil
	}
	c.emit(opcode.UNPACK_SEQUENCE, len(outputs))
	for _, n := range outputs {
		c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfNode(n))
	}
	return c.wrapOutputs(outputs)
}

// insertion is code that is written into the middle of what has been: what stands behind it is set aside and put back at its end.
type insertion struct {
	c       *Codegen
	at      int // where it begins
	body    []*bytecode.Instruction
	marks   []mark
	regions int // of torch's state, that were there before
}

// insertAt has what is emitted from here on stand at an index of the code so far, until close.
func (c *Codegen) insertAt(at int) *insertion {
	in := &insertion{c: c, at: at, body: c.list[at:], marks: c.marks}
	c.list, c.marks = slices.Clone(c.list[:at]), nil
	c.out.state.sealRegion() // what is written from here on goes between the regions so far
	in.regions = len(c.out.state.regions)
	for len(in.marks) > 0 && in.marks[0].start < at {
		c.marks, in.marks = append(c.marks, in.marks[0]), in.marks[1:]
	}
	if n := len(c.marks); n > 0 && (len(in.marks) == 0 || in.marks[0].start > at) {
		rest := c.marks[n-1]
		rest.start = at
		in.marks = append([]mark{rest}, in.marks...)
	}
	return in
}

// close puts what was set aside behind what has been inserted, with its marks, ends and regions moved.
func (in *insertion) close() {
	c, at := in.c, in.at
	n := len(c.list) - at
	if c.letGo >= 0 {
		c.letGo += n
	}
	before := 0
	for at > 0 && before < len(c.ends) && c.ends[before] <= at {
		before++
	}
	ends := append(slices.Clone(c.ends[:before]), at+n)
	for _, end := range c.ends[before:] {
		ends = append(ends, end+n)
	}
	c.ends = ends
	for _, m := range in.marks {
		m.start += n
		c.marks = append(c.marks, m)
	}
	for i := range c.out.state.regions[:in.regions] { // the insertion's own come after these
		if r := &c.out.state.regions[i]; r.start >= at {
			r.start, r.end = r.start+n, r.end+n
		}
	}
	c.list = append(c.list, in.body...)
}
