package translate

import (
	"slices"
	"sort"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
)

// tidy makes the last pass over the written instructions, and returns the number of slots for temps. It calls Groups in
// place of repeated operations (groupOperations), and Epilogues (writeEpilogues). It removes stores of values that
// nothing loads, and pairs of a store and the load right after it. It releases values where the user's code does, and
// gives temps as few slots as their lifetimes allow. If an operation is the last to read a value, the result of the
// operation overwrites that value, or the value is deleted when the operation ends. The next operation can then use its
// memory while it is still in the cache.
func (c *Codegen) tidy() int {
	c.dropUnneeded()
	c.groupOperations()
	c.writeEpilogues()
	c.dropUnused()
	return c.placeTemps()
}

func localOf(in *bytecode.Instruction) (operand int, ok bool) {
	switch in.Op {
	case opcode.LOAD_FAST, opcode.STORE_FAST, opcode.DELETE_FAST:
		return in.Arg, true
	}
	return 0, false
}

func isTemp(operand int) bool { return operand&spaceMask == spaceTemp }

// dropUnused removes stores without a load, and pairs of a store and its only load. It also removes the deletion of a
// value whose store was removed, or that is loaded later and so lives until that load.
func (c *Codegen) dropUnused() {
	loads, lastLoad, uses := map[int]int{}, map[int]int{}, c.exitUses()
	for i, in := range c.list {
		if in.Op == opcode.LOAD_FAST {
			loads[in.Arg]++
			use, _ := uses.of(i)
			lastLoad[in.Arg] = max(lastLoad[in.Arg], use)
		}
	}
	is := func(i int, op opcode.Op, arg int) bool {
		return i < len(c.list) && c.list[i].Op == op && c.list[i].Arg == arg
	}
	unstored := map[int]bool{}
	out := c.list[:0:0]
	remap := make([]int, len(c.list)+1)
	for i := 0; i < len(c.list); i++ {
		in := c.list[i]
		remap[i] = len(out)
		a, held := in.Arg, c.held[in.Arg&^spaceMask]
		switch {
		case in.Op == opcode.DELETE_FAST && (lastLoad[a] > i || unstored[a]):
			continue
		case in.Op != opcode.STORE_FAST || !isTemp(a):
		case loads[a] == 0 && (!held || is(i+1, opcode.DELETE_FAST, a)):
			in.Op, in.Arg = opcode.POP_TOP, 0
			unstored[a] = true
		case loads[a] == 1 && is(i+1, opcode.LOAD_FAST, a) &&
			(!held || i+2 < len(c.list) && c.list[i+2].Op == opcode.RETURN_VALUE):
			unstored[a] = true
			remap[i+1] = len(out)
			i++
			continue
		}
		out = append(out, in)
	}
	remap[len(c.list)] = len(out)
	c.become(out, remap)
}

// become replaces the instruction list. remap maps each old index, including that of the list's end, to the new
// index.
func (c *Codegen) become(list []*bytecode.Instruction, remap []int) {
	for i := range c.marks {
		c.marks[i].start = remap[c.marks[i].start]
	}
	for i := range c.ends {
		c.ends[i] = remap[c.ends[i]]
	}
	if c.letGo >= 0 {
		c.letGo = remap[c.letGo]
	}
	for i := range c.spans {
		c.spans[i].start, c.spans[i].end = remap[c.spans[i].start], remap[c.spans[i].end]
	}
	c.list = list
}

// written has the temp of an event's result and the range [start, end) of the instructions written for the event.
type written struct {
	temp       int
	start, end int
}

// dropUnneeded removes code in c.unneeded whose result is not loaded: values that are computed only on demand, and
// operations that the guards have already run (OutputGraph.computedByGuard).
func (c *Codegen) dropUnneeded() {
	if len(c.unneeded) == 0 {
		return
	}
	slices.SortFunc(c.unneeded, func(a, b written) int { return a.start - b.start })
	loads := map[int]int{}
	for _, in := range c.list {
		if in.Op == opcode.LOAD_FAST {
			loads[in.Arg]++
		}
	}
	gone := make([]bool, len(c.list))
	for i := len(c.unneeded) - 1; i >= 0; i-- { // backwards, since the readers of a result follow it
		w := c.unneeded[i]
		if loads[spaceTemp|w.temp] > 0 {
			continue
		}
		for k := w.start; k < w.end; k++ {
			gone[k] = true
			if c.list[k].Op == opcode.LOAD_FAST {
				loads[c.list[k].Arg]--
			}
		}
	}
	remap := make([]int, len(c.list)+1)
	var out []*bytecode.Instruction
	for i, in := range c.list {
		remap[i] = len(out)
		if !gone[i] {
			out = append(out, in)
		}
	}
	remap[len(c.list)] = len(out)
	c.become(out, remap)
	marks := c.marks[:0]
	for i, m := range c.marks {
		if i+1 == len(c.marks) || c.marks[i+1].start > m.start {
			marks = append(marks, m)
		}
	}
	c.marks = marks
}

