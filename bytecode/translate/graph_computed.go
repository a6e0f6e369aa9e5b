package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// A computed value (variables.ComputedVariable) is computed again in each call. Inline code computes it in place. A
// graph that the backend compiles (a whole graph) takes the value as an input. So the event that computes the value
// runs before the graph, and may read only the frame's inputs and other computed values. Random numbers are then drawn
// too early, which is visible if the graph raises. In this case the transformed function restores the generators, and
// the user's code runs again from its start. If the user's code cannot run again, the graph breaks where it draws a
// number after an operation.

// computedValues is an OutputGraph's state for computed values.
type computedValues struct {
	numbers    map[*fxgraph.Node]*variables.ComputedVariable // placeholders that are Python numbers
	nodeOf     map[*variables.ComputedVariable]*fxgraph.Node
	tensors    map[*fxgraph.Node]*variables.Slot // inputs of a whole graph
	examples   map[*fxgraph.Node]py.Object
	generators []variables.VariableTracker // the frame's random generators from which numbers were drawn
	late       map[*variables.Slot]bool    // values computed after a whole graph, from its results
	handler    func() error                // writes the handler that restores the generators
}

// WholeGraph implements variables.Output.
func (o *OutputGraph) WholeGraph() bool { return !o.backend.Inline() }

// TakesNumbers implements variables.Output. A graph that is compiled as a whole takes numbers if its backend runs
// graphs unchanged, or is a compiler that takes symbols. Other backends compile a number among the inputs as a
// constant.
func (o *OutputGraph) TakesNumbers() bool {
	return o.backend.Inline() || o.takesUnbacked() && !o.opts.FixFloats ||
		o.opts.AnySize && !o.forCompiler() && o.symbolizes()
}

// OptimizerAlone implements variables.Output.
func (o *OutputGraph) OptimizerAlone() bool { return variables.IsOptimizers(o.scope, o.frame.Globals) }

// TakesApart implements variables.Output.
func (o *OutputGraph) TakesApart() bool {
	o.apartMatters = true
	return o.opts.TakesApart
}

// Compute implements variables.Output.
func (o *OutputGraph) Compute(tx variables.Translator, operands []variables.VariableTracker, draws bool,
	emit func(e variables.Emitter) error) (*variables.Slot, error) {
	if o.opts.PythonOps {
		return nil, exc.Break(exc.CallUnsupported, "a value computed at run time, in a graph with Python operations")
	}
	if draws && o.strict && o.numOps > 0 {
		return nil, exc.Break(exc.CallUnsupported, "random numbers after an operation with side effects")
	}
	for _, v := range operands {
		if !readyAtStart(v) {
			return nil, exc.Break(exc.CallUnsupported, "a value computed at run time from %s", v.Kind())
		}
	}
	if draws {
		tx.World().Writes++
		tx.World().Effects++
		o.drawsFrom(operands[0])
	}
	late := slices.ContainsFunc(operands, o.AfterGraph)
	if late && draws {
		return nil, exc.Break(exc.CallUnsupported, "random numbers that depend on results of the graph")
	}
	e := o.here(&event{emit: emit, slot: o.newSlot(), early: !late, draws: draws})
	if exit := o.exitHere(); exit != nil && tx.Catches() {
		e.exit, e.state = exit, o.nextState
	}
	o.events = append(o.events, e)
	if late {
		if o.computed.late == nil {
			o.computed.late = map[*variables.Slot]bool{}
		}
		o.computed.late[e.slot] = true
	}
	return e.slot, nil
}

// LeavesIfRaised implements variables.Output. From here on the piece counts as one that cannot run again from its
// start, so that no effect waits for a later operation.
func (o *OutputGraph) LeavesIfRaised(variables.Translator) bool {
	if o.numOps == 0 || !o.backend.Inline() || o.bodies > 0 || o.tentative > 0 {
		return false
	}
	if o.sideExit("a value whose computation may raise") != nil {
		return false
	}
	o.foreign.ran = true
	return true
}

// OnlyIfLoaded implements variables.Output.
func (o *OutputGraph) OnlyIfLoaded(slot *variables.Slot) {
	if e := o.events[len(o.events)-1]; e.slot == slot {
		e.onlyIfLoaded = true
	}
}

// AfterGraph implements variables.Output.
func (o *OutputGraph) AfterGraph(v variables.VariableTracker) bool {
	if o.backend.Inline() {
		return false
	}
	if x, ok := v.(*variables.SymNodeVariable); ok && x.Settled(o.world) == nil {
		return x.Node != nil || o.computedInGraph(x.Size)
	}
	return isNumberInGraph(v) || o.computed.late[variables.SlotOf(v)]
}

