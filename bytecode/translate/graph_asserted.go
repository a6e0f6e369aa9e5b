package translate

import (
	"cmp"

	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// A whole graph runs as one call, so frames cannot go on in CPython in the middle of it. Where a branch only raises on
// one side, or torch's distributions check that a value is valid, the graph has an operation that raises if the
// condition does not hold. Then the user's code runs again from the start of the piece (the code between two graph
// breaks), and raises its own error.

// asserts reports whether conditions may be operations of a whole graph.
func (tx *InstructionTranslator) asserts() bool {
	o := tx.out
	return !o.backend.Inline() && o.bodies == 0 && o.tentative == 0 && !o.opts.Exporting && !o.opts.PythonOps &&
		!o.log.unprotected
}

// assertsValid reports whether the frame runs code of torch.distributions whose checks may be operations of a whole
// graph.
func (tx *InstructionTranslator) assertsValid() bool {
	return tx.asserts() && variables.IsDistributions(tx.out.scope, tx.globals)
}

// asserted returns the truth of v if an operation of the graph checks it, or why if there can be none. A backend that
// traces with AOTAutograd gets torch._assert_async, since traced tensors have no values. That does not note wrong
// answers to a question, and ends the process's use of a GPU, so it is for tensors of the CPU without a question.
func (tx *InstructionTranslator) asserted(v variables.VariableTracker, question string, truth bool,
	why error) (bool, error) {
	t, ok := variables.MustRealize(tx, v).(*variables.TensorVariable)
	if !ok || !tx.asserts() || !t.Class.IsNull() || !tx.hasOneElement(t) {
		return false, why
	}
	name := "must_hold"
	if tx.out.TakesApart() {
		name = "must_hold_traced"
		cpu, err := variables.GetAttr(tx, t, "is_cpu")
		if err != nil {
			return false, err
		}
		if is, _ := variables.AsConstant(tx, cpu); is != py.True() || question != "" {
			return false, why
		}
	} else if !tx.out.RunsUnchanged() { // torch.jit.trace and the like lose the operation
		return false, why
	}
	return tx.mustHold(name, []variables.VariableTracker{t, variables.BoolConst(truth)}, truth, question, why)
}

// mustHold adds a call of a function of godynamo._called.predictions that raises if the answer to a question is another
// one, and returns the answer. It returns why if there can be no such operation.
func (tx *InstructionTranslator) mustHold(name string, args []variables.VariableTracker, answer bool, question string,
	why error) (bool, error) {
	o, s := tx.out, tx.out.scope
	if active, err := o.hooked(); err != nil || active {
		return false, cmp.Or(err, why)
	}
	m, err := s.Import("godynamo._called.predictions")
	if err != nil {
		return false, err
	}
	if expected, err := o.expected(question, answer, why); err != nil || expected != answer {
		return false, cmp.Or(err, why)
	}
	check, err := s.GetAttr(m, name)
	if err != nil {
		return false, err
	}
	args = append(args, variables.NewConstant(s.Str(question), nil))
	if _, err := o.CallFunction(tx, check, "godynamo."+name, args, nil); err != nil {
		return false, err
	}
	o.hasProtected = true
	if question == "" {
		return answer, nil
	}
	return answer, o.notRefuted(m, question, answer)
}
