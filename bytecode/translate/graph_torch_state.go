package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// torchState tracks a frame's changes to torch's thread-local modes (grad mode, autocast). A switch is executed
// during translation, so that torch answers every query as in the user's code. It also becomes a node of the graph.
// At the end of the translation the modes are restored (python/godynamo/_called/torch_state.py).
//
// If an operation raises, the modes must be as the user's context managers leave them. So each event has the snapshot
// to restore. If all handlers of an operation are exits of such managers, the operation needs no other protection
// (OutputGraph.protect).
type torchState struct {
	module  py.Object
	entry   py.Object                               // snapshot at the frame's start; null if nothing was switched
	now     py.Object                               // snapshot after the last switch
	after   map[*variables.ObjectVariable]py.Object // for each manager in use, the snapshot after its exit
	regions []restoreRegion
	// unscoped is the number of switches that no manager undoes.
	unscoped int
	entering int  // number of running BEFORE_WITH instructions for one of torch's managers
	told     bool // a guard checks the modes that were entered before the frame
	adopted  bool // an object of the program has taken over a mode, see Adopts
}

// restoreRegion is a range of written instructions. If one of them raises, the snapshot state is restored.
type restoreRegion struct {
	start, end int
	state      py.Object
	sealed     bool // no more instructions are added to the region
}

// sealRegion ends the last region. The instructions that follow get a region of their own even if that region restores
// the same state, because other handlers catch the exceptions of these instructions.
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

// EntersState implements variables.Output. A snapshot contains all modes that captured code has entered on this
// thread before. So the translation depends on these modes, and guards them.
func (o *OutputGraph) EntersState() error {
	if o.state.entering == 0 {
		return exc.Break(exc.CallUnsupported, "a mode entered outside a with statement")
	}
	if o.state.adopted { // its number would not be that of the translation
		return exc.Break(exc.CallUnsupported, "a mode entered after an object of another mode left the graph")
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
	o.AddGuards(guards.PyCheck(guards.NewConstSource(o.Const(o.state.module), "___torch_state"), o.Const(same),
		"entered "+o.scope.Repr(keys)))
	o.state.told = true
	return nil
}

// Adopts implements variables.Output. From here on only the object leaves its mode, and a snapshot would enter the mode
// a second time. So no snapshot is restored after an exception in one of the open blocks: their exits count as handlers
// of the user's code. A piece cannot run again once a mode has been adopted, so the graph breaks before the next
// operation that has a handler.
func (o *OutputGraph) Adopts() {
	o.state.adopted = true
	clear(o.state.after)
	o.left++
}

// noteState takes the snapshot at the frame's start. It is called before the first switch.
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
func (o *OutputGraph) SwitchState(tx variables.Translator, fn py.Object, name string,
	args []variables.VariableTracker) (variables.VariableTracker, error) {
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
		return nil, exc.Break(exc.CallUnsupported, "%s in a graph with side effects", name)
	}
	if setsDefault(name) && !o.backend.Inline() {
		return nil, exc.Break(exc.CallUnsupported, "%s in a whole graph that is given to a backend", name)
	}
	if err := o.noteState(); err != nil {
		return nil, err
	}
	byManager := o.switchedByManager()
	if !byManager {
		o.state.unscoped++
	}
	r, err := o.scope.Call(fn, objs...)
	if err != nil {
		return nil, variables.Observe(err)
	}
	if o.state.now, err = o.stateCall("snapshot"); err != nil {
		return nil, err
	}
	if !byManager {
		if err := o.staysAfterBlocks(name, objs); err != nil {
			return nil, err
		}
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

// restoreState undoes the mode switches that the translation has executed.
func (o *OutputGraph) restoreState() {
	if o.state.entry.IsNull() {
		return
	}
	// The call fails only if memory runs out, and each attempt frees some memory.
	var err error
	for range 3 {
		if _, err = o.stateCall("restore", o.state.entry); err == nil {
			return
		}
	}
	panic(fmt.Errorf("torch's modes could not be put back: %w", err))
}

// entering records the state that the exit of m will restore, if m is one of torch's managers that do nothing but
// switch modes. The caller must call done after the manager's `__enter__`.
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
		if o.state.adopted {
			return nil
		}
		if v, err := variables.GetAttr(o.current, ctx, "prev"); err == nil && o.world.IsGradContext(ctx.Class) {
			if on, ok := variables.AsConstant(o.current, v); ok {
				if before, err = o.stateCall("with_grad", before, on); err != nil {
					return err
				}
				// set_grad_enabled may have switched already, in the block around this one
				if err := o.staysAfterBlocks("torch._C._set_grad_enabled", []py.Object{on}); err != nil {
					return err
				}
			}
		}
		if len(o.state.after) == 0 && o.state.unscoped > 0 {
			o.state.unscoped-- // set_grad_enabled already switches when it is constructed
		}
		o.state.after[ctx] = before
		return nil
	}
}

// switchedByManager reports whether the `__enter__` or `__exit__` of one of torch's managers is running.
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

