package translate

import (
	"cmp"
	"fmt"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// torch's optimizers branch on values of their state: RAdam corrects the variance from the sixth step on, ASGD averages
// from a certain step on. Such a branch goes the same way in nearly all steps. So the graph predicts which way, and an
// operation checks it (godynamo._called.predictions). If the prediction is wrong, the frames go on in CPython at the
// branch, and the next call is translated again.

// predicted returns which way a branch on v goes in the graph. why is the graph break without a prediction; it is
// returned where none can be made.
func (tx *InstructionTranslator) predicted(inst *bytecode.Instruction, v variables.VariableTracker,
	why error) (bool, error) {
	u, ok := why.(*exc.Unsupported)
	o := tx.out
	if !ok || !u.DataDependent || !tx.mayPredict(v) {
		return false, why
	}
	s := o.scope
	m, err := s.Import("godynamo._called.predictions")
	if err != nil {
		return false, err
	}
	question := fmt.Sprintf("%s %s:%d at %d", tx.d.code.Filename, tx.d.code.QualName, tx.d.code.FirstLine,
		tx.d.index[inst])
	expected, err := s.CallMethod(m, "expected", s.Str(question))
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
		variables.Leaving{Result: variables.BoolConst(!truth), Place: variables.AtBranch, Why: "branch"})
	if err != nil {
		if _, breaks := err.(*exc.Unsupported); breaks {
			err = why
		}
		return false, err
	}
	key, err := s.CallMethod(m, "answer", s.Str(question), expected)
	if err != nil {
		return false, err
	}
	src := guards.NewModuleAttrSource(guards.NewConstSource(o.Const(m), "___predictions"), "refuted")
	o.AddGuards(guards.DictContains(src, o.Const(key), false))
	return truth, nil
}

// settled returns v, the result of an operator. If it is a power of floats, which is a complex if the base is negative,
// an operation checks that it is a float. If it is not, the frames go on in CPython after the operator.
func (tx *InstructionTranslator) settled(v variables.VariableTracker) (variables.VariableTracker, error) {
	x, ok := v.(*variables.ComputedVariable)
	if !ok || !x.Mixed() || !tx.leavesForValues() || tx.out.WholeGraph() {
		return v, nil
	}
	m, err := tx.out.scope.Import("godynamo._called.predictions")
	if err != nil {
		return nil, err
	}
	check, err := tx.out.scope.GetAttr(m, "as_float")
	if err != nil {
		return nil, err
	}
	_, err = tx.out.CallLeaving(tx, check, variables.AsFloat, []variables.VariableTracker{x},
		variables.Leaving{Result: x, Place: variables.AfterOperator, Why: "power"})
	if err != nil {
		return nil, err
	}
	x.BecomeFloat(tx)
	return x, nil
}

// mayPredict reports whether a branch on v is in an optimizer's code and may be an operation of the graph: v is a
// number computed at run time, or a tensor with one element.
func (tx *InstructionTranslator) mayPredict(v variables.VariableTracker) bool {
	if !tx.leavesForValues() {
		return false
	}
	switch x := variables.MustRealize(tx, v).(type) {
	case *variables.ComputedVariable:
		return variables.IsComputedPlain(tx, x) && !variables.IsPassed(x) && x.Node == nil
	case *variables.TensorVariable:
		return x.Class.IsNull() && tx.hasOneElement(x)
	}
	return false
}

// leavesForValues reports whether the frame runs an optimizer's code, and may go on in CPython where a value is not as
// the graph expects.
func (tx *InstructionTranslator) leavesForValues() bool {
	o := tx.out
	return o.backend.Inline() && o.bodies == 0 && o.tentative == 0 && !o.opts.Exporting &&
		variables.IsOptimizers(o.scope, tx.globals)
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
