package bytecode

import "github.com/godynamo/godynamo/bytecode/opcode"

// unify makes the list of instructions. It replaces what later versions write for a thing of the dialect: 3.13's calls
// with names and formats, 3.14's `with` and calls without keywords.
func (d *decoder) unify() {
	targets := d.targets()
	list := make([]*Instruction, 0, len(d.block))
	for i := 0; i < len(d.block); {
		inst := &d.block[i] // jumps may point at it, and at none of those that it replaces
		n := d.entersWith(i, targets)
		switch {
		case n > 0:
			inst.Op, inst.Arg = opcode.BEFORE_WITH, 1
		case d.callsWithoutKeywords(i, targets):
			n = 2
			inst.Op, inst.Arg = opcode.CALL_FUNCTION_EX, 0
		default:
			n = 1
			d.unifyOne(i, targets)
		}
		inst.Offset = d.block[i+n-1].Offset
		inst.index, inst.order = int32(len(list)), int32(len(list)+1)
		list = append(list, inst)
		i += n
	}
	if d.table.Truth() {
		coverTests(list)
	}
	d.code.Instructions = list
}

// coverTests gives branches the handler of the instruction before where they have none. From 3.13 on, that instruction
// makes the bool. CPython's compiler leaves a branch that it turns around without a handler, since it cannot raise. In
// the dialect the branch tests the value itself.
func coverTests(list []*Instruction) {
	for i := 1; i < len(list); i++ {
		inst := list[i]
		tests := inst.Op == opcode.POP_JUMP_IF_FALSE || inst.Op == opcode.POP_JUMP_IF_TRUE
		if tests && inst.Handler == nil && list[i-1].Handler != nil {
			inst.Handler, inst.bare = list[i-1].Handler, true
		}
	}
}

// unifyOne replaces the form of instruction i, or of the one before it.
func (d *decoder) unifyOne(i int, targets map[*Instruction]bool) {
	switch inst := &d.block[i]; inst.Op {
	case opcode.CALL_KW:
		// The compiler loads the names right before.
		if i > 0 && d.block[i-1].Op == opcode.LOAD_CONST && d.at(inst.Offset) == inst {
			d.block[i-1].Op, inst.Op = opcode.KW_NAMES, opcode.CALL
		}
	case opcode.FORMAT_SIMPLE:
		inst.Op, inst.Arg = opcode.FORMAT_VALUE, 0
	case opcode.FORMAT_WITH_SPEC:
		inst.Op, inst.Arg = opcode.FORMAT_VALUE, 4
	case opcode.CALL_FUNCTION_EX:
		switch {
		case d.table.FlagsKeywords():
		case i > 0 && pushesNull(&d.block[i-1]) && !targets[inst]:
			d.block[i-1].Arg--
		default:
			inst.Arg = 1
		}
	case opcode.WITH_EXCEPT_START:
		if d.table.Encodings[opcode.LOAD_SPECIAL].Known {
			inst.Arg = 1
		}
	}
}

// callsWithoutKeywords reports whether instruction i pushes the NULL of a CALL_FUNCTION_EX that follows.
func (d *decoder) callsWithoutKeywords(i int, targets map[*Instruction]bool) bool {
	return d.block[i].Op == opcode.PUSH_NULL && !d.table.FlagsKeywords() && d.belongTogether(i, 2, targets) &&
		d.block[i+1].Op == opcode.CALL_FUNCTION_EX
}

// pushesNull reports whether a LOAD_GLOBAL pushes a NULL as well. CPython's compiler joins it with the PUSH_NULL behind
// it: in f(*args) of 3.14 with a global args, that is the NULL for missing keywords.
func pushesNull(inst *Instruction) bool { return inst.Op == opcode.LOAD_GLOBAL && inst.Arg&1 != 0 }

// enterWith is what 3.14 writes to enter a `with` block.
var enterWith = [...]struct {
	op  opcode.Op
	arg int
}{
	{opcode.COPY, 1}, {opcode.LOAD_SPECIAL, opcode.SPECIAL_EXIT}, {opcode.SWAP, 2}, {opcode.SWAP, 3},
	{opcode.LOAD_SPECIAL, opcode.SPECIAL_ENTER}, {opcode.CALL, 0},
}

// entersWith returns the number of instructions that enter a `with` block, if they start at i, or 0.
func (d *decoder) entersWith(i int, targets map[*Instruction]bool) int {
	if !d.belongTogether(i, len(enterWith), targets) {
		return 0
	}
	for k, want := range enterWith {
		if inst := &d.block[i+k]; inst.Op != want.op || inst.Arg != want.arg {
			return 0
		}
	}
	return len(enterWith)
}

// belongTogether reports whether n instructions from i on are at one place of the source, with one handler, and control
// enters them at the first only.
func (d *decoder) belongTogether(i, n int, targets map[*Instruction]bool) bool {
	if i+n > len(d.block) {
		return false
	}
	for k := i + 1; k < i+n; k++ {
		inst := &d.block[k]
		if inst.Pos != d.block[i].Pos || inst.Handler != d.block[i].Handler || targets[inst] {
			return false
		}
	}
	return true
}

// targets returns the instructions at which jumps and handlers point, if the version has forms of several instructions.
// The target of a jump into such a form would be lost.
func (d *decoder) targets() map[*Instruction]bool {
	if d.table.FlagsKeywords() && !d.table.Encodings[opcode.LOAD_SPECIAL].Known {
		return nil
	}
	list := make([]*Instruction, len(d.block))
	for i := range d.block {
		list[i] = &d.block[i]
	}
	return targetsOf(list)
}
