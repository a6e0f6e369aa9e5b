package bytecode

import (
	"math/bits"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// EndsFlow reports whether control never falls through from op to the next instruction.
func EndsFlow(op opcode.Op) bool {
	switch op {
	case opcode.RETURN_VALUE, opcode.RETURN_CONST, opcode.RAISE_VARARGS, opcode.RERAISE, opcode.JUMP:
		return true
	}
	return false
}

// link numbers the instructions, and checks that control flow can be followed through the list. No instruction may
// occur twice, targets and handlers must be in the list, and control must not fall through the last instruction.
func link(list []*Instruction) error {
	for i, inst := range list {
		if inst == nil {
			return malformed("instruction %d is nil", i)
		}
		if int(inst.Op) >= opcode.NumOps {
			return malformed("instruction %d: %v", i, inst.Op)
		}
	}
	number(list)
	for i, inst := range list {
		switch {
		case int(inst.index) != i:
			return malformed("instruction %d (%v) is in the list twice", i, inst.Op)
		case inst.IsJump() && inst.Target == nil:
			return malformed("instruction %d: %v without a target", i, inst.Op)
		case inst.Target != nil && !(inst.IsJump() && isNumbered(list, inst.Target)):
			return malformed("instruction %d: %v has a target outside the code, or is no jump", i, inst.Op)
		case inst.Handler != nil && (inst.Handler.Target == nil || !isNumbered(list, inst.Handler.Target)):
			return malformed("instruction %d: %v has a handler outside the code", i, inst.Op)
		}
	}
	if len(list) == 0 || !EndsFlow(list[len(list)-1].Op) {
		return malformed("code runs off its end")
	}
	return nil
}

// stackFlow computes a code's stack depths by following its control flow.
type stackFlow struct {
	list    []*Instruction
	depths  []int32 // stack depth before each instruction, or -1 if it is not reached
	max     int32
	work    []int32                    // instructions that were reached but not followed yet
	entries map[*ExceptionRegion]int32 // stack depths found for regions with DepthAtEntry
	pending map[*ExceptionRegion]int32 // for each region not yet in entries, the index of its first instruction
}

// followStack computes the stack depths. link must have accepted the list.
func followStack(list []*Instruction) (*stackFlow, error) {
	f := &stackFlow{list: list, depths: make([]int32, len(list))}
	for i, inst := range list {
		f.depths[i] = -1
		if r := inst.Handler; r != nil && r.Depth < 0 {
			if f.pending == nil {
				f.pending, f.entries = map[*ExceptionRegion]int32{}, map[*ExceptionRegion]int32{}
			}
			if _, seen := f.pending[r]; !seen {
				f.pending[r] = int32(i)
			}
		}
	}
	if err := f.reach(0, 0); err != nil {
		return nil, err
	}
	if err := f.drain(); err != nil {
		return nil, err
	}
	// The first instruction of a region may be reached only through the handler of another region. So the loop
	// repeats until a round reaches no new region.
	for progress := true; progress; {
		progress = false
		for r, first := range f.pending {
			depth := f.depths[first]
			if depth < 0 {
				continue
			}
			delete(f.pending, r)
			f.entries[r] = depth
			progress = true
			if err := f.reach(r.Target.index, int(depth)+r.HandlerDepth()-r.Depth); err != nil {
				return nil, err
			}
		}
		if err := f.drain(); err != nil {
			return nil, err
		}
	}
	return f, f.checkEntries()
}

// reach records a stack depth at an instruction.
func (f *stackFlow) reach(index int32, depth int) error {
	switch {
	case depth > maxUnits:
		return malformed("instruction %d (%v): a stack of %d values", index, f.list[index].Op, depth)
	case f.depths[index] == int32(depth):
		return nil
	case f.depths[index] < 0:
		f.depths[index] = int32(depth)
		f.max = max(f.max, int32(depth))
		f.work = append(f.work, index)
		return nil
	}
	return malformed("instruction %d (%v): stack depth %d on one path, %d on another", index, f.list[index].Op,
		f.depths[index], depth)
}

// drain follows all instructions in work, until none is left.
func (f *stackFlow) drain() error {
	for len(f.work) > 0 {
		index := f.work[len(f.work)-1]
		f.work = f.work[:len(f.work)-1]
		if err := f.follow(index); err != nil {
			return err
		}
	}
	return nil
}

func (f *stackFlow) follow(index int32) error {
	inst, depth := f.list[index], int(f.depths[index])
	if !stackUses[inst.Op].known {
		return malformed("instruction %d: %v is not of the dialect", index, inst.Op)
	}
	pops, pushes := StackUse(inst, false)
	if depth < pops {
		return malformed("instruction %d (%v): needs %d values, %d are on the stack", index, inst.Op, pops, depth)
	}
	if r := inst.Handler; r != nil && r.Depth >= 0 {
		if depth < r.Depth {
			return malformed("instruction %d (%v): its handler wants %d values, %d are on the stack", index, inst.Op,
				r.Depth, depth)
		}
		if err := f.reach(r.Target.index, r.HandlerDepth()); err != nil {
			return err
		}
	}
	if inst.Target != nil {
		if err := f.reach(inst.Target.index, depth+StackEffect(inst, true)); err != nil {
			return err
		}
	}
	if EndsFlow(inst.Op) {
		return nil
	}
	return f.reach(index+1, depth+pushes-pops)
}

// checkEntries checks regions with DepthAtEntry: nowhere in such a region may the stack be lower than at its entry.
func (f *stackFlow) checkEntries() error {
	if f.entries == nil {
		return nil
	}
	for i, inst := range f.list {
		if f.depths[i] >= 0 && inst.Handler != nil && inst.Handler.Depth < 0 && f.depths[i] < f.entries[inst.Handler] {
			return malformed("instruction %d (%v): lower stack than at its region's entry", i, inst.Op)
		}
	}
	return nil
}

// regionDepth returns the depth of a region, or 0 for an unreachable region with DepthAtEntry.
func (f *stackFlow) regionDepth(r *ExceptionRegion) int {
	if r.Depth >= 0 {
		return r.Depth
	}
	return int(f.entries[r])
}

// StackDepths returns the height of the value stack before each instruction, in the order of code.Instructions. The
// height is -1 for an unreachable instruction. StackDepths returns an error if two paths lead to different heights, or
// if an instruction needs more values than are on the stack.
func StackDepths(code *Code) ([]int, error) {
	if err := link(code.Instructions); err != nil {
		return nil, err
	}
	f, err := followStack(code.Instructions)
	if err != nil {
		return nil, err
	}
	depths := make([]int, len(f.depths))
	for i, d := range f.depths {
		depths[i] = int(d)
	}
	return depths, nil
}

// Reachable returns the instructions that control may reach from the first one; see ReachableFrom.
func Reachable(code *Code) map[*Instruction]bool {
	if len(code.Instructions) == 0 {
		return map[*Instruction]bool{}
	}
	return ReachableFrom(code, code.Instructions[0])
}

// ReachableFrom returns the instructions that control may reach from first, by jumps and by exceptions. It assumes
// that every instruction in a region may raise. Targets must be in the list.
func ReachableFrom(code *Code, first *Instruction) map[*Instruction]bool {
	return reachable(code, first, func(*Instruction) bool { return false })
}

// UsesOf returns the instructions that may read the value which a slot has before first. They are in no order. Targets
// must be in the list.
func UsesOf(code *Code, first *Instruction, slot int) []*Instruction {
	use := func(inst *Instruction) slotUse {
		u := slotUseOf(inst, len(code.Locals))
		if slot < u.first || slot >= u.last {
			return slotUse{}
		}
		return u
	}
	var found []*Instruction
	for inst := range reachable(code, first, func(inst *Instruction) bool { return use(inst).write }) {
		if use(inst).reads {
			found = append(found, inst)
		}
	}
	return found
}

// reachable returns the instructions that control may reach from first, but nothing after those that end the search.
func reachable(code *Code, first *Instruction, ends func(*Instruction) bool) map[*Instruction]bool {
	list := code.Instructions
	reached := make(map[*Instruction]bool, len(list))
	number(list)
	work := []*Instruction{first}
	for len(work) > 0 {
		inst := work[len(work)-1]
		work = work[:len(work)-1]
		for !reached[inst] {
			reached[inst] = true
			if inst.Target != nil {
				work = append(work, inst.Target)
			}
			if inst.Handler != nil && inst.Handler.Target != nil {
				work = append(work, inst.Handler.Target)
			}
			next := int(inst.index) + 1
			if EndsFlow(inst.Op) || ends(inst) || next >= len(list) {
				break
			}
			inst = list[next]
		}
	}
	return reached
}

// LocalSet is a set of slots (indexes into Code.Locals).
type LocalSet []uint64

// Has reports whether the slot is in the set.
func (s LocalSet) Has(slot int) bool {
	return slot >= 0 && slot>>6 < len(s) && s[slot>>6]&(1<<(slot&63)) != 0
}

// Len returns the number of slots in the set.
func (s LocalSet) Len() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Slots returns the slots in increasing order.
func (s LocalSet) Slots() []int {
	slots := make([]int, 0, s.Len())
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			slots = append(slots, i<<6+bits.TrailingZeros64(word))
		}
	}
	return slots
}

