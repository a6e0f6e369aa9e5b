package bytecode

import "github.com/godynamo/godynamo/bytecode/opcode"

// runsFrames has the opcodes that may run a Python function in the same eval loop.
var runsFrames = map[opcode.Op]bool{opcode.CALL: true, opcode.CALL_FUNCTION_EX: true, opcode.BINARY_SUBSCR: true,
	opcode.LOAD_ATTR: true, opcode.LOAD_METHOD: true, opcode.LOAD_SUPER_ATTR: true,
	opcode.FOR_ITER: true, opcode.SEND: true, opcode.SEND_KEEP: true}

// HandlersBefore returns a list for versions with Table.HandlerBefore, in which the code unit before an instruction
// that may run a Python function has the instruction's handler. Where it has not, a NOP is inserted.
func HandlersBefore(list []*Instruction) []*Instruction {
	out := make([]*Instruction, 0, len(list))
	for i, inst := range list {
		if i > 0 && runsFrames[inst.Op] && list[i-1].Handler != inst.Handler {
			if last := list[i-1]; last.Op == opcode.KW_NAMES { // belongs to the call, and is written as a load
				last.Handler = inst.Handler
			} else {
				nop := New(opcode.NOP, 0).At(inst.Pos)
				nop.Handler = inst.Handler
				out = append(out, nop)
			}
		}
		out = append(out, inst)
	}
	return out
}
