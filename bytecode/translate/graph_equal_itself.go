package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// equalToItself returns the result of torch.equal(x, x), or nil for other calls. Attention modules call it to find out
// whether query, key and value are one tensor. It is true unless x holds NaN, so the graph predicts this, and an
// operation checks it in each call. If the prediction is wrong, CPython makes the call.
func (tx *InstructionTranslator) equalToItself(inst *bytecode.Instruction) (variables.VariableTracker, error) {
	if inst.Arg != 2 || !tx.mayLeave() && !tx.asserts() {
		return nil, nil
	}
	n, o := len(tx.stack), tx.out
	fn, self := callee(tx.stack[n-4 : n-2])
	if self != nil || !variables.CallsTorchEqual(o.world, fn) {
		return nil, nil
	}
	t, err := variables.OnePlainTensor(tx, tx.stack[n-2], tx.stack[n-1])
	if t == nil || err != nil {
		return nil, err
	}
	question := tx.placesText(inst)
	why := exc.Break(exc.DataDependentBranch, "torch.equal")
	if !o.backend.Inline() {
		if o.TakesApart() || !o.RunsUnchanged() { // see asserted
			return nil, nil
		}
		holds, err := tx.mustHold("must_equal_itself", []variables.VariableTracker{t}, true, question, why)
		return trueIf(holds, nil), except(err, why)
	}
	if holds, err := o.expected(question, true, why); err != nil || !holds {
		return nil, except(err, why)
	}
	r, err := variables.Call(tx, fn, []variables.VariableTracker{t, t}, nil)
	if err != nil {
		return nil, err
	}
	if tx.checkable(r) {
		last := tx.pop()
		err = tx.check(r, why, question, true, last)
		tx.push(last)
		return trueIf(err == nil, r), except(err, why)
	}
	return r, nil
}

// trueIf returns True if holds is set, and other if not.
func trueIf(holds bool, other variables.VariableTracker) variables.VariableTracker {
	if holds {
		return variables.BoolConst(true)
	}
	return other
}

// except returns err, or nil if err is why.
func except(err, why error) error {
	if err == why {
		return nil
	}
	return err
}
