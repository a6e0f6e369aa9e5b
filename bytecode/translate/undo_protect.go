package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// An operation inside `try` or `with` is captured like any other, but its handler is not captured. If the operation
// raises, its piece (the code between two graph breaks) runs again in CPython from the start, where the exception
// reaches the handler, the context manager and the `finally` blocks. That is correct as long as nothing that the piece
// did before is visible:
//
//   - Effects of the piece wait until the last protected operation has finished. If any operation between the first
//     effect and that operation raises, the piece also runs again.
//   - Changes to tensors and to random states cannot wait. Some are undone before the piece runs again
//     (undo_put_back.go). After any other change, the graph breaks before the next protected operation.
//   - The graph also breaks after an effect that operations may see, and at a Python operation inside a block.
//   - After an operation that must not run twice, a later one with a handler has a side exit (resume_side_exit.go).
//   - The graph also breaks after an object of the program has taken over a mode (Adopts): the second run would leave
//     only the modes that captured code still holds.
//   - Under saved-tensor hooks, which see each operation, no operation with a handler is captured (undo_hooks.go).

// protect is called before an operation is added. It returns a graph break if a handler would catch the operation's
// exception, but the piece could not run again.
func (o *OutputGraph) protect(tx variables.Translator) error {
	if handled, _ := tx.(*InstructionTranslator).protection(); !handled {
		return nil
	}
	if o.foreign.ran && o.InForeignBody() {
		if tx.(*InstructionTranslator).protectedWithin(o.foreign.outside) {
			return exc.Break(exc.InsideBlock, "an operation inside try or with, after one that must not run twice")
		}
		return nil // the operation that runs the function has a side exit
	}
	if (o.foreign.ran || o.exitHere() != nil) && o.bodies == 0 {
		return o.sideExit("an operation whose exception has a handler, after one that must not run twice")
	}
	if active, err := o.hooked(); err != nil {
		return err
	} else if active {
		return exc.Break(exc.InsideBlock, "operation inside try or with, under saved-tensor hooks")
	}
	if o.log.unprotected {
		return exc.Break(exc.InsideBlock, "operation inside try or with, in a graph with side effects")
	}
	if o.backend.Inline() && o.countLeft() > 0 {
		earlier, after := "a change of a tensor in place", "one that changed a tensor in place"
		if o.state.adopted {
			earlier = "an object of a torch mode left the graph"
			after = earlier
		}
		if o.leftBefore == o.left {
			return o.breakAt(o.leftStep, &exc.Unsupported{Code: exc.InsideBlock,
				Context: "an operation whose exception has a handler, after " + after,
				Before:  true, Stack: o.position().stack()})
		}
		return exc.Break(exc.InsideBlock,
			"%s, then an operation whose exception has a handler, in one call", earlier)
	}
	o.hasProtected = true
	return nil
}

// countLeft counts the events so far that cannot wait and are visible to other code once they have run.
func (o *OutputGraph) countLeft() int {
	for ; o.counted < len(o.events); o.counted++ {
		e := o.events[o.counted]
		if e.node != nil && o.traceOf(e.node) == lasts || e.draws || e.effect() && (e.shared || o.world.PythonOps) {
			o.left++
		}
	}
	return o.left
}

// effect reports whether other code can see what the event does, and the event is not an operation.
func (e *event) effect() bool { return e.emit != nil && e.slot == nil && !e.fresh }

// inOrder returns the events in the order in which an inline backend runs them. This is program order, except that
// effects, and the events that they need, wait for the last protected operation. lastProtected is the index of that
// operation, or -1.
func (o *OutputGraph) inOrder() (events []*event, lastProtected int) {
	last, first := o.lastProtected(), slices.IndexFunc(o.events, (*event).effect)
	if first < 0 || first > last || o.world.PythonOps {
		return o.events, last
	}
	operations, waiting := o.events[:first:first], []*event{}
	for _, e := range o.events[first : last+1] {
		if e.node == nil && !e.early {
			waiting = append(waiting, e)
			continue
		}
		o.runsAgain(e)
		operations = append(operations, e)
	}
	return append(append(operations, waiting...), o.events[last+1:]...), len(operations) - 1
}

// runsAgain marks an operation without a handler as protected. If the operation raises, the modes of the piece's start
// are restored, and the user's code runs again from that start. Only operations after a delayed effect need this. An
// earlier operation may raise its own exception.
func (o *OutputGraph) runsAgain(e *event) {
	if e.node != nil && !e.protected {
		e.protected, e.state = true, o.state.entry
	}
}

// lastProtected returns the index of the last protected operation, or -1.
func (o *OutputGraph) lastProtected() int {
	for i, e := range slices.Backward(o.events) {
		if e.protected {
			return i
		}
	}
	return -1
}

