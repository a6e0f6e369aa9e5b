package translate

import (
	"fmt"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/variables"
)

// A graph break in an inlined frame splits all its callers: each becomes a frame of its own with a piece before and a
// piece after its call. So the inline backend predicts branches on data there, as it does in torch's optimizers. In the
// outermost frame the graph breaks at such a branch, since both sides can go on as captured code.

// inlinedBranches holds what the translation has learned about branches on data in inlined frames.
type inlinedBranches struct {
	truths  map[*variables.ComputedVariable]bool // the truth of values that an operation of the graph checks
	reached map[string]int                       // how often the translation has reached a branch
	again   map[reachedBranch]bool               // branches that a frame would reach again
}

// reachedBranch is a branch that a frame has reached.
type reachedBranch struct {
	frame *InstructionTranslator
	inst  *bytecode.Instruction
}

// predictsInlined reports whether branches on data are predicted in the frame's code, whatever it is. Under
// nopython=True they are errors, as in any frame: an error that only comes once predictions have been wrong is worse.
func (tx *InstructionTranslator) predictsInlined() bool {
	return tx.parent != nil && !tx.out.opts.NoPython
}

// inlinedQuestion names a branch of an inlined frame. The first line names the outermost frame that is not torch's call
// of a module: all wrong answers to its questions count together, since each combination of answers is a translation.
// The second line names the branch: what a call has shown there is the first answer for other calls
// (godynamo._called.predictions). It is missing where a frame reaches the branch again, since a loop that goes on does
// not go on for ever.
func (tx *InstructionTranslator) inlinedQuestion(inst *bytecode.Instruction) string {
	b, root := &tx.out.inlinedBranches, tx
	for up := tx; up != nil; up = up.parent {
		if !variables.IsModuleCall(tx.out.scope, up.globals) {
			root = up
		}
	}
	if b.reached == nil {
		b.reached, b.again = map[string]int{}, map[reachedBranch]bool{}
	}
	place, callers := tx.placeText(inst), tx.callersText()
	b.reached[place+callers]++
	question := root.codeText() + "\n" + place
	if at := (reachedBranch{tx, inst}); !b.again[at] {
		b.again[at] = true
		question += "\n"
	}
	return fmt.Sprintf("%s%s, time %d", question, callers, b.reached[place+callers])
}

// known returns the truth of a number on which the graph has branched before.
func (o *OutputGraph) known(tx *InstructionTranslator, v variables.VariableTracker) (truth, ok bool) {
	if x, computed := variables.MustRealize(tx, v).(*variables.ComputedVariable); computed {
		truth, ok = o.truths[x]
	}
	return truth, ok
}

// nowKnown notes that an operation of the graph checks the truth of v. Only numbers keep their truth.
func (o *OutputGraph) nowKnown(tx *InstructionTranslator, v variables.VariableTracker, truth bool) {
	if x, computed := variables.MustRealize(tx, v).(*variables.ComputedVariable); computed {
		if o.truths == nil {
			o.truths = map[*variables.ComputedVariable]bool{}
		}
		o.truths[x] = truth
	}
}