// slotUse is an instruction's use of the slots first..last-1.
type slotUse struct {
	first, last  int
	reads, write bool
}

// slotUseOf returns the slots that an instruction reads or writes. Instructions that access the contents of a cell
// only read the slot, which holds the cell. DELETE_FAST also reads its slot, because it raises if the slot is
// unbound.
func slotUseOf(inst *Instruction, numLocals int) slotUse {
	one := slotUse{first: inst.Arg, last: inst.Arg + 1}
	switch inst.Op {
	case opcode.LOAD_FAST, opcode.LOAD_FAST_CHECK, opcode.LOAD_CLOSURE, opcode.LOAD_DEREF, opcode.LOAD_CLASSDEREF,
		opcode.LOAD_FROM_DICT_OR_DEREF, opcode.STORE_DEREF, opcode.DELETE_DEREF:
		one.reads = true
	case opcode.STORE_FAST:
		one.write = true
	case opcode.DELETE_FAST, opcode.LOAD_FAST_AND_CLEAR, opcode.MAKE_CELL:
		one.reads, one.write = true, true
	case opcode.COPY_FREE_VARS: // the free variables are the last slots
		return slotUse{first: numLocals - inst.Arg, last: numLocals, write: true}
	default:
		return slotUse{}
	}
	return one
}

