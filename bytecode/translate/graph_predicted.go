package translate

import (
	"cmp"
	"fmt"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// torch's optimizers branch on values of their state: RAdam corrects the variance from the sixth step on, ASGD averages
// from a certain step on. Clipping raises for gradients that are not finite, and torch's distributions raise if a value
// is not in their support. Such a branch goes the same way in nearly all calls. So the graph predicts which way, and an
// operation checks it (godynamo._called.predictions). If the prediction is wrong, the frames go on in CPython at the
// branch, and the next call is translated again.
//
// In any code, a branch of which one side only raises (`assert torch.isfinite(x).all()`) is predicted to go the other
// way, and so are other branches in inlined frames (graph_predicted_inlined.go).

// predictedBranch returns which way a branch on v goes in the graph. why is the graph break without a prediction; it is
// returned where none can be made.
func (tx *InstructionTranslator) predictedBranch(inst *bytecode.Instruction, v variables.VariableTracker,
	why error) (bool, error) {
	other := func(truth bool) variables.VariableTracker { return variables.BoolConst(!truth) }
	u, ok := why.(*exc.Unsupported)
	if !ok || !u.DataDependent || !tx.mayLeave() && !tx.asserts() || tx.assertsValid() {
		return tx.predicted(inst, v, why, other)
	}
	truth, raises := tx.withoutRaise(inst)
	if !raises || !tx.checkable(v) {
		return tx.predicted(inst, v, why, other)
	}
	question := ""
	if handled, _ := tx.protection(); handled && !tx.out.opts.NoPython { // the raise may be the usual way
		question = tx.placesText(inst)
	}
	if tx.asserts() {
		return tx.asserted(v, question, truth, why)
	}
	if expected, err := tx.out.expected(question, truth, why); err != nil || expected != truth {
		return false, cmp.Or(err, why)
	}
	return truth, tx.check(v, why, question, truth, other(truth))
}

// withoutRaise returns the truth with which a branch does not go to the one of its sides that only raises. ok is false
// if neither side only raises, or both.
func (tx *InstructionTranslator) withoutRaise(inst *bytecode.Instruction) (truth, ok bool) {
	at := tx.d.index[inst]
	next, target := tx.onlyRaises(at+1), tx.onlyRaises(tx.d.index[inst.Target])
	return next == (inst.Op == opcode.POP_JUMP_IF_TRUE), next != target
}

// maxRaising bounds the number of instructions that onlyRaises reads. The code that makes an exception is short, even
// where pytest describes the operands of an assert.
const maxRaising = 400

// onlyRaises reports whether all paths from an instruction end with a raise.
func (tx *InstructionTranslator) onlyRaises(from int) bool {
	list, work, seen := tx.d.code.Instructions, []int{from}, map[int]bool{}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		inst := list[at]
		raises := inst.Op == opcode.RAISE_VARARGS && inst.Arg > 0
		switch {
		case len(seen) > maxRaising || inst.Op == opcode.YIELD_VALUE:
			return false
		case inst.IsJump():
			work = append(work, tx.d.index[inst.Target])
		case bytecode.EndsFlow(inst.Op) && !raises:
			return false
		}
		if !bytecode.EndsFlow(inst.Op) {
			work = append(work, at+1)
		}
	}
	return true
}

// predicted returns the truth of v that the graph predicts at an instruction, or why if it can predict none. If the
// prediction is wrong, CPython runs the instruction with the value of top, given the prediction, on top of the
// stack. When gradients are clipped, the prediction is always that no error is raised.
func (tx *InstructionTranslator) predicted(inst *bytecode.Instruction, v variables.VariableTracker, why error,
	top func(truth bool) variables.VariableTracker) (bool, error) {
	u, ok := why.(*exc.Unsupported)
	o := tx.out
	if !ok || !u.DataDependent {
		return false, why
	}
	if truth, ok := o.known(tx, v); ok {
		return truth, nil
	}
	if !o.backend.Inline() {
		question, valid := tx.question(inst)
		if !valid {
			return false, why
		}
		return tx.asserted(v, question, true, why)
	}
	ofTorch := variables.MayPredict(o.scope, tx.globals) || variables.IsDistributions(o.scope, tx.globals)
	if !tx.mayLeave() || !ofTorch && !tx.predictsInlined() || !tx.checkable(v) {
		return false, why
	}
	question, first := "", false
	if ofTorch {
		question, first = tx.question(inst)
	} else {
		question = tx.inlinedQuestion(inst)
	}
	truth, err := o.expected(question, first, why)
	if err != nil {
		return false, err
	}
	if err := tx.check(v, why, question, truth, top(truth)); err != nil {
		return false, err
	}
	o.nowKnown(tx, v, truth)
	return truth, nil
}

