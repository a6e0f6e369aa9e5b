package bytecode

import (
	"fmt"
	"math"
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// maxExtended is the maximum number of EXTENDED_ARG before an instruction: an argument has four bytes.
const maxExtended = 3

// Decode converts a code object to instructions of the dialect (see the package comment). It returns an error that
// wraps ErrMalformed for code that CPython's compiler could not have written: unknown opcodes, jumps into the middle
// of an instruction, arguments out of range, code that runs off its end. Specialized opcodes, which PyCode_GetCode
// never returns, are malformed too. For an unsupported version the error wraps ErrVersion.
func Decode(raw *Raw, v Version) (*Code, error) {
	table, err := tableFor(v)
	if err != nil {
		return nil, err
	}
	if len(raw.LocalsPlusKinds) != len(raw.LocalsPlusNames) {
		return nil, malformed("%d names and %d kinds of locals", len(raw.LocalsPlusNames), len(raw.LocalsPlusKinds))
	}
	code := &Code{
		Name: raw.Name, QualName: raw.QualName, Filename: raw.Filename,
		FirstLine: raw.FirstLine, Flags: raw.Flags,
		ArgCount: raw.ArgCount, PosOnlyArgCount: raw.PosOnlyArgCount, KwOnlyArgCount: raw.KwOnlyArgCount,
		StackSize: raw.StackSize, NumConsts: raw.NumConsts,
		Names:     raw.Names,
		NullAbove: table.NullAbove, ClearsBackward: table.ClearsBackward, HandlerBefore: table.HandlerBefore,
		Locals: make([]Local, len(raw.LocalsPlusNames)),
	}
	for i, name := range raw.LocalsPlusNames {
		code.Locals[i] = Local{name, raw.LocalsPlusKinds[i]}
	}
	if err := checkHeader(code); err != nil {
		return nil, err
	}
	d := decoder{table: table, raw: raw, code: code,
		lines: lineReader{table: raw.LineTable, line: int64(raw.FirstLine)}}
	if err := d.run(); err != nil {
		return nil, err
	}
	return code, nil
}

// checkHeader checks the counts on which other checks rely.
func checkHeader(c *Code) error {
	switch {
	case c.FirstLine < 0 || c.FirstLine > math.MaxInt32 || c.NumConsts < 0:
		return malformed("first line %d, %d constants", c.FirstLine, c.NumConsts)
	case c.PosOnlyArgCount < 0 || c.PosOnlyArgCount > c.ArgCount || c.KwOnlyArgCount < 0:
		return malformed("%d arguments, %d positional-only, %d keyword-only", c.ArgCount, c.PosOnlyArgCount,
			c.KwOnlyArgCount)
	case c.ArgCount > len(c.Locals) || c.KwOnlyArgCount > len(c.Locals) || c.NumArgSlots() > len(c.Locals):
		return malformed("%d parameters in %d locals", c.NumArgSlots(), len(c.Locals))
	}
	return nil
}

// decoder is the state of one call of Decode.
type decoder struct {
	table *opcode.Table
	raw   *Raw
	code  *Code

	block []Instruction // backing array of code.Instructions, in one allocation
	// starts has, for each code unit, 1 + the index of the instruction that starts there (with its EXTENDED_ARGs), or
	// 0 if no instruction starts there.
	starts []int32

	lines   lineReader
	lineEnd int // first code unit after the current line entry
	pos     Position
}

func (d *decoder) run() error {
	entries, err := DecodeExceptionTable(d.raw.ExceptionTable)
	if err != nil {
		return err
	}
	if len(d.raw.Code) == 0 || len(d.raw.Code)%2 != 0 || len(d.raw.Code)/2 > maxUnits {
		return malformed("%d bytes of code", len(d.raw.Code))
	}
	d.starts = make([]int32, len(d.raw.Code)/2)
	d.block = make([]Instruction, 0, d.count())
	if err := d.instructions(); err != nil {
		return err
	}
	if err := d.jumps(); err != nil {
		return err
	}
	if err := d.regions(entries); err != nil {
		return err
	}
	d.unify()
	return nil
}

// count returns an upper bound for the number of instructions. A list with this capacity is never moved while it grows.
func (d *decoder) count() int {
	n := 0
	for unit := 0; unit < len(d.starts); {
		form := &d.table.Forms[d.raw.Code[2*unit]]
		switch {
		case form.Pair[0] != opcode.INVALID:
			n += 2
		case form.Real != opcode.EXTENDED_ARG && form.Real != opcode.PRECALL:
			n++
		}
		unit += 1 + int(form.Caches)
	}
	return n
}

// instructions fills block and starts. For a jump it stores the code unit of the target in the index field; the method
// jumps then sets Target.
func (d *decoder) instructions() error {
	// start is the code unit where the current instruction began, which may be its first EXTENDED_ARG or its PRECALL.
	start := -1
	extended, extendedArg := 0, 0
	precall := -1 // argument of a PRECALL whose CALL must come next
	for unit := 0; unit < len(d.starts); {
		form := &d.table.Forms[d.raw.Code[2*unit]]
		arg := extendedArg<<8 | int(d.raw.Code[2*unit+1])
		if start < 0 {
			start = unit
		}
		next := unit + 1 + int(form.Caches)
		if err := d.checkUnit(form, unit, next, precall, arg); err != nil {
			return err
		}
		switch form.Real {
		case opcode.EXTENDED_ARG:
			if extended++; extended > maxExtended || arg > math.MaxInt32>>8 {
				return malformed("argument too large at %d", unit)
			}
			extendedArg, unit = arg, next
			continue
		case opcode.PRECALL:
			precall, extended, extendedArg, unit = arg, 0, 0, next
			continue
		}
		if err := d.position(unit); err != nil {
			return err
		}
		first := len(d.block)
		if form.Pair[0] != opcode.INVALID {
			if err := d.pair(form, unit, arg); err != nil {
				return err
			}
			d.starts[start] = int32(first + 1)
			start, extended, extendedArg, precall, unit = -1, 0, 0, -1, next
			continue
		}
		inst := d.append(form.Op, arg, unit)
		inst.NoInterrupt, inst.borrowed = form.NoInterrupt, form.Borrowed
		if err := d.choose(form, inst); err != nil {
			return err
		}
		arg = inst.Arg
		switch {
		case form.PointsBack:
			inst.Arg, inst.index, inst.extended = 0, int32(next-arg), uint8(extended)
		case form.Jump:
			target := next + arg
			if form.Backward {
				target = next - arg
			}
			if target < 0 || target >= len(d.starts) {
				return malformed("jump at %d to %d", unit, target)
			}
			inst.Arg, inst.index, inst.extended = 0, int32(target), uint8(extended)
		case int(d.raw.Code[2*unit]) < d.table.HaveArgument:
			inst.Arg = 0
		default:
			if err := d.code.checkArg(inst.Op, arg); err != nil {
				return err
			}
			d.loadCell(inst)
		}
		d.starts[start] = int32(first + 1)
		start, extended, extendedArg, precall, unit = -1, 0, 0, -1, next
	}
	if start >= 0 || !EndsFlow(d.block[len(d.block)-1].Op) {
		return malformed("code runs off its end")
	}
	return nil
}

// append adds an instruction to the block.
func (d *decoder) append(op opcode.Op, arg, unit int) *Instruction {
	d.block = append(d.block, Instruction{Op: op, Arg: arg, Offset: unit, Pos: d.pos, order: int32(len(d.block) + 1)})
	return &d.block[len(d.block)-1]
}

// pair adds the two instructions of an opcode that does both. They have one offset and one position.
func (d *decoder) pair(form *opcode.Form, unit, arg int) error {
	for i, slot := range [2]int{arg >> 4, arg & maxJoined} {
		inst := d.append(form.Pair[i], slot, unit)
		inst.joined, inst.borrowed = i == 0, form.Borrowed
		if err := d.code.checkArg(inst.Op, slot); err != nil {
			return err
		}
		d.loadCell(inst)
	}
	return nil
}

// loadCell makes a LOAD_FAST that loads a cell itself a LOAD_CLOSURE, for versions that have one opcode for both.
func (d *decoder) loadCell(inst *Instruction) {
	if inst.Op == opcode.LOAD_FAST && d.table.Encodings[opcode.LOAD_CLOSURE] == d.table.Encodings[opcode.LOAD_FAST] &&
		d.code.Locals[inst.Arg].Kind&(opcode.CO_FAST_CELL|opcode.CO_FAST_FREE) != 0 {
		inst.Op = opcode.LOAD_CLOSURE
	}
}

// choose sets the opcode of an instruction whose argument chooses it, and converts its argument to the dialect's.
func (d *decoder) choose(form *opcode.Form, inst *Instruction) error {
	switch {
	case form.LowBits > 0:
		low := inst.Arg & (1<<form.LowBits - 1)
		if low >= len(form.Choices) || form.Choices[low] == opcode.INVALID {
			return malformed("%v %d at %d", form.Real, inst.Arg, inst.Offset)
		}
		inst.Op, inst.Arg = form.Choices[low], inst.Arg>>form.LowBits
		if inst.Op.ArgKind() == opcode.ArgNone && inst.Arg != 0 {
			return malformed("%v at %d takes no argument", inst.Op, inst.Offset)
		}
	case form.Real == opcode.BINARY_OP && inst.Arg == d.table.Subscript:
		inst.Op, inst.Arg = opcode.BINARY_SUBSCR, 0
	case form.Real == opcode.COMPARE_OP:
		inst.makesBool = inst.Arg&d.table.CompareBool != 0
		op := slices.Index(d.table.CompareArgs[:], uint8(inst.Arg&^d.table.CompareBool))
		if op < 0 || inst.Arg > math.MaxUint8 {
			return malformed("COMPARE_OP %d at %d", inst.Arg, inst.Offset)
		}
		inst.Arg = op
	}
	return nil
}

// checkUnit checks that an opcode exists, that its inline caches are complete and empty, and that a PRECALL is followed
// by its CALL.
func (d *decoder) checkUnit(form *opcode.Form, unit, next, precall, arg int) error {
	if form.Real == opcode.INVALID || form.Real == opcode.CACHE {
		return fmt.Errorf("%w: %d at %d", ErrNoSuchOpcode, d.raw.Code[2*unit], unit)
	}
	if next > len(d.starts) {
		return malformed("%v at %d lacks its inline cache", form.Real, unit)
	}
	for _, b := range d.raw.Code[2*unit+2 : 2*next] {
		if b != 0 {
			return malformed("inline cache of %v at %d is not empty", form.Real, unit)
		}
	}
	if precall >= 0 && form.Real != opcode.EXTENDED_ARG && (form.Real != opcode.CALL || arg != precall) {
		return malformed("PRECALL before %v at %d", form.Real, unit)
	}
	return nil
}

// position sets pos to the position of a code unit. Code units must be requested in order.
func (d *decoder) position(unit int) error {
	for d.lineEnd <= unit {
		entry, ok, err := d.lines.next()
		if err != nil {
			return err
		}
		if !ok {
			d.pos, d.lineEnd = NoPosition, math.MaxInt
			break
		}
		d.pos, d.lineEnd = entry.Pos, d.lineEnd+entry.Units
	}
	return nil
}

// at returns the instruction that starts at a code unit, or nil if there is none.
func (d *decoder) at(unit int) *Instruction {
	if unit < 0 || unit >= len(d.starts) || d.starts[unit] == 0 {
		return nil
	}
	return &d.block[d.starts[unit]-1]
}

func (d *decoder) jumps() error {
	for i := range d.block {
		inst := &d.block[i]
		if inst.Op == opcode.END_ASYNC_FOR && inst.index > 0 {
			inst.From = d.at(int(inst.index))
			continue
		}
		if !inst.IsJump() {
			continue
		}
		target := int(inst.index)
		if inst.Op == opcode.FOR_ITER {
			for _, op := range d.table.LoopEnd { // CPython skips them; each is one code unit
				if end := d.at(target); end == nil || end.Op != op {
					return malformed("FOR_ITER at %d to %d, where no %v is", inst.Offset, target, op)
				}
				target++
			}
		}
		if inst.Target = d.at(target); inst.Target == nil {
			return malformed("jump at %d to %d, which starts no instruction", inst.Offset, target)
		}
	}
	return nil
}

// regions sets the handler of each instruction. There is one region for each row of the table. So rows with equal
// contents stay separate, and Lower writes them back unchanged.
func (d *decoder) regions(entries []ExceptionEntry) error {
	regions := make([]ExceptionRegion, len(entries))
	for i, e := range entries {
		target, first := d.at(e.Target), d.at(e.Start)
		if target == nil || first == nil || e.End > len(d.starts) || e.End < len(d.starts) && d.at(e.End) == nil {
			return malformed("exception table: %d to %d, handler %d: not at instructions", e.Start, e.End, e.Target)
		}
		hidden := target.Op == opcode.CLEANUP_THROW || restores(d.block[d.starts[e.Target]-1:])
		regions[i] = ExceptionRegion{Target: target, Depth: e.Depth, Lasti: e.Lasti, Hidden: hidden}
		end := len(d.block)
		if e.End < len(d.starts) {
			end = int(d.starts[e.End]) - 1
		}
		for j := int(d.starts[e.Start]) - 1; j < end; j++ {
			d.block[j].Handler = &regions[i]
		}
	}
	return nil
}

// restores reports whether a handler, which starts the list, only drops the result of a comprehension and restores the
// variables that LOAD_FAST_AND_CLEAR has saved.
func restores(handler []Instruction) bool {
	if len(handler) < 2 || handler[0].Op != opcode.SWAP || handler[1].Op != opcode.POP_TOP {
		return false
	}
	for _, inst := range handler[2:] {
		if inst.Op != opcode.SWAP && inst.Op != opcode.STORE_FAST {
			return inst.Op == opcode.RERAISE && inst.Arg == 0
		}
	}
	return false
}

// checkArg checks that an argument is in the range of its kind.
func (c *Code) checkArg(op opcode.Op, arg int) error {
	limit := math.MaxInt32
	index := arg
	switch op.ArgKind() {
	case opcode.ArgConst:
		limit = c.NumConsts
	case opcode.ArgName:
		limit = len(c.Names)
		index = arg >> nameShift(op)
	case opcode.ArgLocal, opcode.ArgFree:
		limit = len(c.Locals)
	case opcode.ArgCompare:
		limit = int(opcode.CMP_GE) + 1
	case opcode.ArgNumber:
		return c.checkNumber(op, arg)
	}
	if index < 0 || index >= limit {
		return malformed("%v %d: out of range (%d)", op, arg, limit)
	}
	return nil
}

// nameShift returns by how many bits the index of a name is shifted in an opcode's argument. The bits below are flags.
func nameShift(op opcode.Op) int {
	switch op {
	case opcode.LOAD_GLOBAL:
		return 1
	case opcode.LOAD_SUPER_ATTR:
		return 2
	}
	return 0
}

// checkNumber checks arguments that are operators, counts or flags. The interpreter trusts these arguments: it
// indexes a table with the argument of BINARY_OP, and the stack with those of COPY and SWAP.
func (c *Code) checkNumber(op opcode.Op, arg int) error {
	low, high := 0, math.MaxInt32
	switch op {
	case opcode.BINARY_OP:
		high = int(opcode.NB_INPLACE_XOR)
	case opcode.COPY, opcode.SWAP, opcode.LIST_APPEND, opcode.SET_ADD, opcode.MAP_ADD,
		opcode.LIST_EXTEND, opcode.SET_UPDATE, opcode.DICT_UPDATE, opcode.DICT_MERGE:
		low = 1
	case opcode.BUILD_SLICE:
		low, high = 2, 3
	case opcode.RAISE_VARARGS:
		high = 2
	case opcode.IS_OP, opcode.CONTAINS_OP, opcode.BEFORE_WITH, opcode.WITH_EXCEPT_START:
		high = 1
	case opcode.MAKE_FUNCTION:
		high = 15
	case opcode.LOAD_COMMON_CONSTANT:
		high = len(opcode.CommonConstants) - 1
	case opcode.LOAD_SPECIAL:
		high = opcode.SPECIAL_AEXIT
	case opcode.COPY_FREE_VARS:
		high = len(c.Locals)
	}
	if arg < low || arg > high {
		return malformed("%v %d: out of range (%d to %d)", op, arg, low, high)
	}
	return nil
}