// Liveness returns, for every instruction, the live slots: those that the code may read, from this instruction on,
// before it writes them. A resume function needs these slots. An exception may be raised before or after an
// instruction's own write, so slots that a handler reads are live in its whole region. Code that inspects frames
// (locals, eval) also reads slots that are not in the result. Targets must be in the list. The sets share one array and
// must not be changed.
func Liveness(code *Code) map[*Instruction]LocalSet {
	list, words := code.Instructions, (len(code.Locals)+63)/64
	number(list)
	live := make([]uint64, len(list)*words)
	at := func(inst *Instruction) LocalSet { return live[int(inst.index)*words:][:words:words] }
	before := make(LocalSet, words)
	for changed := true; changed; {
		changed = false
		for i := len(list) - 1; i >= 0; i-- {
			inst := list[i]
			clear(before)
			if !EndsFlow(inst.Op) && i+1 < len(list) {
				copy(before, at(list[i+1]))
			}
			if inst.Target != nil {
				before.union(at(inst.Target))
			}
			before.apply(slotUseOf(inst, len(code.Locals)))
			if inst.Handler != nil && inst.Handler.Target != nil {
				before.union(at(inst.Handler.Target))
			}
			if at(inst).update(before) {
				changed = true
			}
		}
	}
	sets := make(map[*Instruction]LocalSet, len(list))
	for _, inst := range list {
		sets[inst] = at(inst)
	}
	return sets
}

func (s LocalSet) union(other LocalSet) {
	for i, word := range other {
		s[i] |= word
	}
}

// update sets s to other, and reports whether this changed s.
func (s LocalSet) update(other LocalSet) bool {
	changed := false
	for i, word := range other {
		changed = changed || s[i] != word
		s[i] = word
	}
	return changed
}

// apply converts the set after an instruction to the set before it.
func (s LocalSet) apply(use slotUse) {
	for slot := max(use.first, 0); slot < use.last && slot>>6 < len(s); slot++ {
		if use.write {
			s[slot>>6] &^= 1 << (slot & 63)
		}
		if use.reads {
			s[slot>>6] |= 1 << (slot & 63)
		}
	}
}
