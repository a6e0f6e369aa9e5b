package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// handledMark represents what PUSH_EXC_INFO leaves on the stack: the exception that was handled before. It records
// the exception that is handled from then on, so that a resume function can handle that exception again.
type handledMark struct {
	variables.Base
	exception variables.VariableTracker
}

// Kind implements variables.VariableTracker.
func (*handledMark) Kind() string { return "HandledException" }

// lastiMark represents the offset of the raising instruction, which a handler's RERAISE restores. The offset only
// affects the line that trace functions see. In a resume function it is lost (leaveOffsets).
type lastiMark struct{ variables.Base }

// Kind implements variables.VariableTracker.
func (*lastiMark) Kind() string { return "Lasti" }

// handledNow returns the exception that tx or, if it handles none, the nearest caller is handling. It returns nil if
// no captured frame handles one. The caller of the outermost frame may still be handling one.
func (tx *InstructionTranslator) handledNow() variables.VariableTracker {
	for t := tx; t != nil; t = t.parent {
		if n := len(t.handled); n > 0 {
			return t.handled[n-1]
		}
	}
	return nil
}

// unwind passes an exception to the handler of the current instruction, as CPython's exception table specifies.
func (tx *InstructionTranslator) unwind(o *exc.Observed, region *bytecode.ExceptionRegion) error {
	e, err := variables.ExceptionOf(tx, o)
	if err != nil {
		return err
	}
	if !o.Again {
		variables.MarkRaised(e, tx.out.rootStep, tx.handledNow())
	}
	tx.stack = tx.stack[:region.Depth]
	if region.Lasti {
		tx.push(&lastiMark{})
	}
	tx.push(e)
	tx.kwargs = nil
	tx.jump(region.Target)
	return nil
}

// pushExcInfo implements PUSH_EXC_INFO.
//
//	stack: exc -- previous exc
func (tx *InstructionTranslator) pushExcInfo(*bytecode.Instruction) error {
	e, err := variables.Realize(tx, tx.pop())
	if err != nil {
		return err
	}
	tx.handled = append(tx.handled, e)
	tx.push(&handledMark{exception: e})
	tx.push(e)
	return nil
}

// popExcept implements POP_EXCEPT.
//
//	stack: previous --
func (tx *InstructionTranslator) popExcept(*bytecode.Instruction) error {
	tx.pop()
	if n := len(tx.handled); n > 0 {
		tx.handled = tx.handled[:n-1]
		return nil
	}
	return &exc.SkipFrame{Reason: "a handler without its exception"}
}

// checkExcMatch implements CHECK_EXC_MATCH.
//
//	stack: exc type -- exc bool
//	breaks: GD0201
func (tx *InstructionTranslator) checkExcMatch(*bytecode.Instruction) error {
	want, err := variables.Realize(tx, tx.pop())
	if err != nil {
		return err
	}
	e, err := variables.Realize(tx, tx.top(1))
	if err != nil {
		return err
	}
	class, err := variables.PythonType(tx, e)
	if err != nil {
		return err
	}
	matches, err := tx.handledBy(want)
	if err != nil {
		return err
	}
	tx.push(variables.BoolConst(matches(class)))
	return nil
}

// reraise implements RERAISE.
//
//	stack: exc --      arg: how far below the exception the offset to restore is; 0 for none
//	breaks: GD0401
func (tx *InstructionTranslator) reraise(inst *bytecode.Instruction) error {
	e, err := variables.Realize(tx, tx.top(1))
	if err != nil {
		return err
	}
	o, ok := e.(*variables.ObjectVariable)
	if !ok {
		return exc.Break(exc.ProgramRaises, "%s", variables.Describe(tx, e))
	}
	r := variables.Raise(o)
	r.Again = true
	return r
}

