package bytecode

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
)

// NullsAbove returns a list in which the NULL of each call is above the callable, for versions with Code.NullAbove. In
// the given list each PUSH_NULL is below its callable, as code generators write it. Control must not enter or leave the
// code between a PUSH_NULL and the end of its callable.
func NullsAbove(list []*Instruction) ([]*Instruction, error) {
	if err := link(list); err != nil {
		return nil, err
	}
	flow, err := followStack(list)
	if err != nil {
		return nil, err
	}
	after := map[int]*Instruction{} // the PUSH_NULL that goes before the instruction at an index
	moved := map[*Instruction]*Instruction{}
	for i, inst := range list {
		if inst.Op != opcode.PUSH_NULL || flow.depths[i] < 0 {
			continue
		}
		to := endOfCallee(list, flow.depths, i)
		if to < 0 {
			return nil, malformed("instruction %d: PUSH_NULL without a call", i)
		}
		after[to], moved[inst] = inst, list[i+1]
	}
	if len(moved) == 0 {
		return list, nil
	}
	out := make([]*Instruction, 0, len(list))
	for i, inst := range list {
		if null := after[i]; null != nil {
			null.Handler = list[i-1].Handler
			out = append(out, null)
		}
		if moved[inst] == nil {
			out = append(out, inst)
		}
		for moved[inst.Target] != nil {
			inst.Target = moved[inst.Target]
		}
		if r := inst.Handler; r != nil {
			for moved[r.Target] != nil {
				r.Target = moved[r.Target]
			}
		}
	}
	return out, nil
}

// endOfCallee returns the index of the first instruction after the callable that the PUSH_NULL at index i is for: the
// last instruction before the call's end that runs with just the NULL and the callable on the stack. It returns -1 if
// there is no call.
func endOfCallee(list []*Instruction, depths []int32, i int) int {
	end := -1
	for k := i + 1; k < len(list); k++ {
		depth := depths[k] - depths[i]
		if depth == 2 {
			end = k
		}
		if depth < 0 {
			continue // an arm that is written in between
		}
		switch list[k].Op {
		case opcode.CALL, opcode.CALL_FUNCTION_EX:
			if pops, _ := StackUse(list[k], false); int(depth) == pops {
				return end
			}
		}
		if pops, _ := StackUse(list[k], false); int(depth) < pops && depths[k] >= 0 {
			return -1 // something else consumes the NULL
		}
	}
	return -1
}
