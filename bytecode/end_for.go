package bytecode

import "github.com/godynamo/godynamo/bytecode/opcode"

// endLoops returns the list with an END_FOR before each target of a FOR_ITER that has none, as 3.12 wants it. CPython
// skips the END_FOR when the loop ends. Code that falls into the target from above jumps over it. The list must be
// numbered; without a missing END_FOR it is returned as it is.
func endLoops(list []*Instruction) []*Instruction {
	missing := map[*Instruction]bool{}
	for _, inst := range list {
		if inst.Op == opcode.FOR_ITER && !followsEndFor(list, inst.Target) {
			missing[inst.Target] = true
		}
	}
	if len(missing) == 0 {
		return list
	}
	out := make([]*Instruction, 0, len(list)+2*len(missing))
	for i, inst := range list {
		if missing[inst] {
			var region *ExceptionRegion
			if i > 0 && list[i-1].Handler == inst.Handler {
				region = inst.Handler // the row of the exception table stays whole
			}
			if i > 0 && !endsFlow(list[i-1].Op) {
				over := NewJump(opcode.JUMP, inst).At(inst.Pos)
				over.Handler = region
				out = append(out, over)
			}
			end := New(opcode.END_FOR, 0).At(inst.Pos)
			end.Handler = region
			out = append(out, end)
		}
		out = append(out, inst)
	}
	number(out)
	return out
}

// followsEndFor reports whether the instruction before target is an END_FOR.
func followsEndFor(list []*Instruction, target *Instruction) bool {
	return target.index > 0 && list[target.index-1].Op == opcode.END_FOR
}