// readsTooLate reports whether an effect that reads a tensor would wait for an operation that changes a tensor.
func (o *OutputGraph) readsTooLate() bool {
	reads, found := false, false
	for _, e := range o.events {
		reads = reads || e.reads
		found = found || reads && e.node != nil && o.changesTensors(e.node)
		if found && e.protected {
			return true
		}
	}
	return false
}

// changesTensors reports whether an operation changes a tensor in place. This includes tensors that the piece made.
func (o *OutputGraph) changesTensors(n *fxgraph.Node) bool {
	return n.Inplace && !n.State || o.traceOf(n) >= copied
}

// rerunnable reports whether a whole graph leaves no trace if it raises. Such a graph changes nothing in place and
// draws no random numbers, or this is undone, and no saved-tensor hook has seen its operations. The user's code can run
// instead of the graph, and the code's effects and exception then occur at the right places.
func (o *OutputGraph) rerunnable() bool { return o.leavesNoTrace() && !o.hooksMatter() }

// leavesNoTrace is like rerunnable, but ignores saved-tensor hooks.
func (o *OutputGraph) leavesNoTrace() bool {
	if o.backend.Inline() || o.numOps == 0 {
		return false
	}
	for _, e := range o.events {
		if t := o.eventTrace(e); t == lasts || !o.hasProtected && t != noTrace {
			return false
		}
	}
	return true
}

// runsOnce reports whether effects follow a graph that cannot run again, although the user's code has these effects
// between the graph's operations. An exception from outside (from a signal handler or another thread), raised between
// the graph and the effects, would lose effects that precede the exception in CPython. So signals wait from the graph's
// start to the last effect.
func (o *OutputGraph) runsOnce() bool {
	if o.backend.Inline() || o.numOps == 0 || o.lead > 0 || o.hasProtected || o.rerunnable() {
		return false
	}
	return slices.ContainsFunc(o.events, (*event).effect)
}

// holdsSignals reports whether signals must wait while a graph runs that cannot run again. A change such as y[0] = x
// is one instruction, and CPython does not check for signals between the change and the next call. AOTAutograd makes
// such changes at the end of the graph, after random numbers have been drawn.
func (o *OutputGraph) holdsSignals() bool {
	if o.backend.Inline() || o.rerunnable() {
		return false
	}
	traces := 0
	for _, e := range o.events {
		if o.eventTrace(e) != noTrace && !e.putBack {
			if e.node.Inplace {
				return true
			}
			traces++
		}
	}
	return traces > 1 && o.TakesApart()
}

// effectsWait reports whether effects wait for an operation that itself leaves a visible trace, such as one that draws
// random numbers. No signal may arrive between this operation and the last effect.
func (o *OutputGraph) effectsWait() bool {
	if o.runsOnce() {
		return true
	}
	if o.numOps == 0 || o.lead > 0 {
		return false
	}
	events, effect := o.events, false
	if o.backend.Inline() {
		events = events[:o.lastProtected()+1]
	}
	for _, e := range events {
		if effect && (o.isPutBack(e) || o.eventTrace(e) != noTrace) {
			return true
		}
		effect = effect || e.effect()
	}
	return false
}

// savesState decides whether state is saved before a whole graph in which an effect precedes an operation. If the
// graph raises, the state is restored and the user's code runs again. Without the saved state, the graph would break
// at the effect.
func (o *OutputGraph) savesState() {
	if o.effectsLead(); o.lead > 0 || o.backend.Inline() || o.hasProtected ||
		!slices.ContainsFunc(o.events, o.isPutBack) {
		return
	}
	effect := false
	for _, e := range o.events {
		effect = effect || e.effect()
		if effect && e.node != nil {
			o.hasProtected = true
			o.hasProtected = o.rerunnable()
			return
		}
	}
}

// effectsLead decides whether the events before the first operation run before a whole graph, as in the user's code.
// This requires that every effect that precedes an operation is among these events. If the graph then raises, the
// effects have happened as in CPython, and nothing runs again. A graph that leaves no trace still runs before all
// events, since the user's code can run again if the graph raises.
func (o *OutputGraph) effectsLead() {
	if o.backend.Inline() || o.hasProtected || o.rerunnable() || o.world.PythonOps || len(o.computed.generators) > 0 {
		return
	}
	first, last := -1, -1 // first and last are indexes of operations
	for i, e := range o.events {
		if e.early || e.draws {
			return
		}
		if e.node != nil {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	effect := false
	for i, e := range o.events {
		if i < first {
			effect = effect || e.effect()
		}
		if i < last && e.effect() && (i > first || e.shared) {
			return
		}
	}
	if effect {
		o.lead = first
	}
}
