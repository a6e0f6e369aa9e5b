package translate

import (
	"cmp"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/variables"
)

// A whole graph runs as one call, so frames cannot go on in CPython in the middle of it. Where torch's distributions
// check that a value is valid, the graph has an operation that raises if it is not. Then the user's code runs again
// from the start of the piece (the code between two graph breaks), and raises the distribution's own error.

// asserts reports whether the frame runs code of torch.distributions whose checks may be operations of a whole graph.
func (tx *InstructionTranslator) asserts() bool {
	o := tx.out
	return !o.backend.Inline() && o.bodies == 0 && o.tentative == 0 && !o.opts.Exporting && !o.opts.PythonOps &&
		!o.log.unprotected && variables.IsDistributions(o.scope, tx.globals)
}

// asserted returns true if an operation of the graph checks that v is true, or why if there can be none. A backend that
// traces with AOTAutograd cannot run such an operation: traced tensors have no values.
func (tx *InstructionTranslator) asserted(inst *bytecode.Instruction, v variables.VariableTracker,
	why error) (bool, error) {
	o := tx.out
	t, ok := variables.MustRealize(tx, v).(*variables.TensorVariable)
	if !ok || !tx.asserts() || !t.Class.IsNull() || !tx.hasOneElement(t) {
		return false, why
	}
	if active, err := o.hooked(); err != nil || active || o.TakesApart() {
		return false, cmp.Or(err, why)
	}
	s := o.scope
	m, err := s.Import("godynamo._called.predictions")
	if err != nil {
		return false, err
	}
	question, _ := tx.question(inst)
	if valid, err := o.expected(question, true, why); err != nil || !valid {
		return false, cmp.Or(err, why)
	}
	check, err := s.GetAttr(m, "must_hold")
	if err != nil {
		return false, err
	}
	args := []variables.VariableTracker{t, variables.NewConstant(s.Str(question), nil)}
	if _, err := o.CallFunction(tx, check, "godynamo.must_hold", args, nil); err != nil {
		return false, err
	}
	o.hasProtected = true
	return true, o.notRefuted(m, question, true)
}
