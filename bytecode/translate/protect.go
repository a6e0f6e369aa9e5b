package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// An operation inside try or with is captured like any other, and its handler is not: should the operation raise, the piece of the
// frame it is in (the frame itself, or the rest of one after a split) runs again in CPython from its start, and there the exception
// meets its handler, its context and its finally blocks. That is right as long as nothing the piece did before can be seen. So
// the piece's effects wait until the last protected operation is over, and what stands between the first of them and that operation runs
// again as well when it raises. What an operation does to its tensors or to random numbers cannot wait: where there is such a trace, the
// frame is split in front of the next protected operation. So it is after an effect that operations may see, and where Python runs as an operation.

// protect prepares for one more operation; its error asks for a split.
func (o *OutputGraph) protect(tx variables.Translator) error {
	if handled, _ := tx.(*InstructionTranslator).protection(); !handled {
		return nil
	}
	if o.log.unprotected {
		return exc.Break(exc.InsideBlock, "operation inside try or with, in a graph that leaves traces")
	}
	if o.backend.Inline() && o.countLeft() > 0 {
		if o.leftBefore == o.left {
			return o.breakAt(o.leftStep, &exc.Unsupported{Code: exc.InsideBlock,
				Context: "an operation whose exception has a handler, after one that changed a tensor in place", Before: true, Stack: o.position().stack()})
		}
		return exc.Break(exc.InsideBlock, "a change of a tensor in place, then an operation whose exception has a handler, in one call")
	}
	o.hasProtected = true
	return nil
}

// countLeft counts the events so far that can be seen from outside once they have run, and cannot wait.
func (o *OutputGraph) countLeft() int {
	for ; o.counted < len(o.events); o.counted++ {
		e := o.events[o.counted]
		if e.node != nil && o.traceOf(e.node) == lasts || e.draws || e.effect() && (e.shared || o.world.PythonOps) {
			o.left++
		}
	}
	return o.left
}

// effect tells events that can be seen from outside and are no operations.
func (e *event) effect() bool { return e.emit != nil && e.slot == nil && !e.fresh }

// inOrder gives the events in the order they run in with inlined operations: the program's, but effects and what they need wait for the
// last protected operation.
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

// runsAgain marks an operation without a handler like one that has one: if it raises, the modes of the piece's start are put back and the user's
// code runs again from there. It is needed only after an effect that has been delayed; before one, the operation's own exception is right.
func (o *OutputGraph) runsAgain(e *event) {
	if e.node != nil && !e.protected {
		e.protected, e.state = true, o.state.entry
	}
}

// lastProtected is the index of the last protected operation, -1 without one.
func (o *OutputGraph) lastProtected() int {
	for i, e := range slices.Backward(o.events) {
		if e.protected {
			return i
		}
	}
	return -1
}

// readsTooLate tells frames where an effect that reads a tensor would wait for an operation that changes one.
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

// changesTensors tells operations that change a tensor in place, be it the piece's own.
func (o *OutputGraph) changesTensors(n *fxgraph.Node) bool {
	return n.Inplace && !n.State || o.traceOf(n) >= copied
}

// rerunnable tells graphs that leave no trace when they raise: nothing changed in place, no random numbers drawn but where that is put
// back. Then the user's own code can run instead, with its effects and its exception at their places.
func (o *OutputGraph) rerunnable() bool {
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

// runsOnce reports whether effects follow a graph that cannot run again, though the program has them among its operations. What is raised
// from outside between the two would take effects away that CPython had done: there are no signals from the graph's start to the last effect.
func (o *OutputGraph) runsOnce() bool {
	if o.backend.Inline() || o.numOps == 0 || o.lead > 0 || o.hasProtected || o.rerunnable() {
		return false
	}
	return slices.ContainsFunc(o.events, (*event).effect)
}

// holdsSignals reports whether none may arrive in a graph that cannot run again. A change such as y[0] = x is one instruction of the program,
// after which CPython looks for no signal before the next call; AOTAutograd makes changes at the end, after numbers were drawn.
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

// effectsWait reports whether effects wait for an operation that can be seen too, once it has not raised: drawn numbers, say. From there
// to the last effect nothing may arrive.
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

// savesState has state saved in front of a whole graph that has an effect before an operation: put back, it lets the user's code run again
// should the graph raise. The frame would be split at the effect else.
func (o *OutputGraph) savesState() {
	if o.effectsLead(); o.lead > 0 || o.backend.Inline() || o.hasProtected || !slices.ContainsFunc(o.events, o.isPutBack) {
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

// effectsLead finds the events in front of the first operation that may run in front of a whole graph, as they do in the program, where all
// effects stand there that an operation follows: should the graph raise, they have happened as in CPython, and nothing runs again. A graph
// that leaves no trace goes first all the same: the user's own code then raises in its place, or does not.
func (o *OutputGraph) effectsLead() {
	if o.backend.Inline() || o.hasProtected || o.rerunnable() || o.world.PythonOps || len(o.computed.generators) > 0 {
		return
	}
	first, last := -1, -1 // operation
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
