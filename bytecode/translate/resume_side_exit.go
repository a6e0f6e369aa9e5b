package translate

import (
	"cmp"
	"errors"
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// An operation inside `try` or `with` that must not run twice has a side exit. If it raises, a resume function runs the
// handler of the user's frame. If that frame was inlined, further resume functions then run the rest of its callers,
// with the result of the call or with the exception (core/calls/outer_frames.h). What these functions read is
// materialized before the operation.
//
// A second kind of exit is for an operation after which the translation cannot predict what holds: backward() may run
// hooks. If its result is None, the frames go on in resume functions after the operation's call (leaveAfter), or at the
// branch whose outcome it has checked (graph_predicted.go).
//
// Once a piece has run an operation that must not run twice, all its operations with a handler have side exits, since
// the piece cannot run again from its start.

// sideExit describes the user's frames at an operation. Operations share it if none of these frames has gone on between
// them.
type sideExit struct {
	frames  []*exitFrame              // the frame that runs first, then its callers up to the outermost frame
	covered []*bytecode.Instruction   // what is written for the operations
	jump    *bytecode.Instruction     // if the frames go on after the operation: the jump to the exit
	at      *chain                    // and the place of the operation
	value   *fxgraph.Node             // and what the call returns; nil for None
	outcome variables.VariableTracker // if the frames go on at an instruction: the top of the stack
	// lead and end are the first and the last instruction of the handler in the transformed code.
	lead, end *bytecode.Instruction
	shared    []variables.VariableTracker // the modes that objects of the frames take over, see OutputGraph.Shares
}

// exitFrame describes one frame at a side exit.
type exitFrame struct {
	tx   *InstructionTranslator // a copy, with the variables and the stack of that moment
	of   *InstructionTranslator
	step int
	// region has the handler of an exception; nil if exceptions pass through the frame.
	region *bytecode.ExceptionRegion
	// child is the frame that this one called; nil in the first frame.
	child *InstructionTranslator
	// goesOn is set if the frame goes on after its call.
	goesOn bool
	// at is the instruction at which the frame goes on, or nil if it goes on after a call.
	at *bytecode.Instruction
	// result is what the operation returns, in the first frame of an exit whose frames go on.
	result variables.VariableTracker
	// live has the live variables at each instruction at which the frame may go on.
	live map[*bytecode.Instruction]map[int]bool
	// passes is set for a frame of godynamo._polyfills that only returns the call's result. It needs no resume
	// function.
	passes bool
	// returns is set once the call's result is known to be what child, or the operation, returned.
	returns bool
	loops   []variables.VariableTracker // copies of iterators of loops, see variables.LoopCopy
}

// errNoSideExits requests another attempt without side exits.
var errNoSideExits = errors.New("a call whose result is not what the called function returned")

// exitHere returns the side exit of operations at the current step, or nil.
func (o *OutputGraph) exitHere() *sideExit {
	if o.exitStep != o.steps {
		return nil
	}
	return o.nextExit
}

// sideExit gives the operations of the current step a side exit. It returns a graph break if that is not possible here.
func (o *OutputGraph) sideExit(why string) error {
	tx, state := o.current, o.state.now
	impossible := func(because string) error { return exc.Break(exc.InsideBlock, "%s: %s", why, because) }
	if err := o.closeDropped(); err != nil {
		return err
	}
	if because := o.withoutExits(); because != "" {
		return impossible(because)
	}
	var exit sideExit
	for ; tx != nil; tx = tx.parent {
		if tx.inst == nil {
			return impossible(tx.d.code.Name + "() has not started")
		}
		handler, left := tx.leaves(len(exit.frames) > 0)
		if len(tx.handled) > 0 {
			return impossible("an exception is being handled")
		}
		if !handler {
			state = cmp.Or(left, state)
			continue
		}
		f := &exitFrame{of: tx, step: tx.began}
		if tx.inst.Block() != nil {
			f.region = tx.inst.Handler
		}
		if n := len(exit.frames); n > 0 {
			f.child, f.goesOn = exit.frames[n-1].of, true
		}
		f.passes = tx.hidden && f.child != nil && f.region == nil && tx.next().Op == opcode.RETURN_VALUE
		if !f.passes && (tx.hidden || !tx.mayExit(f.child != nil)) {
			return impossible(tx.d.code.Name + "() cannot go on there")
		}
		exit.frames = append(exit.frames, f)
	}
	o.nextExit = nil
	if o.nextState = state; state == o.state.now {
		o.nextState = py.Object{}
	}
	o.exitStep = o.steps
	if n := len(o.exits); n > 0 && o.exits[n-1].sameState(&exit) {
		o.nextExit = o.exits[n-1]
		return nil
	}
	adopted := o.state.adopted
	because, err := o.keepFrames(&exit)
	if o.state.adopted && !adopted && !o.nextState.IsNull() {
		because = cmp.Or(because, "a mode to leave is inside one that an object takes over")
	}
	if because != "" {
		return impossible(because)
	}
	exit.shared = o.enteredIn(o.nextState, exit.shared)
	o.nextExit, o.exitStep = &exit, o.steps // materializing the manager of a mode runs code
	return err
}

// withoutExits returns why no operation can have an exit here, or "".
func (o *OutputGraph) withoutExits() string {
	switch {
	case o.log.noSideExits:
		return "a caller does not just return its result"
	case o.stoppedInBlock() || o.hasLoops():
		return "a generator or a captured loop is running"
	case o.world.UnderModes():
		return "a torch function mode is entered, but not in torch"
	case o.world.PythonOps || o.opts.Exporting:
		return "the graph contains Python operations or is exported"
	}
	return ""
}

// keepFrames keeps what the frames of an exit read, and adds the exit. because says why that is not possible, or is "".
func (o *OutputGraph) keepFrames(exit *sideExit) (because string, err error) {
	for _, f := range exit.frames {
		if err := f.keep(); err != nil {
			if u, breaks := err.(*exc.Unsupported); breaks {
				return u.Context, nil
			}
			return "", err
		}
	}
	exit.shared = o.shared()
	o.exits = append(o.exits, exit)
	return "", nil
}

// leaveAfter returns the exit of an operation whose frames go on in CPython after the current call. It returns a graph
// break if the frames cannot.
func (o *OutputGraph) leaveAfter(to variables.Leaving) (*sideExit, error) {
	impossible := func(because string) error { return exc.Break(exc.CallUnsupported, "%s: %s", to.Why, because) }
	if err := o.closeDropped(); err != nil {
		return nil, err
	}
	if because := o.withoutExits(); because != "" {
		return nil, impossible(because)
	}
	exit := &sideExit{value: to.Node}
	if to.Place != variables.AfterCall {
		exit.outcome = to.Result
	}
	for tx := o.current; tx != nil; tx = tx.parent {
		switch {
		case tx.inst == nil:
			return nil, impossible(tx.d.code.Name + "() has not started")
		case len(tx.handled) > 0:
			return nil, impossible("an exception is being handled")
		}
		f := &exitFrame{of: tx, step: tx.began, goesOn: true, result: to.Result}
		if to.Place != variables.AfterCall && tx == o.current {
			f.at, f.returns = tx.inst, true
		}
		if n := len(exit.frames); n > 0 {
			f.child = exit.frames[n-1].of
			if tx.inst.Block() != nil {
				f.region = tx.inst.Handler
			}
		}
		f.passes = tx.hidden && f.child != nil && f.region == nil && tx.next().Op == opcode.RETURN_VALUE
		if !f.passes && !tx.mayExit(f.at == nil) {
			return nil, impossible(tx.d.code.Name + "() cannot go on there")
		}
		exit.frames = append(exit.frames, f)
	}
	for _, f := range slices.Backward(exit.frames) {
		if !f.passes { // a hidden frame that goes on has a level of its own as well
			exit.at = f.of.chainBelow(exit.at)
		}
	}
	because, err := o.keepFrames(exit)
	if because != "" {
		return nil, impossible(because)
	}
	return exit, err
}

// leaves reports whether the frame runs a handler if an exception is raised at its instruction. A frame that just
// leaves torch's modes runs none, unless an inner frame does (below); left is the snapshot after it has left them.
func (tx *InstructionTranslator) leaves(below bool) (handler bool, left py.Object) {
	if below {
		return true, left
	}
	for h := tx.inst.Block(); h != nil; {
		ctx := tx.exitOf(h)
		if ctx == nil {
			return true, py.Object{}
		}
		left, h = tx.out.state.after[ctx], outerRegion(h.Target)
	}
	return false, left
}

// mayExit reports whether resume functions can run the rest of the frame. calls: the frame is at a call that the
// translator has inlined.
func (tx *InstructionTranslator) mayExit(calls bool) bool {
	c := tx.d.code
	if usesFrame(c) || c.Flags&(opcode.CO_GENERATOR|opcode.CO_COROUTINE|opcode.CO_ASYNC_GENERATOR) != 0 {
		return false
	}
	return !calls || tx.inst.Op == opcode.CALL || tx.inst.Op == opcode.CALL_FUNCTION_EX
}

// sameState reports whether the frames of both exits are at the same steps.
func (e *sideExit) sameState(other *sideExit) bool {
	same := func(a, b *exitFrame) bool {
		return a.of == b.of && a.step == b.step && a.goesOn == b.goesOn && a.at == b.at
	}
	return slices.EqualFunc(e.frames, other.frames, same)
}

// keep copies the frame, and materializes what the rest of the frame reads.
func (f *exitFrame) keep() error {
	if f.goesOn && f.at == nil {
		f.of.awaiting = append(f.of.awaiting, f)
	}
	if f.passes {
		return nil
	}
	tx := *f.of
	tx.locals, tx.stack = slices.Clone(tx.locals), slices.Clone(tx.stack)
	f.tx = &tx
	tx.unbindMethods()
	height := len(tx.stack)
	if !f.goesOn {
		height = f.region.Depth
	}
	freeze := func(v variables.VariableTracker) error {
		if _, iterates := v.(variables.Iterator); iterates && !variables.Materialized(v) {
			return exc.Break(exc.Reconstruct, "an iterator that captured code goes on to use")
		}
		return tx.out.Freeze(f.of, v)
	}
	for i, v := range tx.stack[:height] {
		over := []variables.VariableTracker{v}
		if it, ok := v.(variables.Iterator); ok && !variables.Materialized(v) {
			var err error
			if tx.stack[i], over, err = variables.LoopCopy(f.of, it); err != nil {
				return err
			}
			f.loops = append(f.loops, tx.stack[i])
		}
		for _, v := range over {
			if v == nil {
				continue
			}
			if err := freeze(v); err != nil {
				return err
			}
		}
	}
	var targets []*bytecode.Instruction
	if f.region != nil {
		targets = append(targets, f.region.Target)
	}
	if f.goesOn {
		targets = append(targets, f.after())
	}
	f.live = map[*bytecode.Instruction]map[int]bool{}
	for _, target := range targets {
		f.live[target] = tx.liveAt(target)
		if err := tx.freezeLocals(f.live[target], freeze); err != nil {
			return err
		}
	}
	return nil
}

// after returns the instruction at which the frame goes on.
func (f *exitFrame) after() *bytecode.Instruction {
	if f.at != nil {
		return f.at
	}
	return f.tx.next()
}

// next returns the instruction after the running one.
func (tx *InstructionTranslator) next() *bytecode.Instruction {
	return tx.d.code.Instructions[tx.d.index[tx.inst]+1]
}

// pushResult pushes the result of a call.
func (tx *InstructionTranslator) pushResult(v variables.VariableTracker) {
	for _, f := range tx.awaiting {
		result := f.result
		if f.child != nil {
			result = f.child.result
		}
		f.returns = result == v
	}
	tx.awaiting = nil
	tx.push(v)
}

// unknownExits reports whether a frame at a side exit would go on with another value than its call's result, or with
// an iterator over a container that has changed.
func (o *OutputGraph) unknownExits() bool {
	changed := func(v variables.VariableTracker) bool { return !variables.LoopsAnew(v) }
	return slices.ContainsFunc(o.exits, func(e *sideExit) bool {
		return slices.ContainsFunc(e.frames, func(f *exitFrame) bool {
			return f.goesOn && !f.returns || slices.ContainsFunc(f.loops, changed)
		})
	})
}
