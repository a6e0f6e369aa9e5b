package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// An operation inside try or with is captured like any other, and its handler is not: should the operation raise, the piece of the
// frame it is in (the frame itself, or the rest of one after a split) runs again in CPython from its start, and there the exception
// meets its handler, its context and its finally blocks. That is right as long as nothing the piece did before can be seen. So
// a piece holds no trace before a protected operation: where there would be one, the frame is split in front of the operation.

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
				Context: "an operation whose exception has a handler, after an effect", Before: true, Stack: o.position().stack()})
		}
		return exc.Break(exc.InsideBlock, "an effect, then an operation whose exception has a handler, in one call")
	}
	o.hasProtected = true
	return nil
}

// countLeft counts the events so far that can be seen from outside once they have run.
func (o *OutputGraph) countLeft() int {
	for ; o.counted < len(o.events); o.counted++ {
		e := o.events[o.counted]
		if e.node != nil && leavesTrace(e.node) || e.emit != nil && (e.slot == nil && !e.fresh || e.draws) {
			o.left++
		}
	}
	return o.left
}

// leavesTrace tells operations that change a tensor in place, draw random numbers or update buffers.
func leavesTrace(n *fxgraph.Node) bool {
	if n.State {
		return false // put back where the piece runs again
	}
	if n.Inplace {
		return true
	}
	leaves, known := namedStateful[n.Target.Text]
	if !known {
		for _, word := range stateful {
			leaves = leaves || strings.Contains(n.Target.Text, word)
		}
		namedStateful[n.Target.Text] = leaves
	}
	return leaves
}

// namedStateful remembers the verdict on a name: every event of every frame is asked for. The interpreter lock guards it.
var namedStateful = map[string]bool{}

// stateful are parts of the names of operations that draw random numbers or update buffers.
var stateful = []string{"rand", "dropout", "bernoulli", "normal", "multinomial", "poisson", "rrelu", "exponential", "uniform",
	"cauchy", "geometric", "random", "batch_norm", "instance_norm", "fractional", "gumbel", "set_"}

// rerunnable tells graphs that leave no trace when they raise: nothing changed in place, no random numbers drawn. Then the
// user's own code can run instead, with its effects and its exception at their places.
func (o *OutputGraph) rerunnable() bool {
	if o.backend.Inline() || o.numOps == 0 {
		return false
	}
	for _, e := range o.events {
		if e.node != nil && leavesTrace(e.node) {
			return false
		}
	}
	return true
}
