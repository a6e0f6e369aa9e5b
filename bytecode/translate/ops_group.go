package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// handlerClasses returns the items of an `except` clause's operand if that is a tuple. Otherwise it returns the
// operand, a class.
func (tx *InstructionTranslator) handlerClasses(want variables.VariableTracker) ([]variables.VariableTracker, error) {
	named := []variables.VariableTracker{want}
	if s, ok := want.(variables.Sequence); ok {
		if t, err := variables.PythonType(tx, want); err == nil && t == tx.World().TupleType {
			if named, err = s.Items(tx); err != nil {
				return nil, err
			}
		}
	}
	var err error
	for i, c := range named {
		if named[i], err = variables.Realize(tx, c); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// handledBy returns a function that reports whether an `except` clause catches exceptions of a class. If the operand
// of the clause is not an exception class, it returns CPython's TypeError.
func (tx *InstructionTranslator) handledBy(want variables.VariableTracker) (func(class py.Object) bool, error) {
	matches, err := variables.ExceptionClasses(tx, want)
	if matches != nil || err != nil {
		return matches, err
	}
	named, err := tx.handlerClasses(want)
	if err != nil {
		return nil, err
	}
	for _, c := range named {
		if _, ok := variables.ExceptionClassOf(tx, c); ok {
			continue
		}
		if _, known := variables.AsConstant(tx, c); !known {
			break
		}
		return nil, variables.RaiseText(tx, "TypeError",
			"catching classes that do not inherit from BaseException is not allowed")
	}
	return nil, exc.Break(exc.CallUnsupported, "except %s", variables.Describe(tx, want))
}

// checkEgMatch implements CHECK_EG_MATCH. From then on, the handled exception is the part of the group that the
// `except*` clause catches.
//
//	stack: exc classes -- rest match
//	stack: exc classes -- exc None      the clause catches nothing
//	breaks: GD0201
func (tx *InstructionTranslator) checkEgMatch(*bytecode.Instruction) error {
	want, err := variables.Realize(tx, tx.pop())
	if err != nil {
		return err
	}
	matches, err := tx.handledBy(want)
	if err != nil {
		return err
	}
	named, err := tx.handlerClasses(want)
	if err != nil {
		return err
	}
	for _, c := range named {
		if k, ok := variables.ExceptionClassOf(tx, c); ok && py.IsSubtype(k, tx.World().Builtin("BaseExceptionGroup")) {
			return variables.RaiseText(tx, "TypeError",
				"catching ExceptionGroup with except* is not allowed. Use except instead.")
		}
	}
	match, rest, err := variables.MatchGroup(tx, tx.top(1), matches)
	if err != nil {
		return err
	}
	if match == nil {
		tx.push(variables.NoneConst())
		return nil
	}
	tx.pop()
	if rest == nil {
		rest = variables.NoneConst()
	}
	tx.push(rest)
	tx.push(match)
	tx.nowHandling(match)
	return nil
}

// nowHandling replaces the exception that the innermost handler is handling, as an `except*` clause does.
func (tx *InstructionTranslator) nowHandling(e variables.VariableTracker) {
	if n := len(tx.handled); n > 0 {
		tx.handled[n-1] = e
	}
	for i := len(tx.stack) - 1; i >= 0; i-- {
		if _, ok := tx.stack[i].(*handledMark); ok {
			tx.stack[i] = &handledMark{exception: e}
			return
		}
	}
}

// prepReraiseStar implements PREP_RERAISE_STAR.
//
//	stack: caught left -- exception-or-None      left: what the clauses raised or did not catch
//	breaks: GD0401
func (tx *InstructionTranslator) prepReraiseStar(*bytecode.Instruction) error {
	left, err := variables.Unpack(tx, tx.pop())
	if err != nil {
		return err
	}
	e, err := variables.ReraiseGroup(tx, tx.pop(), left)
	if err != nil {
		return err
	}
	if e == nil {
		e = variables.NoneConst()
	}
	tx.push(e)
	return nil
}

// handledSince writes code that runs after a native CHECK_EG_MATCH and reads the exception that is then being handled.
// It puts that exception into `below`, the stack of the resume function.
func (tx *InstructionTranslator) handledSince(c *Codegen, below []item) error {
	sys, err := tx.Scope().Import("sys")
	if err != nil {
		return err
	}
	current, err := tx.Scope().GetAttr(sys, "exception")
	if err != nil {
		return err
	}
	for i := len(below) - 1; i >= 0; i-- {
		if below[i].kind() == 'X' {
			t := c.newTemp()
			c.PushNull()
			c.LoadConst(current)
			c.Call(0, nil)
			c.emit(opcode.STORE_FAST, spaceTemp|t)
			below[i] = item{result: t, marked: true}
			return nil
		}
	}
	return &exc.SkipFrame{Reason: "except* without an exception"}
}
