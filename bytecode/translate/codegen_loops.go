package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
)

// This file writes the loops that are captured once (graph_loops.go).

// checkLoops requests another attempt if the piece has a loop and an operation in a block, since the piece could not
// run again, or if code after a loop reads a value that only the loop's body computes.
func (c *Codegen) checkLoops() error {
	o := c.out
	if len(o.loops.finished) == 0 {
		return nil
	}
	if o.lastProtected() >= 0 {
		return o.unroll(o.loops.finished[0].step, "an operation in a block follows")
	}
	at := c.indexes()
	for _, l := range o.loops.finished {
		from, to := at[l.written[0]], at[l.written[1]]
		inside := map[int]bool{}
		for i, in := range c.list {
			a, ok := localOf(in)
			switch {
			case !ok || !isTemp(a):
			case i < from && in.Op == opcode.STORE_FAST:
				inside[a] = false
			case i >= from && i < to && in.Op == opcode.STORE_FAST:
				if before, known := inside[a]; known && !before {
					return o.unroll(l.step, "a value is computed again")
				}
				inside[a] = true
			case i >= to && inside[a]:
				return o.unroll(l.step, "a value of its body is used later")
			case i >= from && i < to && in.Op == opcode.DELETE_FAST:
				return o.unroll(l.step, "a value is dropped in its body")
			}
		}
	}
	return nil
}

func (c *Codegen) indexes() map[*bytecode.Instruction]int {
	at := make(map[*bytecode.Instruction]int, len(c.list))
	for i, in := range c.list {
		at[in] = i
	}
	return at
}

// writeLoop writes the start or the end of a loop. The iterator is in a temp, so the body runs on an empty stack.
func (c *Codegen) writeLoop(e *event) error {
	l := e.loop
	if e.loopEnds {
		after := bytecode.New(opcode.NOP, 0).At(c.pos)
		c.list = append(c.list, bytecode.NewJump(opcode.JUMP, l.written[0]).At(c.pos), after)
		l.exit.Target = after
		l.written = append(l.written, after)
		return nil
	}
	iterator := c.newTemp()
	if err := l.iterator.Reconstruct(c); err != nil {
		return err
	}
	c.emit(opcode.STORE_FAST, spaceTemp|iterator)
	c.ends = append(c.ends, len(c.list))
	first := c.emit(opcode.NOP, 0)
	l.written = []*bytecode.Instruction{first}
	c.emit(opcode.LOAD_FAST, spaceTemp|iterator)
	l.exit = bytecode.NewJump(opcode.FOR_ITER, nil).At(c.pos)
	c.list = append(c.list, l.exit)
	if l.iterator.Zip {
		c.emit(opcode.UNPACK_SEQUENCE, len(l.slots))
	}
	for _, s := range l.slots {
		c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfSlot(s.Index))
	}
	c.PopTop()
	return nil
}

// lastUses returns the index of the last use of each local. A temp that is stored before a loop and used in it is used
// up to the loop's end, and what a side exit loads up to the end of what may leave through it. For these places, ends
// has the temps that are free from there on.
func (c *Codegen) lastUses() (last map[int]int, ends map[int][]int, uses exitUses) {
	last = map[int]int{}
	uses = c.exitUses()
	stored := map[int]int{}
	byExit := map[int]bool{} // what a side exit uses last
	for i, in := range c.list {
		a, ok := localOf(in)
		if !ok {
			continue
		}
		if _, ok := stored[a]; !ok && in.Op == opcode.STORE_FAST {
			stored[a] = i
		}
		use, inExit := uses.of(i)
		if _, own := uses.of(stored[a]); own {
			use, inExit = i, false
		}
		if use > last[a] || !inExit {
			last[a], byExit[a] = use, inExit
		}
	}
	ends = map[int][]int{}
	for a := range byExit {
		if byExit[a] && isTemp(a) {
			ends[last[a]] = append(ends[last[a]], a)
		}
	}
	for _, list := range ends {
		slices.Sort(list)
	}
	if len(c.out.loops.finished) == 0 {
		return last, ends, uses
	}
	at := c.indexes()
	for _, l := range c.out.loops.finished {
		from, to := at[l.written[0]], at[l.written[1]]
		for a, i := range last {
			if s, ok := stored[a]; ok && isTemp(a) && s < from && i > from && i < to {
				last[a] = to
				ends[to] = append(ends[to], a)
			}
		}
		slices.Sort(ends[to])
	}
	return last, ends, uses
}