// readyAtStart reports whether a value exists before any of the frame's code runs.
func readyAtStart(v variables.VariableTracker) bool {
	switch v.(type) {
	case *variables.ConstantVariable, *variables.ComputedVariable, *variables.SymNodeVariable:
		return true
	case *variables.OpaqueVariable:
		return false
	}
	return v.Source() != nil && variables.SlotOf(v) == nil
}

func (o *OutputGraph) drawsFrom(generator variables.VariableTracker) {
	if generator.Source() == nil {
		return // the call itself makes the generator, so its state need not be restored
	}
	for _, g := range o.computed.generators {
		if g == generator {
			return
		}
	}
	o.computed.generators = append(o.computed.generators, generator)
}

// ComputedInput implements variables.Output.
func (o *OutputGraph) ComputedInput(slot *variables.Slot, example py.Object) *variables.TensorVariable {
	n := o.graph.Placeholder("number_" + itoa(len(o.computed.tensors)))
	if o.computed.tensors == nil {
		o.computed.tensors, o.computed.examples = map[*fxgraph.Node]*variables.Slot{}, map[*fxgraph.Node]py.Object{}
	}
	o.computed.tensors[n], o.computed.examples[n] = slot, example
	return variables.NewTensor(n)
}

// numbers returns the operand that represents a list of computed numbers, one for each tensor of an operation on lists,
// or the data of a new tensor. It returns nil for other operands and operations.
func (o *OutputGraph) numbers(tx variables.Translator, operation string,
	v variables.VariableTracker) (fxgraph.Arg, error) {
	if variables.TakesData(operation) {
		return o.data(tx, operation, v, 0)
	}
	list, ok := v.(*variables.ListVariable)
	if !ok || !variables.OnLists(operation) {
		return nil, nil
	}
	items, err := list.Items(tx)
	if err != nil {
		return nil, err
	}
	out := make([]fxgraph.Arg, len(items))
	for i, it := range items {
		if out[i], err = o.number(tx, operation, it); out[i] == nil || err != nil {
			return nil, err
		}
	}
	return fxgraph.List{Items: out}, nil
}

// maxNesting is the largest number of lists around a number in the data of a new tensor.
const maxNesting = 8

// data returns the operand that represents a list or tuple, also a nested one, with computed numbers in it. It returns
// nil for other values.
func (o *OutputGraph) data(tx variables.Translator, operation string, v variables.VariableTracker,
	depth int) (fxgraph.Arg, error) {
	var items []variables.VariableTracker
	var err error
	switch x := v.(type) {
	case *variables.ListVariable:
		items, err = x.Items(tx)
	case *variables.TupleVariable:
		if x.Exact() {
			items, err = x.Items(tx)
		}
	}
	if err != nil || depth == maxNesting {
		return nil, err
	}
	out, found := make([]fxgraph.Arg, len(items)), false
	for i, it := range items {
		if out[i], err = o.number(tx, operation, it); out[i] == nil && err == nil {
			out[i], err = o.data(tx, operation, it, depth+1)
		}
		if err != nil {
			return nil, err
		}
		found = found || out[i] != nil
	}
	if !found {
		return nil, nil
	}
	for i, it := range items {
		if out[i] != nil {
			continue
		}
		if out[i], err = variables.AsProxy(tx, it); err != nil {
			return nil, err
		}
	}
	if _, tuple := v.(*variables.TupleVariable); tuple {
		return fxgraph.Tuple{Items: out}, nil
	}
	return fxgraph.List{Items: out}, nil
}

// number returns the graph operand that represents a computed number, or nil for any other value. It fails if the
// number's value would affect more than the data of the operation's result.
func (o *OutputGraph) number(tx variables.Translator, operation string,
	v variables.VariableTracker) (fxgraph.Arg, error) {
	if l, ok := v.(*variables.LazyVariable); ok {
		if !l.Realized() {
			return nil, nil
		}
		v = l.Real()
	}
	if x, ok := v.(*variables.SymNodeVariable); ok {
		return o.SizeOperand(tx, x)
	}
	x, ok := v.(*variables.ComputedVariable)
	if !ok {
		return nil, nil
	}
	if x.Node != nil && o.bodies == 0 && x.TakesNumber(tx, operation) {
		return x.Node, nil
	}
	if !o.TakesNumbers() || !x.TakesNumber(tx, operation) || o.bodies > 0 && variables.IsPassed(x) || o.AfterGraph(x) {
		return nil, exc.Break(exc.CallUnsupported, "%s of %s", operation, variables.Describe(tx, x))
	}
	if n := o.computed.nodeOf[x]; n != nil {
		return n, nil
	}
	n := o.graph.Placeholder("number_" + itoa(len(o.computed.numbers)))
	o.addNumber(n, x)
	return n, nil
}

