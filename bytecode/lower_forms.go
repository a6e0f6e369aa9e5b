package bytecode

import "github.com/godynamo/godynamo/bytecode/opcode"

// unit is an instruction that only the written code has. It is before or after an instruction of the dialect.
type unit struct {
	opcode   uint8 // CPython's number
	caches   uint8
	extended uint8
	arg      int32
}

// size returns the number of code units that the instruction takes.
func (u unit) size() int32 { return int32(u.extended) + 1 + int32(u.caches) }

// form is what a version writes for one instruction of the dialect.
type form struct {
	op            opcode.Op
	arg           int
	before, after []unit
}

// unit returns an instruction of the version.
func (w *lowering) unit(op opcode.Op, arg int) unit {
	number := w.table.Encodings[op].Forward
	return unit{uint8(number), w.table.Forms[number].Caches, extendedFor(int32(arg)), int32(arg)}
}

// form returns what the version writes for instruction i. Most instructions are written as they are.
func (w *lowering) form(i int, inst *Instruction) form {
	f := form{op: inst.Op, arg: inst.Arg}
	has := func(op opcode.Op) bool { return w.table.Encodings[op].Known }
	switch inst.Op {
	case opcode.CALL:
		switch {
		case has(opcode.PRECALL):
			f.before = []unit{w.unit(opcode.PRECALL, inst.Arg)}
		case !has(opcode.KW_NAMES) && i > 0 && w.code.Instructions[i-1].Op == opcode.KW_NAMES:
			f.op = opcode.CALL_KW
		}
	case opcode.KW_NAMES:
		if !has(opcode.KW_NAMES) {
			f.op = opcode.LOAD_CONST
			w.needs(i, 1)
		}
	case opcode.FORMAT_VALUE:
		if !has(opcode.FORMAT_VALUE) {
			w.formatValue(&f)
		}
	case opcode.BINARY_SUBSCR:
		if w.table.Subscript >= 0 {
			f.op, f.arg = opcode.BINARY_OP, w.table.Subscript
		}
	case opcode.BEFORE_WITH:
		if !has(opcode.BEFORE_WITH) && inst.Arg == 1 {
			for _, row := range enterWith[:len(enterWith)-1] {
				f.before = append(f.before, w.unit(row.op, row.arg))
			}
			f.op, f.arg = opcode.CALL, 0
			w.needs(i, 3)
		}
	case opcode.WITH_EXCEPT_START:
		if has(opcode.LOAD_SPECIAL) && inst.Arg == 1 {
			f.arg = 0
		}
	case opcode.CALL_FUNCTION_EX:
		if w.callsWithoutKeywords(i) {
			if !w.followsGlobal(i) {
				f.before = []unit{w.unit(opcode.PUSH_NULL, 0)}
			}
			w.needs(i, 1)
		}
		if !w.table.FlagsKeywords() {
			f.arg = 0
		}
	case opcode.LOAD_GLOBAL:
		if i+1 < len(w.code.Instructions) && w.callsWithoutKeywords(i+1) && w.followsGlobal(i+1) {
			f.arg |= 1
		}
	case opcode.MAKE_FUNCTION:
		if has(opcode.SET_FUNCTION_ATTRIBUTE) {
			// The code is the top of the stack, and the attribute with the largest flag is below it.
			for flag := 8; flag > 0; flag >>= 1 {
				if inst.Arg&flag != 0 {
					f.after = append(f.after, w.unit(opcode.SET_FUNCTION_ATTRIBUTE, flag))
				}
			}
			f.arg = 0
		}
	case opcode.POP_JUMP_IF_FALSE, opcode.POP_JUMP_IF_TRUE, opcode.UNARY_NOT:
		if w.table.Truth() && !w.follows(i) {
			f.before = []unit{w.unit(opcode.TO_BOOL, 0)}
		}
	}
	return f
}