// raiseVarargs implements RAISE_VARARGS. An exception that has no handler in the captured frames is raised by
// CPython.
//
//	stack: [exc [cause]] --      arg: number of operands; 0 raises the handled exception again
//	breaks: GD0401
func (tx *InstructionTranslator) raiseVarargs(inst *bytecode.Instruction) error {
	if inst.Arg == 0 {
		h := tx.handledNow()
		if h == nil {
			return exc.Break(exc.ProgramRaises, "raise without a known exception")
		}
		h, err := variables.Realize(tx, h)
		if err != nil {
			return err
		}
		o, ok := h.(*variables.ObjectVariable)
		if !ok {
			return exc.Break(exc.ProgramRaises, "raise without a known exception")
		}
		r := variables.Raise(o)
		r.Again = true
		return r
	}
	var cause variables.VariableTracker
	var err error
	n := len(tx.stack)
	operands := tx.stack[n-inst.Arg : n : n]
	if inst.Arg == 2 {
		if cause, err = tx.exceptionInstance(operands[1],
			"exception causes must derive from BaseException"); err != nil {
			return err
		}
	}
	v, err := tx.exceptionInstance(operands[0], "exceptions must derive from BaseException")
	if err != nil {
		return err
	}
	e, ok := v.(*variables.ObjectVariable)
	if !ok {
		return variables.RaiseText(tx, "TypeError", "exceptions must derive from BaseException")
	}
	if variables.Materialized(e) || variables.RaisedAt(e) != 0 { // CPython adds this line to e's traceback
		return tx.raiseForReal(e)
	}
	if cause != nil {
		variables.SetCause(e, cause)
	}
	return variables.Raise(e)
}

// raiseForReal returns a graph break for an exception that has been raised or materialized before, so that CPython
// raises it.
func (tx *InstructionTranslator) raiseForReal(e variables.VariableTracker) error {
	if step := variables.RaisedAt(e); step != 0 {
		return tx.out.breakAt(step, exc.Break(exc.ProgramRaises, "%s, which the program keeps",
			variables.Describe(tx, e)))
	}
	return exc.Break(exc.ProgramRaises, "%s", variables.Describe(tx, e))
}

// exceptionInstance returns the exception that `raise v` raises. If v is a class, this is an instance made without
// arguments.
func (tx *InstructionTranslator) exceptionInstance(v variables.VariableTracker,
	wrong string) (variables.VariableTracker, error) {
	v, err := variables.Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if c, ok := variables.ExceptionClassOf(tx, v); ok {
		return variables.Call(tx, variables.NewClass(c, nil), nil, nil)
	}
	if variables.IsException(tx, v) {
		return v, nil
	}
	if c, ok := variables.AsConstant(tx, v); ok {
		if c == py.None() {
			return v, nil
		}
		return nil, variables.RaiseText(tx, "TypeError", wrong)
	}
	return nil, exc.Break(exc.ProgramRaises, "%s", variables.Describe(tx, v))
}

// beforeWith implements BEFORE_WITH.
//
//	stack: manager -- exit [NULL] value      arg: 1 if there is a NULL, as in 3.14, whose `exit` may need a self there
//	breaks: GD0201, and the codes of __enter__
func (tx *InstructionTranslator) beforeWith(inst *bytecode.Instruction) error {
	m, err := variables.Realize(tx, tx.pop())
	if err != nil {
		return err
	}
	enter, exit, err := variables.ContextMethods(tx, m)
	if err != nil {
		return err
	}
	entered := tx.out.entering(m)
	r, err := variables.Call(tx, enter, nil, nil)
	if err != nil {
		return notBranch(err)
	}
	if err := entered(); err != nil {
		return err
	}
	tx.push(exit)
	if inst.Arg == 1 {
		tx.push(nil)
	}
	tx.push(r)
	return nil
}

// withExceptStart implements WITH_EXCEPT_START.
//
//	stack: exit lasti previous exc -- exit lasti previous exc result
//	stack: exit NULL lasti previous exc -- exit NULL lasti previous exc result      arg: 1
//	breaks: GD0201, and the codes of __exit__
func (tx *InstructionTranslator) withExceptStart(inst *bytecode.Instruction) error {
	e, err := variables.Realize(tx, tx.top(1))
	if err != nil {
		return err
	}
	args, err := variables.ExitArguments(tx, e)
	if err != nil {
		return err
	}
	exit, self := tx.exitBelow(inst, 4)
	if self != nil {
		args = append([]variables.VariableTracker{self}, args...)
	}
	r, err := variables.Call(tx, exit, args, nil)
	if err != nil {
		return notBranch(err)
	}
	tx.push(r)
	return nil
}

// exitBelow returns the `__exit__` that a WITH_EXCEPT_START calls, and its self if that is beside it, or nil. depth: the
// depth of what is below the saved offset.
func (tx *InstructionTranslator) exitBelow(inst *bytecode.Instruction,
	depth int) (exit, self variables.VariableTracker) {
	if inst.Arg == 1 {
		return tx.top(depth + 1), tx.top(depth)
	}
	return tx.top(depth), nil
}