// computedExample returns an example for the placeholder of a computed value.
func (o *OutputGraph) computedExample(n *fxgraph.Node) (example py.Object, ok bool, err error) {
	if x, ok := o.computed.numbers[n]; ok {
		if x.Mixed() {
			return example, true, exc.Break(exc.CallUnsupported, "metadata of a tensor and a power of floats")
		}
		example, err = o.scope.Call(x.Type, o.scope.Int(1))
		return example, true, err
	}
	example, ok = o.computed.examples[n]
	return example, ok, nil
}

// numberExample returns an example of a placeholder that is a number, for a backend. If the number was passed to the
// frame, the example is the number of this call. Metadata of graph values never depend on it; see computedExample.
func (o *OutputGraph) numberExample(x *variables.ComputedVariable) (py.Object, error) {
	if passed := x.Passed(); !passed.IsNull() {
		return passed, nil
	}
	return o.scope.Call(x.Type, o.scope.Int(1))
}

// loadComputed loads the value of a placeholder that represents a computed value. It returns false for other nodes.
func (c *Codegen) loadComputed(n *fxgraph.Node) bool {
	if x, ok := c.out.symbols.values[n]; ok {
		_ = c.Load(x) // this cannot fail, since a size is a constant, has a slot, or has been fetched by the guards
		return true
	}
	if x, ok := c.out.computed.numbers[n]; ok && x.Node == nil {
		_ = c.Load(x) // this cannot fail, since the value has a slot
		return true
	}
	if slot, ok := c.out.computed.tensors[n]; ok {
		c.emit(opcode.LOAD_FAST, spaceTemp|c.tempOfSlot(slot.Index))
		return true
	}
	return false
}

// computeEarly writes the code that computes the inputs of a whole graph, ahead of the graph's call. It returns the
// temps that hold the generators' saved states.
func (c *Codegen) computeEarly() ([]int, error) {
	var states []int
	for _, g := range c.out.computed.generators {
		if err := c.callComputed("saved", func() error { return c.Load(g) }, 1); err != nil {
			return nil, err
		}
		t := c.newTemp()
		c.emit(opcode.STORE_FAST, spaceTemp|t)
		states = append(states, t)
	}
	for _, e := range c.out.events {
		if e.early {
			if err := c.writeEvent(e); err != nil {
				return nil, err
			}
		}
	}
	return states, nil
}

func (c *Codegen) callComputed(name string, load func() error, nargs int) error {
	m, err := c.out.scope.Import("godynamo._called.computed")
	if err != nil {
		return err
	}
	fn, err := c.out.scope.GetAttr(m, name)
	if err != nil {
		return err
	}
	c.PushNull()
	c.LoadConst(fn)
	if err := load(); err != nil {
		return err
	}
	c.Call(nargs, nil)
	return nil
}

// putBack covers the instructions from start on with an exception handler that restores the generators and reraises.
// The handler itself is written later (writeFinish).
func (c *Codegen) putBack(start int, states []int) {
	if len(states) == 0 {
		return
	}
	region, end := &bytecode.ExceptionRegion{Lasti: true}, len(c.list)
	c.out.computed.handler = func() error {
		c.enclose(c.list[start:end], region)
		return c.arm(func(first *bytecode.Instruction) { region.Target = first }, func() error {
			for i, g := range c.out.computed.generators {
				err := c.callComputed("restore", func() error {
					err := c.Load(g)
					c.emit(opcode.LOAD_FAST, spaceTemp|states[i])
					return err
				}, 2)
				if err != nil {
					return err
				}
				c.PopTop()
			}
			c.emit(opcode.RERAISE, 1)
			return nil
		})
	}
}

// MadeHere implements variables.Output.
func (o *OutputGraph) MadeHere(src guards.Source) bool {
	for src.Base() != nil {
		src = src.Base()
	}
	local, ok := src.(*guards.LocalSource)
	if !ok || o.frame.Origin == nil {
		return false
	}
	params := o.frame.Origin.Params
	return local.Slot >= len(params) || o.root.code.Locals[params[local.Slot]].Kind&opcode.CO_FAST_FREE == 0
}

// paramsWhere returns the numbers of the resume function's parameters that hold values of a given kind.
func (tx *InstructionTranslator) paramsWhere(params []int, stack []item,
	is func(v variables.VariableTracker) bool) []int {
	var out []int
	n := 0
	add := func(v variables.VariableTracker) {
		if is(v) {
			out = append(out, n)
		}
		n++
	}
	for _, i := range params {
		if i < 0 {
			n++
			continue
		}
		add(tx.locals[i])
	}
	for _, it := range stack {
		if kind := it.kind(); kind != 'N' && kind != 'L' {
			add(it.v)
		}
	}
	return out
}