// placeTemps assigns slots to temps. It releases values that are dead when the native instruction of a graph break
// runs.
func (c *Codegen) placeTemps() int {
	last, loopEnds, uses := c.lastUses()
	until := func(a int) int { // index from which the temp's slot is free again
		if i := last[a]; i < len(c.list) && c.held[a&^spaceMask] && c.list[i].Op != opcode.DELETE_FAST {
			return len(c.list)
		}
		return last[a]
	}
	var free []int
	slots := 0
	place := map[int]int{}
	occupied := map[int]int{} // maps a slot to the temp whose value it holds
	inserted := map[int][]*bytecode.Instruction{}
	var held []int // locals that are still bound after the native instruction
	spans := map[int]span{}
	var over []int // slots whose value is not read any more
	ends := c.ends
	for i, in := range c.list {
		for ; len(ends) > 0 && ends[0] <= i; ends = ends[1:] {
			for _, p := range over {
				delete(occupied, p)
				inserted[i] = append(inserted[i], bytecode.New(opcode.DELETE_FAST, spaceTemp|p).At(in.Pos))
			}
			over = over[:0]
		}
		if i == c.letGo {
			var dead []int
			dead, held = c.split(i, last, occupied)
			inserted[i] = append(inserted[i], deletes(dead, in.Pos)...)
		}
		if in == c.catch {
			caught := spaceTemp | place[c.caught]
			for k, a := range held {
				if a == caught { // this slot now holds the exception
					held = append(held[:k:k], held[k+1:]...)
					break
				}
			}
			inserted[i] = append(inserted[i], deletes(append(held, caught), in.Pos)...)
		}
		for _, a := range loopEnds[i] { // last used in the loop that ends here, or by the side exit of what ends here
			if p := place[a]; until(a) == i {
				free, over = append(free, p), append(over, p)
			}
		}
		v, ok := localOf(in)
		if !ok || !isTemp(v) {
			continue
		}
		p, ok := place[v]
		if !ok {
			if _, inExit := uses.of(i); len(free) > 0 && !inExit {
				n := len(free)
				p, free = free[n-1], free[:n-1]
			} else {
				p = slots
				slots++
			}
			place[v] = p
			spans[v&^spaceMask] = span{first: i, last: until(v), slot: p}
		}
		switch in.Op {
		case opcode.STORE_FAST:
			occupied[p] = v
			over = slices.DeleteFunc(over, func(o int) bool { return o == p })
		case opcode.DELETE_FAST:
			delete(occupied, p)
		}
		if until(v) == i {
			free = append(free, p)
			if in.Op == opcode.LOAD_FAST {
				over = append(over, p)
			}
		}
		in.Arg = spaceTemp | p
	}
	c.showLocals(spans)
	c.insert(inserted)
	return slots
}

// insert puts instructions before the instructions with the given indexes.
func (c *Codegen) insert(at map[int][]*bytecode.Instruction) {
	var out []*bytecode.Instruction
	shift := make([]int, len(c.list)+1)
	for i, in := range c.list {
		shift[i] = len(out)
		out = append(append(out, at[i]...), in)
	}
	shift[len(c.list)] = len(out)
	c.list = out
	for i := range c.marks {
		c.marks[i].start = shift[c.marks[i].start]
	}
}

func deletes(operands []int, pos bytecode.Position) []*bytecode.Instruction {
	out := make([]*bytecode.Instruction, len(operands))
	for i, a := range operands {
		out[i] = bytecode.New(opcode.DELETE_FAST, a).At(pos)
	}
	return out
}

// split divides the locals that are bound before instruction `at` into dead and held ones. A local is dead if nothing
// uses it from there on. An object that the user's code still holds counts as used, since it is passed to the resume
// function. If the frame is not resumed, its parameters are never dead, since its caller holds them.
func (c *Codegen) split(at int, last, occupied map[int]int) (dead, held []int) {
	deleted := map[int]bool{}
	for _, in := range c.list[:at] {
		if in.Op == opcode.DELETE_FAST && !isTemp(in.Arg) {
			deleted[in.Arg] = true
		}
	}
	add := func(a, v int) {
		if i, used := last[v]; deleted[a] {
			return
		} else if used && i >= at || a&spaceMask == spaceSlot && c.out.frame.Origin == nil {
			held = append(held, a)
		} else {
			dead = append(dead, a)
		}
	}
	for i, o := range c.out.frame.Slots {
		if !o.IsNull() {
			add(spaceSlot|i, spaceSlot|i)
		}
	}
	for i := range c.extras {
		add(spaceExtra|i, spaceExtra|i)
	}
	places := make([]int, 0, len(occupied))
	for p := range occupied {
		places = append(places, p)
	}
	sort.Ints(places)
	for _, p := range places {
		add(spaceTemp|p, occupied[p])
	}
	return dead, held
}
