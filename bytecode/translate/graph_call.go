package translate

import (
	"cmp"
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// graphCall inserts the call of the compiled graph before the code written so far. Effects that precede the graph's
// first operation stay ahead of the call.
func (c *Codegen) graphCall() error {
	o := c.out
	if o.backend.Inline() || o.numOps == 0 {
		return nil
	}
	outputs := c.graphOutputs()
	if loses, err := o.losesHistory(outputs); err != nil || loses {
		return cmp.Or(err, errHistory)
	}
	after, err := o.stateAfterGraph()
	if err != nil {
		return err
	}
	unused := o.unusedDraws(c.loaded)
	o.closeGraph(outputs, unused)
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
	// The region that restores torch's modes reaches to the next event, since the graph may end in other modes than it
	// began in.
	err = c.restoring(o.state.entry, func() error {
		c.Call(len(loads), nil)
		c.calls = plainCalls
		if o.rerunnable() || o.hasProtected {
			c.lookForSignals() // CPython does not check for signals after a call of a Python function
		}
		if err := c.switchTo(after); err != nil {
			return err
		}
		c.putBack(start, states)
		if err := c.storeOutputs(outputs, len(unused)); err != nil {
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

// graphOutputs returns the graph nodes that the code after the graph's call loads, in the graph's order.
func (c *Codegen) graphOutputs() []*fxgraph.Node {
	var outputs []*fxgraph.Node
	for _, n := range c.out.graph.Nodes() {
		if c.loaded[n] {
			outputs = append(outputs, n)
		}
	}
	return outputs
}

// closeGraph adds the graph's output node. It removes operations that were captured only to compute values that a guard
// computes as well (graph_foresee.go). unused has the operations whose results the graph returns without their history.
func (o *OutputGraph) closeGraph(outputs, unused []*fxgraph.Node) {
	args := make([]fxgraph.Arg, len(outputs), len(outputs)+len(unused))
	for i, n := range outputs {
		args[i] = n
	}
	for _, n := range unused {
		args = append(args, o.graph.CallMethod("detach", []fxgraph.Arg{n}, nil))
	}
	o.graph.Output(fxgraph.Tuple{Items: args})
	if len(o.foreseenBy) > 0 {
		o.graph.EliminateDeadCode(func(n *fxgraph.Node) bool { return !o.foreseenBy[n] })
	}
}

// compileGraph passes the graph to the backend. It returns the compiled callable and, for each input, a function that
// loads it.
func (c *Codegen) compileGraph() (fn py.Object, loads []func() error, err error) {
	o := c.out
	if err := o.symbolInputs(); err != nil {
		return fn, nil, err
	}
	loads, inputs, err := o.graphInputs(c)
	if err != nil {
		return fn, nil, err
	}
	sizes, err := o.symbolicExamples()
	if err != nil {
		return fn, nil, err
	}
	o.opts.Clock.Begin(Compiling)
	fn, err = o.backend.Compile(o.scope, o.graph, o.pool, Inputs{Examples: inputs, Sizes: sizes,
		Changed: o.changedMemory(), OfModules: o.moduleInputs(), Whole: o.apartMatters && !o.opts.TakesApart})
	o.opts.Clock.End()
	if e, refused := err.(*py.Error); refused && py.TypeName(e.Type) == "NotForFakes" {
		return fn, nil, o.breakAtNode(e)
	}
	if o.refusesNumbers(err) {
		o.opts.BreakAtNumbers = true
		return fn, nil, errNumbersRefused
	}
	if err == nil && !sizes.IsNull() {
		fn, err = o.afterSymbols(fn)
		return fn, loads, err
	}
	if o.apartMatters && !o.opts.TakesApart {
		if apart, e := o.backend.TakesApart(o.scope); e != nil {
			return fn, nil, e
		} else if apart {
			return fn, nil, errTakenApart
		}
	}
	if err == nil && o.opts.SymbolicSizes {
		err = o.afterCompile()
	}
	return fn, loads, err
}

// breakAtNode requests another attempt in which the graph breaks at the operation that a backend cannot trace: e names
// its node (godynamo._backends.compiling.NotForFakes). It returns e if the operation is in no frame.
func (o *OutputGraph) breakAtNode(e *py.Error) error {
	name, err := o.scope.GetAttr(e.Value, "node")
	if err != nil {
		return err
	}
	for _, ev := range o.events {
		if ev.node != nil && ev.node.Name == py.GoString(name) && ev.chain != nil {
			return o.breakAt(ev.chain.step, exc.Break(exc.TensorMetadata,
				"%s cannot run on FakeTensors (torch.library.register_fake)", ev.node.Target.Text))
		}
	}
	return e
}

// markGraph marks the instructions that follow as the call of the graph. They get the user's position at the graph's
// first operation.
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

// storeOutputs stores the graph's results, which are on the stack, and drops the last ones, as many as `unused`.
func (c *Codegen) storeOutputs(outputs []*fxgraph.Node, unused int) error {
	if c.putsBack.end = len(c.list); len(outputs) == 0 {
		c.PopTop()
		return nil
	}
	c.emit(opcode.UNPACK_SEQUENCE, len(outputs)+unused)
	for _, n := range outputs {
		c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfNode(n))
	}
	for range unused {
		c.PopTop()
	}
	return c.wrapOutputs(outputs)
}

// insertion is a place in the code where other code is inserted. body holds the instructions from that place on,
// until close appends them again.
type insertion struct {
	c       *Codegen
	at      int // index of the first inserted instruction
	body    []*bytecode.Instruction
	marks   []mark
	regions int // number of regions that restored torch's modes when the insertion began
	// unneeded is the number of ranges that might be dropped when the insertion began.
	unneeded int
}

// insertAt begins an insertion at an index of the code written so far. It ends with close.
func (c *Codegen) insertAt(at int) *insertion {
	in := &insertion{c: c, at: at, body: c.list[at:], marks: c.marks}
	c.list, c.marks = slices.Clone(c.list[:at]), nil
	c.out.state.sealRegion() // the inserted code gets regions of its own
	in.regions, in.unneeded = len(c.out.state.regions), len(c.unneeded)
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

// close appends the code that insertAt had set aside, and moves its marks, ends, regions and ranges.
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
	for i := range c.out.state.regions[:in.regions] { // the regions after these belong to the inserted code
		if r := &c.out.state.regions[i]; r.start >= at {
			r.start, r.end = r.start+n, r.end+n
		}
	}
	for i := range c.unneeded[:in.unneeded] {
		if w := &c.unneeded[i]; w.start >= at {
			w.start, w.end = w.start+n, w.end+n
		}
	}
	c.list = append(c.list, in.body...)
}