// expected returns predictions.expected: the answer to a question, or why if the answers change too often.
func (o *OutputGraph) expected(question string, first bool, why error) (bool, error) {
	m, err := o.scope.Import("godynamo._called.predictions")
	if err != nil {
		return false, err
	}
	truth, err := o.scope.CallMethod(m, "expected", o.scope.Str(question), py.Bool(first))
	if err != nil || truth == py.None() {
		return false, cmp.Or(err, why)
	}
	return truth == py.True(), nil
}

// check adds an operation that checks the answer to a question about the truth of v. If the answer is wrong, CPython
// finds top on top of the stack.
func (tx *InstructionTranslator) check(v variables.VariableTracker, why error, question string, truth bool,
	top variables.VariableTracker) error {
	o, s := tx.out, tx.out.scope
	m, err := s.Import("godynamo._called.predictions")
	if err != nil {
		return err
	}
	check, err := s.GetAttr(m, "as_predicted")
	if err != nil {
		return err
	}
	args := []variables.VariableTracker{v, variables.BoolConst(truth), variables.NewConstant(s.Str(question), nil)}
	_, err = o.CallLeaving(tx, check, variables.AsPredicted, args,
		variables.Leaving{Result: top, Place: variables.AtInstruction, Why: "branch"})
	if _, breaks := err.(*exc.Unsupported); breaks {
		return why
	}
	if err != nil || question == "" {
		return err
	}
	return o.notRefuted(m, question, truth)
}

// question names a branch whose answer is predicted, or is empty if the answer is always the same. Distributions check
// that all values are valid; first is set for them, since the first prediction is that they are. One function checks
// for all distributions, so the callers are part of the question.
func (tx *InstructionTranslator) question(inst *bytecode.Instruction) (question string, first bool) {
	s := tx.out.scope
	first = variables.IsDistributions(s, tx.globals)
	switch {
	case first:
		question = tx.placesText(inst)
	case variables.IsOptimizers(s, tx.globals) || tx.hidden:
		question = tx.placeText(inst)
	}
	return question, first
}

// placesText names an instruction of the frame, and those of its callers that are running.
func (tx *InstructionTranslator) placesText(inst *bytecode.Instruction) string {
	return tx.placeText(inst) + tx.callersText()
}

// callersText names the running instruction of each caller. It leaves out torch's code that calls a module.
func (tx *InstructionTranslator) callersText() (text string) {
	for up := tx.parent; up != nil; up = up.parent {
		if !variables.IsModuleCall(tx.out.scope, up.globals) {
			text += " in " + up.placeText(up.inst)
		}
	}
	return text
}

// notRefuted guards that the answer to a question has not turned out to be wrong. m is godynamo._called.predictions.
func (o *OutputGraph) notRefuted(m py.Object, question string, answer bool) error {
	key, err := o.scope.CallMethod(m, "answer", o.scope.Str(question), py.Bool(answer))
	if err != nil {
		return err
	}
	src := guards.NewModuleAttrSource(guards.NewConstSource(o.Const(m), "___predictions"), "refuted")
	o.AddGuards(guards.DictContains(src, o.Const(key), false))
	return nil
}

// placeText names an instruction of the frame.
func (tx *InstructionTranslator) placeText(inst *bytecode.Instruction) string {
	return fmt.Sprintf("%s at %d", tx.codeText(), tx.d.index[inst])
}

// codeText names the frame's code.
func (tx *InstructionTranslator) codeText() string {
	return fmt.Sprintf("%s %s:%d", tx.d.code.Filename, tx.d.code.QualName, tx.d.code.FirstLine)
}

// settle makes floats of those operands of the instruction, the n topmost values of the stack, that are powers of
// floats. A power is a complex if its base is negative. An operation checks that it is a float; if it is not, the
// frames go on in CPython at the instruction. A tensor's operator takes a complex as well.
func (tx *InstructionTranslator) settle(n int, operator bool) error {
	var mixed []*variables.ComputedVariable
	for _, v := range tx.stack[len(tx.stack)-n:] {
		if operator && variables.IsTensor(v) {
			return nil
		}
		if x, ok := v.(*variables.ComputedVariable); ok && x.Mixed() {
			mixed = append(mixed, x)
		}
	}
	if mixed == nil || !tx.leavesForValues(variables.MayPredict) {
		return nil
	}
	m, err := tx.out.scope.Import("godynamo._called.predictions")
	if err != nil {
		return err
	}
	check, err := tx.out.scope.GetAttr(m, "as_float")
	if err != nil {
		return err
	}
	top := tx.pop()
	for _, x := range mixed {
		_, err = tx.out.CallLeaving(tx, check, variables.AsFloat, []variables.VariableTracker{x},
			variables.Leaving{Result: top, Place: variables.AtInstruction, Why: "power"})
		if err != nil {
			return err
		}
	}
	for _, x := range mixed {
		x.BecomeFloat(tx)
	}
	tx.push(top)
	return nil
}

