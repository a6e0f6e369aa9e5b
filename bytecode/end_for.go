package bytecode

import "github.com/godynamo/godynamo/bytecode/opcode"

// endLoops returns the list with end, a version's LoopEnd, before each target of a FOR_ITER that has none. CPython
// skips these instructions when the loop ends. Code that falls into the target from above jumps over them. The list
// must be numbered; if nothing is missing, it is returned as it is.
func endLoops(list []*Instruction, end []opcode.Op) []*Instruction {
	missing := map[*Instruction]bool{}
	for _, inst := range list {
		if inst.Op == opcode.FOR_ITER && !followsLoopEnd(list, inst.Target, end) {
			missing[inst.Target] = true
		}
	}
	if len(missing) == 0 {
		return list
	}
	out := make([]*Instruction, 0, len(list)+(1+len(end))*len(missing))
	for i, inst := range list {
		if missing[inst] {
			var region *ExceptionRegion
			if i > 0 && list[i-1].Handler == inst.Handler {
				region = inst.Handler // the row of the exception table stays whole
			}
			if i > 0 && !EndsFlow(list[i-1].Op) {
				over := NewJump(opcode.JUMP, inst).At(inst.Pos)
				over.Handler = region
				out = append(out, over)
			}
			for _, op := range end {
				last := New(op, 0).At(inst.Pos)
				last.Handler = region
				out = append(out, last)
			}
		}
		out = append(out, inst)
	}
	number(out)
	return out
}

// followsLoopEnd reports whether the instructions before target are end.
func followsLoopEnd(list []*Instruction, target *Instruction, end []opcode.Op) bool {
	first := int(target.index) - len(end)
	if first < 0 {
		return false
	}
	for i, op := range end {
		if list[first+i].Op != op {
			return false
		}
	}
	return true
}