// exitOf returns the torch manager whose `__exit__` the handler of region h calls. It returns nil for any other
// handler.
func (tx *InstructionTranslator) exitOf(h *bytecode.ExceptionRegion) *variables.ObjectVariable {
	if h.Depth == 0 || h.Depth > len(tx.stack) || !tx.startsExit(h.Target) {
		return nil
	}
	exit := h.Depth - 1
	if tx.stack[exit] == nil && exit > 0 {
		exit-- // 3.14 has a NULL above `__exit__`
	}
	var ctx *variables.ObjectVariable
	switch m := tx.stack[exit].(type) {
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

// staysAfterBlocks notes a switch that no manager makes. If an operation raises, it stays after the `with` blocks of
// torch's managers around it, unless one of them restores grad mode.
func (o *OutputGraph) staysAfterBlocks(name string, args []py.Object) error {
	for t := o.current; t != nil; t = t.parent {
		if t.inst == nil {
			continue
		}
		for h := t.inst.Block(); h != nil; h = outerRegion(h.Target) {
			ctx := t.exitOf(h)
			if ctx == nil {
				continue
			}
			with := "with_grad"
			switch {
			case setsDefault(name):
				with = "with_default_dtype"
			case !gradModes[name]:
				return exc.Break(exc.CallUnsupported, "%s in a block of another mode", name)
			case o.world.RestoresGrad(ctx.Class):
				return nil
			}
			after, err := o.stateCall(with, o.state.after[ctx], args[0])
			if err != nil {
				return err
			}
			o.state.after[ctx] = after
		}
	}
	return nil
}

// setsDefault reports whether a function sets the default dtype.
func setsDefault(name string) bool { return strings.HasSuffix(name, "_set_default_dtype") }

// startsExit reports whether the handler of a `with` block starts at target.
func (tx *InstructionTranslator) startsExit(target *bytecode.Instruction) bool {
	i := tx.d.index[target] + 1
	return target.Op == opcode.PUSH_EXC_INFO && i < len(tx.d.code.Instructions) &&
		tx.d.code.Instructions[i].Op == opcode.WITH_EXCEPT_START
}

// outerRegion returns the region around the `with` block whose handler starts at target. The cleanup code of that
// handler is covered by this region.
func outerRegion(target *bytecode.Instruction) *bytecode.ExceptionRegion {
	cleanup := target.Handler
	if cleanup == nil {
		return nil
	}
	return cleanup.Target.Block()
}

// protection reports where an exception raised at the current instruction would go. If handled is true, a handler of
// the user's code would catch it. The handler may also be in a generator that the exception destroys. Otherwise state
// is the snapshot to restore, or null if no manager has switched anything.
func (tx *InstructionTranslator) protection() (handled bool, state py.Object) {
	for t := tx; t != nil; t = t.parent {
		if len(t.handled) > 0 {
			return true, tx.out.state.entry
		}
		if t.inst == nil {
			continue
		}
		for h := t.inst.Block(); h != nil; {
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

// protectedWithin reports whether a handler in a frame inside the frame `outside` may catch an exception.
func (tx *InstructionTranslator) protectedWithin(outside *InstructionTranslator) bool {
	for t := tx; t != nil && t != outside; t = t.parent {
		if len(t.handled) > 0 || t.inst != nil && t.inst.Block() != nil {
			return true
		}
	}
	return tx.out.stoppedInBlock()
}

// stoppedInBlock reports whether any generator has stopped inside a block.
func (o *OutputGraph) stoppedInBlock() bool {
	// Generators that have ended are removed, since this function runs for every operation.
	o.generators = slices.DeleteFunc(o.generators, func(g *GeneratorVariable) bool { return g.frame == nil })
	return slices.ContainsFunc(o.generators, func(g *GeneratorVariable) bool {
		return !g.running && g.stoppedInBlock()
	})
}

// restoring runs write. If an instruction that write has written raises, `state` is restored.
func (c *Codegen) restoring(state py.Object, write func() error) error {
	start := len(c.list)
	if err := write(); err != nil || state.IsNull() {
		return err
	}
	st := &c.out.state
	if n := len(st.regions); n > 0 {
		r := &st.regions[n-1]
		if !r.sealed && r.state == state && c.onlyStores(r.end, start) {
			r.end = len(c.list)
			return nil
		}
	}
	st.regions = append(st.regions, restoreRegion{start: start, end: len(c.list), state: state})
	return nil
}

// onlyStores reports whether the instructions in [start, end) only store results, which raises nothing. So the regions
// of the operations around them need only one handler.
func (c *Codegen) onlyStores(start, end int) bool {
	for _, in := range c.list[start:end] {
		if in.Op != opcode.STORE_FAST {
			return false
		}
	}
	return true
}

// writeRestores appends the exception handlers that restore states and reraise.
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

// stateAfterGraph returns the modes that the transformed code must set after the call of the compiled graph. It returns
// null if nothing must be set.
//
// AOTAutograd runs the graph's mode switches while it traces, more than once, and leaves them out of the compiled code.
// If a graph ends in other modes than it began in, the second trace would therefore run in the wrong modes. Also, when
// an inference mode is left, it restores the dispatcher state of the trace that entered it. So such a graph starts and
// ends with a node that sets the modes in which the frame started. After the graph, the transformed code switches to
// the final modes.
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

// switchTo writes the call that sets torch's modes to a snapshot. It writes nothing if state is null.
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

// switchedUnscoped reports whether a mode switch would be lost if the compiled graph raises. After the exception, the
// modes of the frame's start are restored, which is correct if the user's code runs again. If it does not run again,
// CPython may have left other modes after the exception. This is so after a switch without a manager, and after the
// exit of a manager that was entered before the last graph break.
func (o *OutputGraph) switchedUnscoped() bool {
	return !o.backend.Inline() && o.numOps > 0 && o.leavesOtherModes() && !o.rerunnable()
}

// leavesOtherModes reports whether an operation that raises would leave other modes than those of the frame's start.
func (o *OutputGraph) leavesOtherModes() bool {
	if o.state.entry.IsNull() {
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
