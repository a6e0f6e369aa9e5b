package translate

import (
	"fmt"
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// torchState is what a frame does to torch's thread-local modes (grad mode, autocast). A switch is made for real while translating,
// so that all that is asked of torch meanwhile is answered as the program would see it, and becomes a node of the graph. At
// the end of the translation the state is put back (python/godynamo/_called/torch_state.py).
//
// Where an operation raises, the state must be what the program's context managers leave behind: each event knows which snapshot
// to put back. An operation whose handlers are all exits of such managers needs no other protection (OutputGraph.protect).
type torchState struct {
	module  py.Object
	entry   py.Object                               // snapshot at the frame's start; null: nothing was switched
	now     py.Object                               // snapshot after the last switch
	after   map[*variables.ObjectVariable]py.Object // snapshot after leaving a manager that is entered
	regions []restoreRegion
	// unscoped counts switches that no manager will take back.
	unscoped int
	entering int  // BEFORE_WITH instructions that are entering one of torch's managers
	told     bool // what is entered already has been guarded
}

// restoreRegion is a run of written instructions with the snapshot to put back when one of them raises.
type restoreRegion struct {
	start, end int
	state      py.Object
	sealed     bool // it does not grow
}

// sealRegion ends the last region: the next instructions have other handlers around them, even where they restore the same state.
func (st *torchState) sealRegion() {
	if n := len(st.regions); n > 0 {
		st.regions[n-1].sealed = true
	}
}

func (o *OutputGraph) stateCall(name string, args ...py.Object) (py.Object, error) {
	st := &o.state
	if st.module.IsNull() {
		m, err := o.scope.Import("godynamo._called.torch_state")
		if err != nil {
			return py.Object{}, err
		}
		st.module, st.after = m, map[*variables.ObjectVariable]py.Object{}
	}
	return o.scope.CallMethod(st.module, name, args...)
}

// EntersState implements variables.Output. What captured code has entered on this thread before is part of the translation: a snapshot
// tells all of it.
func (o *OutputGraph) EntersState() error {
	if o.state.entering == 0 {
		return exc.Break(exc.CallUnsupported, "a mode that is entered outside of a with statement")
	}
	if o.state.told {
		return nil
	}
	if err := o.noteState(); err != nil {
		return err
	}
	keys := o.scope.Items(o.state.entry)[0]
	same, err := o.stateCall("entered_is", keys)
	if err != nil {
		return err
	}
	o.AddGuards(guards.PyCheck(guards.NewConstSource(o.Const(o.state.module), "___torch_state"), o.Const(same), "entered "+o.scope.Repr(keys)))
	o.state.told = true
	return nil
}

// noteState takes the snapshot of the frame's start, before the first switch.
func (o *OutputGraph) noteState() error {
	if !o.state.entry.IsNull() {
		return nil
	}
	before, err := o.stateCall("snapshot")
	if err != nil {
		return err
	}
	o.AddGuards(guards.GlobalState())
	o.state.entry, o.state.now = before, before
	if o.meta != nil {
		_, err = o.scope.CallMethod(o.meta.object, "set_state", before)
	}
	return err
}

// SwitchState implements variables.Output.
func (o *OutputGraph) SwitchState(tx variables.Translator, fn py.Object, name string, args []variables.VariableTracker) (variables.VariableTracker, error) {
	objs := make([]py.Object, len(args))
	for i, a := range args {
		v, err := variables.Realize(tx, a)
		if err != nil {
			return nil, err
		}
		c, ok := variables.AsConstant(tx, v)
		if !ok {
			return nil, exc.Break(exc.CallUnsupported, "%s of %s", name, variables.Describe(tx, v))
		}
		objs[i] = c
	}
	if o.world.Calls > 0 {
		return nil, exc.Break(exc.CallUnsupported, "%s after a Python call, which may have called it too", name)
	}
	if o.log.stateless {
		return nil, exc.Break(exc.CallUnsupported, "%s in a graph that leaves traces", name)
	}
	if err := o.noteState(); err != nil {
		return nil, err
	}
	if !o.switchedByManager() {
		o.state.unscoped++
	}
	r, err := o.scope.Call(fn, objs...)
	if err != nil {
		return nil, variables.Observe(err)
	}
	if o.state.now, err = o.stateCall("snapshot"); err != nil {
		return nil, err
	}
	a, k, err := o.proxies(tx, "", args, nil)
	if err != nil {
		return nil, err
	}
	c := o.Const(fn)
	node := o.graph.CallFunction(fxgraph.Target{Pool: c.Index, Text: name}, a, k)
	node.Inplace, node.State = true, true
	o.events = append(o.events, &event{node: node, chain: o.position()})
	return variables.NewConstant(r, nil), nil
}

// restoreState puts back what the translation switched.
func (o *OutputGraph) restoreState() {
	if o.state.entry.IsNull() {
		return
	}
	// It fails for want of memory alone, and each try frees some.
	var err error
	for range 3 {
		if _, err = o.stateCall("restore", o.state.entry); err == nil {
			return
		}
	}
	panic(fmt.Errorf("torch's modes could not be put back: %w", err))
}

// entering notes the state that leaving a manager will bring back, when it is one of torch that switch modes and nothing else.
func (o *OutputGraph) entering(m variables.VariableTracker) (done func() error) {
	none := func() error { return nil }
	ctx, ok := m.(*variables.ObjectVariable)
	if s := variables.StateOf(m); s != nil {
		ctx, ok = s, true
	}
	if !ok || !ctx.Obj.IsNull() || !o.world.IsStateContext(ctx.Class) {
		return none
	}
	before, err := o.stateCall("snapshot")
	if err != nil {
		return func() error { return err }
	}
	o.state.entering++
	return func() error {
		o.state.entering--
		if v, err := variables.GetAttr(o.current, ctx, "prev"); err == nil && o.world.IsGradContext(ctx.Class) {
			if on, ok := variables.AsConstant(o.current, v); ok {
				if before, err = o.stateCall("with_grad", before, on); err != nil {
					return err
				}
			}
		}
		if len(o.state.after) == 0 && o.state.unscoped > 0 {
			o.state.unscoped-- // set_grad_enabled switches when it is made
		}
		o.state.after[ctx] = before
		return nil
	}
}

// switchedByManager tells switches made by the enter or exit of one of torch's managers.
func (o *OutputGraph) switchedByManager() bool {
	for t := o.current; t != nil; t = t.parent {
		if n := t.d.code.Name; (n == "__enter__" || n == "__exit__") && t.locals[0] != nil {
			if ctx, ok := t.locals[0].(*variables.ObjectVariable); ok && o.world.IsStateContext(ctx.Class) {
				return true
			}
		}
	}
	return false
}

// exitOf is the torch manager whose exit a handler is, nil for every other handler.
func (tx *InstructionTranslator) exitOf(h *bytecode.ExceptionRegion) *variables.ObjectVariable {
	if h.Depth == 0 || h.Depth > len(tx.stack) || !tx.startsExit(h.Target) {
		return nil
	}
	var ctx *variables.ObjectVariable
	switch m := tx.stack[h.Depth-1].(type) {
	case *variables.MethodVariable:
		ctx, _ = m.Self.(*variables.ObjectVariable)
	case *variables.BoundBuiltin:
		ctx = variables.StateOf(m.Object())
	}
	if ctx == nil {
		return nil
	}
	if _, entered := tx.out.state.after[ctx]; !entered {
		return nil
	}
	return ctx
}

// startsExit tells the handler of a with block.
func (tx *InstructionTranslator) startsExit(target *bytecode.Instruction) bool {
	i := tx.d.index[target] + 1
	return target.Op == opcode.PUSH_EXC_INFO && i < len(tx.d.code.Instructions) && tx.d.code.Instructions[i].Op == opcode.WITH_EXCEPT_START
}

// outerRegion is the region around a with block whose handler starts at target: that of the code which cleans up after the handler.
func outerRegion(target *bytecode.Instruction) *bytecode.ExceptionRegion {
	cleanup := target.Handler
	if cleanup == nil {
		return nil
	}
	return cleanup.Target.Handler
}

// protection reports where an exception raised here would go. handled: to a user's handler, possibly in a generator that the exception
// destroys. state: otherwise, the snapshot to restore; null when no manager has switched anything.
func (tx *InstructionTranslator) protection() (handled bool, state py.Object) {
	for t := tx; t != nil; t = t.parent {
		if len(t.handled) > 0 {
			return true, tx.out.state.entry
		}
		if t.inst == nil {
			continue
		}
		for h := t.inst.Handler; h != nil; {
			ctx := t.exitOf(h)
			if ctx == nil {
				return true, tx.out.state.entry
			}
			state = tx.out.state.after[ctx]
			h = outerRegion(h.Target)
		}
	}
	if tx.out.stoppedInBlock() {
		return true, tx.out.state.entry
	}
	return false, state
}

// stoppedInBlock reports whether any generator has stopped inside a block.
func (o *OutputGraph) stoppedInBlock() bool {
	o.generators = slices.DeleteFunc(o.generators, func(g *GeneratorVariable) bool { return g.frame == nil }) // asked for every operation
	return slices.ContainsFunc(o.generators, func(g *GeneratorVariable) bool {
		return !g.running && g.stoppedInBlock()
	})
}

// restoring runs write and notes that what it writes puts state back when it raises.
func (c *Codegen) restoring(state py.Object, write func() error) error {
	start := len(c.list)
	if err := write(); err != nil || state.IsNull() {
		return err
	}
	st := &c.out.state
	if n := len(st.regions); n > 0 && !st.regions[n-1].sealed && st.regions[n-1].end == start && st.regions[n-1].state == state {
		st.regions[n-1].end = len(c.list)
		return nil
	}
	st.regions = append(st.regions, restoreRegion{start: start, end: len(c.list), state: state})
	return nil
}

// writeRestores writes the handlers that put states back and raise again, behind everything else.
func (c *Codegen) writeRestores() error {
	for _, r := range c.out.state.regions {
		region := &bytecode.ExceptionRegion{Lasti: true}
		err := c.arm(func(first *bytecode.Instruction) {
			region.Target = first
			for _, in := range c.list[r.start:r.end] {
				in.Handler = region
			}
		}, func() error {
			err := c.switchTo(r.state)
			c.emit(opcode.RERAISE, 1)
			return err
		})
		if err != nil {
			return err
		}
	}
	c.out.state.regions = nil
	return nil
}

// stateAfterGraph returns the modes that the transformed code must set after the graph; null when the graph sets them itself.
//
// AOTAutograd runs the graph's mode switches while it traces, more than once, and leaves them out of the compiled code. A graph that ends in
// other modes than it began in would therefore be traced in the wrong modes the second time, and an inference mode entered in one trace
// brings that trace's dispatcher state back when it is left. Such a graph starts and ends by setting its own modes, and the transformed
// code switches after it.
func (o *OutputGraph) stateAfterGraph() (py.Object, error) {
	st := &o.state
	if st.entry.IsNull() {
		return py.Object{}, nil
	}
	if same, err := o.scope.Compare(opcode.CMP_EQ, st.entry, st.now); err != nil || same == py.True() {
		return py.Object{}, err
	}
	if !o.opts.TakesApart {
		o.apartMatters = true
		return py.Object{}, nil
	}
	put, err := o.stateCall("restoring", st.entry)
	if err != nil {
		return py.Object{}, err
	}
	target := fxgraph.Target{Pool: o.Const(put).Index, Text: "godynamo.put_modes_back"}
	first, last := o.graph.CallFunction(target, nil, nil), o.graph.CallFunction(target, nil, nil)
	for _, n := range []*fxgraph.Node{first, last} {
		n.Inplace, n.State = true, true
	}
	o.graph.StartWith(first)
	return st.now, nil
}

// switchTo writes the call that sets torch's modes to a snapshot; nothing for null.
func (c *Codegen) switchTo(state py.Object) error {
	if state.IsNull() {
		return nil
	}
	restore, err := c.out.scope.GetAttr(c.out.state.module, "restore")
	if err != nil {
		return err
	}
	err = c.as(heldCalls, func() error {
		c.PushNull()
		c.LoadConst(restore)
		c.LoadConst(state)
		c.Call(1, nil)
		return nil
	})
	c.PopTop()
	return err
}

// switchedUnscoped tells frames with one whole graph that would lose a switch when the graph raises: the state at the start is put
// back then, which is right when the user's code runs again, and wrong otherwise where an operation leaves another one: behind a switch that
// is not a manager's, or behind the exit of a manager that was entered before the piece.
func (o *OutputGraph) switchedUnscoped() bool {
	if o.backend.Inline() || o.state.entry.IsNull() || o.numOps == 0 || o.rerunnable() {
		return false
	}
	if o.state.unscoped > 0 {
		return true
	}
	for _, e := range o.events {
		if e.node == nil || e.node.State {
			continue
		}
		left := e.state
		if left.IsNull() {
			left = e.modes
		}
		if !left.IsNull() && left != o.state.entry {
			same, ok := py.Answered(o.scope.Compare(opcode.CMP_EQ, left, o.state.entry))
			if !ok || same != py.True() {
				return true
			}
		}
	}
	return false
}
