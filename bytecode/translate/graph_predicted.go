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

// predictedBranch returns which way a branch on v goes in the graph. why is the graph break without a prediction; it is
// returned where none can be made.
func (tx *InstructionTranslator) predictedBranch(inst *bytecode.Instruction, v variables.VariableTracker,
	why error) (bool, error) {
	return tx.predicted(inst, v, why, func(truth bool) variables.VariableTracker { return variables.BoolConst(!truth) })
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
	if !o.backend.Inline() {
		return tx.asserted(inst, v, why)
	}
	if !tx.mayPredict(v) {
		return false, why
	}
	s := o.scope
	m, err := s.Import("godynamo._called.predictions")
	if err != nil {
		return false, err
	}
	question, first := tx.question(inst)
	expected, err := s.CallMethod(m, "expected", s.Str(question), py.Bool(first))
	if err != nil || expected == py.None() {
		return false, cmp.Or(err, why)
	}
	truth := expected == py.True()
	check, err := s.GetAttr(m, "as_predicted")
	if err != nil {
		return false, err
	}
	args := []variables.VariableTracker{v, variables.BoolConst(truth), variables.NewConstant(s.Str(question), nil)}
	_, err = o.CallLeaving(tx, check, variables.AsPredicted, args,
		variables.Leaving{Result: top(truth), Place: variables.AtInstruction, Why: "branch"})
	if err != nil {
		if _, breaks := err.(*exc.Unsupported); breaks {
			err = why
		}
		return false, err
	}
	if question == "" {
		return truth, nil
	}
	return truth, o.notRefuted(m, question, expected)
}

// question names a branch whose answer is predicted, or is empty if the answer is always the same. Distributions check
// that all values are valid; first is set for them, since the first prediction is that they are. One function checks
// for all distributions, so the callers are part of the question.
func (tx *InstructionTranslator) question(inst *bytecode.Instruction) (question string, first bool) {
	s := tx.out.scope
	first = variables.IsDistributions(s, tx.globals)
	if first || variables.IsOptimizers(s, tx.globals) || tx.hidden {
		question = tx.placeText(inst)
	}
	for up := tx.parent; first && up != nil; up = up.parent {
		question += " in " + up.placeText(up.inst)
	}
	return question, first
}

// notRefuted guards that the answer to a question has not turned out to be wrong. m is godynamo._called.predictions.
func (o *OutputGraph) notRefuted(m py.Object, question string, answer py.Object) error {
	key, err := o.scope.CallMethod(m, "answer", o.scope.Str(question), answer)
	if err != nil {
		return err
	}
	src := guards.NewModuleAttrSource(guards.NewConstSource(o.Const(m), "___predictions"), "refuted")
	o.AddGuards(guards.DictContains(src, o.Const(key), false))
	return nil
}

// placeText names an instruction of the frame.
func (tx *InstructionTranslator) placeText(inst *bytecode.Instruction) string {
	return fmt.Sprintf("%s %s:%d at %d", tx.d.code.Filename, tx.d.code.QualName, tx.d.code.FirstLine, tx.d.index[inst])
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
// tensor given to bool(), or of the comparison of two operands of min() or max(), one of them a tensor. It returns
// nil for other calls, and if nothing can be predicted. If the prediction is wrong, CPython makes the call.
func (tx *InstructionTranslator) predictedCall(inst *bytecode.Instruction) (variables.VariableTracker, error) {
	n := inst.Arg
	if n != 1 && n != 2 || !tx.leavesForValues(variables.MayPredict) && (n != 1 || !tx.asserts()) {
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

// mayPredict reports whether a branch on v is in code whose branches are predicted, and may be an operation of the
// graph: v is a number computed at run time, or a tensor with one element.
func (tx *InstructionTranslator) mayPredict(v variables.VariableTracker) bool {
	if !tx.leavesForValues(variables.MayPredict) && !tx.leavesForValues(variables.IsDistributions) {
		return false
	}
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
	o := tx.out
	return o.backend.Inline() && o.bodies == 0 && o.tentative == 0 && !o.opts.Exporting &&
		runs(o.scope, tx.globals)
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
