package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/variables"
)

// superCalled and superMethod are the flags in the argument of LOAD_SUPER_ATTR. The index of the name is above them.
const (
	superMethod = 1 // pushes NULL below the attribute, as LOAD_METHOD does
	superCalled = 2 // the call had arguments
	superFlags  = 2 // number of bits
)

// loadSuperAttr implements LOAD_SUPER_ATTR. The compiler has loaded the arguments of `super()` even if the program
// writes none; a program's own `super` is called as written.
//
//	stack: super class self -- [NULL] value      arg: name index shifted left by two; bits 0 and 1: flags
//	breaks: GD0208, and the codes of the call
func (tx *InstructionTranslator) loadSuperAttr(inst *bytecode.Instruction) error {
	args := tx.popn(2)
	fn := tx.pop()
	if inst.Arg&superCalled == 0 && !tx.isSuper([]variables.VariableTracker{fn}) {
		args = nil
	}
	super, err := variables.Call(tx, fn, args, nil)
	if err != nil {
		return notBranch(err)
	}
	v, err := variables.GetAttr(tx, super, tx.d.code.Names[inst.Arg>>superFlags])
	if err != nil {
		return err
	}
	if inst.Arg&superMethod != 0 {
		tx.pushCallee(v)
	} else {
		tx.push(v)
	}
	return nil
}

// emitSuperAttr writes LOAD_SUPER_ATTR, whose operands are on the stack, without a NULL. `super()` gets its arguments,
// since it would look at the frame that calls it.
func (tx *InstructionTranslator) emitSuperAttr(c *Codegen, inst *bytecode.Instruction,
	operands []variables.VariableTracker) {
	flags := inst.Arg & superCalled
	if tx.isSuper(operands) {
		flags = superCalled
	}
	c.emit(opcode.LOAD_SUPER_ATTR, c.name(tx.d.code.Names[inst.Arg>>superFlags])<<superFlags|flags)
}