// predictedCall returns the result of a call that depends on one truth value, which the graph predicts: that of a
// tensor given to bool(), of the comparison of two operands of min() or max(), one of them a tensor, or of torch.equal
// of one tensor. It returns nil for other calls, and if nothing can be predicted. If the prediction is wrong, CPython
// makes the call.
func (tx *InstructionTranslator) predictedCall(inst *bytecode.Instruction) (variables.VariableTracker, error) {
	if r, err := tx.equalToItself(inst); r != nil || err != nil {
		return r, err
	}
	n := inst.Arg
	if n != 1 && n != 2 || !tx.leavesForValues(variables.MayPredict) && (n != 1 || !tx.assertsValid()) {
		return nil, nil
	}
	fn, self := callee(tx.stack[len(tx.stack)-n-2 : len(tx.stack)-n])
	name := ""
	for _, b := range [][]string{{"bool"}, {"min", "max"}}[n-1] {
		if self == nil && variables.CallsBuiltin(tx.out.world, fn, b) {
			name = b
		}
	}
	if name == "" {
		return nil, nil
	}
	args := make([]variables.VariableTracker, n)
	for i, v := range tx.stack[len(tx.stack)-n:] {
		var err error
		if args[i], err = variables.Argument(tx, v); err != nil {
			return nil, err
		}
	}
	switch {
	case !variables.IsTensor(args[0]) && !variables.IsTensor(args[n-1]):
		return nil, nil
	case name == "bool":
		return tx.predictedTruth(inst, args[0], variables.BoolConst(true), variables.BoolConst(false))
	}
	// the second operand is the result if it compares so with the first
	op := map[string]opcode.CompareOp{"min": opcode.CMP_LT, "max": opcode.CMP_GT}[name]
	r, err := variables.Compare(tx, op, args[1], args[0])
	if err != nil {
		return nil, err
	}
	return tx.predictedTruth(inst, r, args[1], args[0])
}

// predictedTruth returns one of two results of a call, which depends on the truth of v, a tensor.
func (tx *InstructionTranslator) predictedTruth(inst *bytecode.Instruction,
	v, ifTrue, ifFalse variables.VariableTracker) (variables.VariableTracker, error) {
	truth, why := variables.Truth(tx, v)
	if why != nil {
		last := tx.pop()
		var err error
		truth, err = tx.predicted(inst, v, why, func(bool) variables.VariableTracker { return last })
		tx.push(last)
		switch {
		case err == why:
			return nil, nil // the builtin names the reason
		case err != nil:
			return nil, err
		}
	}
	if truth {
		return ifTrue, nil
	}
	return ifFalse, nil
}

// checkable reports whether an operation of the graph can check the truth of v: of a number computed at run time, or of
// a tensor with one element.
func (tx *InstructionTranslator) checkable(v variables.VariableTracker) bool {
	switch x := variables.MustRealize(tx, v).(type) {
	case *variables.ComputedVariable:
		return variables.IsComputedPlain(tx, x) && x.Node == nil
	case *variables.TensorVariable:
		return x.Class.IsNull() && tx.hasOneElement(x)
	}
	return false
}

// leavesForValues reports whether the frame runs code of a part of torch, and may go on in CPython where a value is not
// as the graph expects.
func (tx *InstructionTranslator) leavesForValues(runs func(s *py.Scope, globals py.Object) bool) bool {
	return tx.mayLeave() && runs(tx.out.scope, tx.globals)
}

// mayLeave reports whether the frames may go on in CPython where a value is not as the graph expects.
func (tx *InstructionTranslator) mayLeave() bool {
	o := tx.out
	return o.backend.Inline() && o.bodies == 0 && o.tentative == 0 && !o.opts.Exporting
}

// hasOneElement reports whether a tensor is known to have one element.
func (tx *InstructionTranslator) hasOneElement(t *variables.TensorVariable) bool {
	m, err := t.Sizes(tx)
	if err != nil {
		return false
	}
	for _, size := range m.Shape {
		if !size.Is(1) {
			return false
		}
	}
	return true
}