// callsWithoutKeywords reports whether instruction i is a CALL_FUNCTION_EX that needs a NULL for missing keywords.
func (w *lowering) callsWithoutKeywords(i int) bool {
	inst := w.code.Instructions[i]
	return inst.Op == opcode.CALL_FUNCTION_EX && inst.Arg&1 == 0 && !w.table.FlagsKeywords()
}

// followsGlobal reports whether the LOAD_GLOBAL before instruction i pushes the NULL that i needs, as in decoded code.
func (w *lowering) followsGlobal(i int) bool {
	return w.follows(i) && w.code.Instructions[i-1].Op == opcode.LOAD_GLOBAL && !pushesNull(w.code.Instructions[i-1])
}

// formatValue sets the form of a FORMAT_VALUE for a version that has an opcode for each of its parts. A format
// specification is on the stack above the value to convert.
func (w *lowering) formatValue(f *form) {
	conversion, spec := f.arg&3, f.arg&4 != 0
	f.op, f.arg = opcode.FORMAT_SIMPLE, 0
	if spec {
		f.op = opcode.FORMAT_WITH_SPEC
	}
	if conversion == 0 {
		return
	}
	f.before = []unit{w.unit(opcode.CONVERT_VALUE, conversion)}
	if spec {
		f.before = []unit{w.unit(opcode.SWAP, 2), f.before[0], w.unit(opcode.SWAP, 2)}
	}
}

// needs makes the stack large enough for values that the written form of instruction i pushes above those before it.
func (w *lowering) needs(i, values int) { w.least = max(w.least, int(w.flow.depths[i])+values) }

// follows reports whether instruction i is reached only from the instruction before it, and both were decoded from one
// code in this order. Then CPython's compiler has made sure that the value on the stack is a bool, if i needs one.
func (w *lowering) follows(i int) bool {
	inst := w.code.Instructions[i]
	return i > 0 && inst.order > 0 && w.code.Instructions[i-1].order == inst.order-1 && !w.targets[inst]
}

// joins returns the number of the opcode that does instruction i and the next one, or -1. It does so only where the
// decoded code did: CPython's compiler does not join all pairs.
func (w *lowering) joins(i int) int {
	inst := w.code.Instructions[i]
	if !inst.joined || i+1 == len(w.code.Instructions) || !w.follows(i+1) {
		return -1
	}
	next := w.code.Instructions[i+1]
	if inst.Handler != next.Handler || inst.Arg > maxJoined || next.Arg > maxJoined {
		return -1
	}
	borrowed := w.borrows(i)
	if borrowed != w.borrows(i+1) {
		return -1
	}
	return w.table.Joined(plainLoad(inst.Op), plainLoad(next.Op), borrowed)
}

// borrows reports whether instruction i may load a variable without taking a reference, as it did in the decoded code.
// CPython's compiler has made sure that the variable holds its object until the value is used, within the basic block.
func (w *lowering) borrows(i int) bool { return w.code.Instructions[i].borrowed && w.intact[i] }

// intactBlocks returns, for each instruction, whether it and the rest of its basic block are as in the decoded code.
func (w *lowering) intactBlocks() []bool {
	list := w.code.Instructions
	intact := make([]bool, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		last := list[i].IsJump() || EndsFlow(list[i].Op) || w.targets[list[i+1]]
		intact[i] = list[i].order > 0 && (last || w.follows(i+1) && intact[i+1])
	}
	return intact
}

// maxJoined is the largest slot that an opcode for two instructions can name.
const maxJoined = 15

// plainLoad returns the opcode that loads the same slot in a version without LOAD_CLOSURE.
func plainLoad(op opcode.Op) opcode.Op {
	if op == opcode.LOAD_CLOSURE {
		return opcode.LOAD_FAST
	}
	return op
}

// targetsOf returns the instructions at which jumps and handlers point.
func targetsOf(list []*Instruction) map[*Instruction]bool {
	targets := map[*Instruction]bool{}
	for _, inst := range list {
		if inst.Target != nil {
			targets[inst.Target] = true
		}
		if inst.Handler != nil {
			targets[inst.Handler.Target] = true
		}
	}
	return targets
}
