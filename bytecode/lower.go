package bytecode

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
)

// Lower writes code for a Python version. It chooses the forms and distances of jumps, writes EXTENDED_ARG, PRECALL,
// inline caches, the exception table and the line table, and computes the stack size from the control flow.
// Instructions keep their order. Lower sets their Offset to their place in the written code. If it returns an error,
// which wraps ErrMalformed or ErrVersion, nothing has changed.
//
// Not every instruction list can be lowered. Jumps other than JUMP and POP_JUMP_IF_* must go forward, since 3.11 has
// no backward form of them.
func Lower(code *Code, v Version) (*Raw, error) {
	table, err := tableFor(v)
	if err != nil {
		return nil, err
	}
	if err := checkHeader(code); err != nil {
		return nil, err
	}
	if err := link(code.Instructions); err != nil {
		return nil, err
	}
	if len(table.LoopEnd) > 0 {
		with := *code
		with.Instructions = endLoops(code.Instructions, table.LoopEnd)
		code = &with
	}
	flow, err := followStack(code.Instructions)
	if err != nil {
		return nil, err
	}
	w := lowering{table: table, code: code, flow: flow, layout: make([]layout, len(code.Instructions))}
	if table.Truth() {
		w.targets = targetsOf(code.Instructions)
	}
	if table.Encodings[opcode.LOAD_FAST].Borrowed > 0 {
		w.intact = w.intactBlocks()
	}
	if err := w.choose(); err != nil {
		return nil, err
	}
	if err := w.relax(); err != nil {
		return nil, err
	}
	raw := &Raw{
		Name: code.Name, QualName: code.QualName, Filename: code.Filename,
		Flags: code.Flags, FirstLine: code.FirstLine,
		ArgCount: code.ArgCount, PosOnlyArgCount: code.PosOnlyArgCount, KwOnlyArgCount: code.KwOnlyArgCount,
		StackSize: max(int(flow.max), w.least, table.LeastStack), NumConsts: code.NumConsts,
		Names:           code.Names,
		LocalsPlusNames: make([]string, len(code.Locals)),
		LocalsPlusKinds: make([]byte, len(code.Locals)),
	}
	for i, local := range code.Locals {
		raw.LocalsPlusNames[i], raw.LocalsPlusKinds[i] = local.Name, local.Kind
	}
	w.write(raw)
	return raw, nil
}

// layout describes where and how one instruction is written.
type layout struct {
	// start is the first code unit of the instruction, which may be one of before or its first EXTENDED_ARG.
	start    int32
	arg      int32 // distance, if the instruction is a jump
	opcode   uint8 // CPython's number
	extended uint8 // number of EXTENDED_ARGs
	caches   uint8
	jump     bool
	from     bool // arg is the distance to From
	backward bool
	second   bool // the instruction before does this one as well
	before   []unit
	after    []unit
}

// units returns the number of code units that the instruction takes.
func (l *layout) units() int32 {
	if l.second {
		return 0
	}
	n := int32(l.extended) + 1 + int32(l.caches)
	for _, u := range l.before {
		n += u.size()
	}
	for _, u := range l.after {
		n += u.size()
	}
	return n
}

// lowering is the state of one call of Lower.
type lowering struct {
	table  *opcode.Table
	code   *Code
	flow   *stackFlow
	layout []layout
	units  int32 // number of code units of the whole code
	// targets has the instructions at which jumps and handlers point, if the version needs them.
	targets map[*Instruction]bool
	intact  []bool // for each instruction, whether the rest of its basic block is unchanged; only if it is needed
	least   int    // stack size that forms of the version need that push more than the dialect's
}

// choose chooses the opcode of each instruction. The direction of a jump depends only on the order of the
// instructions, not on the layout.
func (w *lowering) choose() error {
	for i, inst := range w.code.Instructions {
		l := &w.layout[i]
		if l.second {
			continue
		}
		written := w.form(i, inst)
		if !stackUses[inst.Op].known || !w.table.Encodings[written.op].Known {
			return malformed("instruction %d: %v is not of the dialect of %d.%d", i, inst.Op, w.table.Major,
				w.table.Minor)
		}
		l.before, l.after = written.before, written.after
		encoding := &w.table.Encodings[written.op]
		form := encoding.Forward
		switch {
		case inst.From != nil && isNumbered(w.code.Instructions, inst.From):
			l.from, l.backward, l.extended = true, true, inst.extended
		case inst.Target != nil:
			l.jump, l.backward, l.extended = true, inst.Target.index <= int32(i), inst.extended
			switch {
			case l.backward && inst.NoInterrupt && encoding.NoInterrupt >= 0:
				form = encoding.NoInterrupt
			case l.backward:
				form = encoding.Backward
			}
		default:
			if err := w.checkArg(i, inst, written); err != nil {
				return err
			}
			l.arg = w.realArg(i, written, encoding)
			if encoding.Borrowed > 0 && w.borrows(i) {
				form = int16(encoding.Borrowed)
			}
			if number := w.joins(i); number >= 0 {
				form = int16(number)
				l.arg = l.arg<<4 | int32(w.code.Instructions[i+1].Arg)
				w.layout[i+1].second = true
			}
			l.extended = extendedFor(l.arg)
		}
		if form < 0 {
			return malformed("instruction %d: %v cannot jump there (backward: %v)", i, inst.Op, l.backward)
		}
		l.opcode = uint8(form)
		l.caches = w.table.Forms[form].Caches
	}
	return nil
}

func (w *lowering) checkArg(i int, inst *Instruction, written form) error {
	if inst.Op.ArgKind() == opcode.ArgNone {
		if inst.Arg != 0 {
			return malformed("instruction %d: %v takes no argument", i, inst.Op)
		}
		return nil
	}
	if encoding := &w.table.Encodings[written.op]; inst.Arg>>(31-encoding.LowBits) != 0 ||
		written.arg != 0 && int(encoding.Forward) < w.table.HaveArgument {
		return malformed("instruction %d: %v %d: no such argument in %d.%d", i, inst.Op, inst.Arg, w.table.Major,
			w.table.Minor)
	}
	return w.code.checkArg(inst.Op, inst.Arg)
}

// realArg returns the argument of instruction i as the version writes it.
func (w *lowering) realArg(i int, written form, encoding *opcode.Encoding) int32 {
	if written.op == opcode.COMPARE_OP {
		arg := int32(w.table.CompareArgs[written.arg])
		if w.code.Instructions[i].makesBool && i+1 < len(w.code.Instructions) && w.follows(i+1) {
			arg |= int32(w.table.CompareBool)
		}
		return arg
	}
	return int32(written.arg)<<encoding.LowBits | int32(encoding.Low)
}

// extendedFor returns the number of EXTENDED_ARGs that an argument needs.
func extendedFor(arg int32) uint8 {
	switch {
	case arg < 1<<8:
		return 0
	case arg < 1<<16:
		return 1
	case arg < 1<<24:
		return 2
	}
	return 3
}

// relax places the instructions. At first, jumps have only the EXTENDED_ARGs of the decoded code. Jumps that do not
// reach their target are lengthened until every jump reaches it. Lengths only grow, so this ends. New jumps are as
// short as this order allows.
func (w *lowering) relax() error {
	for grown := true; grown; {
		grown = false
		at := int64(0)
		for i := range w.layout {
			w.layout[i].start = int32(at)
			at += int64(w.layout[i].units())
		}
		if at > maxUnits {
			return malformed("%d code units are too many", at)
		}
		w.units = int32(at)
		for i := range w.layout {
			l := &w.layout[i]
			if !l.jump && !l.from {
				continue
			}
			inst := w.code.Instructions[i]
			target := inst.Target
			if l.from {
				target = inst.From
			}
			l.arg = w.layout[target.index].start - (l.start + l.units())
			if inst.Op == opcode.FOR_ITER {
				l.arg -= int32(len(w.table.LoopEnd)) // each is one code unit
			}
			if l.backward {
				l.arg = -l.arg
			}
			if need := extendedFor(l.arg); need > l.extended {
				l.extended, grown = need, true
			}
		}
	}
	return nil
}

// write fills in the code and the tables of raw, and sets the offsets of the instructions.
func (w *lowering) write(raw *Raw) {
	out := make([]byte, 0, 2*w.units)
	lines := newLineWriter(w.code.FirstLine, len(w.layout))
	lines.merges = w.table.MergesLines
	entries := make([]ExceptionEntry, 0, 8)
	var region *ExceptionRegion
	for i, inst := range w.code.Instructions {
		l := &w.layout[i]
		handler := inst.Handler
		if inst.bare && w.follows(i) {
			handler = nil
		}
		if handler != region {
			if region = handler; region != nil {
				entries = append(entries, ExceptionEntry{
					Start: int(l.start), Target: int(w.layout[region.Target.index].start),
					Depth: w.flow.regionDepth(region), Lasti: region.Lasti,
				})
			}
		}
		if region != nil {
			entries[len(entries)-1].End = int(l.start + l.units())
		}
		if l.second {
			inst.Offset = w.code.Instructions[i-1].Offset
			continue
		}
		for _, u := range l.before {
			out = w.appendUnit(out, u)
			lines.add(int(u.size()), inst.Pos)
		}
		inst.Offset = len(out)/2 + int(l.extended)
		u := unit{l.opcode, l.caches, l.extended, l.arg}
		out = w.appendUnit(out, u)
		lines.add(int(u.size()), inst.Pos)
		for _, u := range l.after {
			out = w.appendUnit(out, u)
			lines.add(int(u.size()), inst.Pos)
		}
	}
	lines.finish()
	raw.Code, raw.LineTable, raw.ExceptionTable = out, lines.table, EncodeExceptionTable(entries)
}

// appendUnit writes the EXTENDED_ARGs of an instruction, then the instruction, then its empty caches.
func (w *lowering) appendUnit(out []byte, u unit) []byte {
	extendedArg := uint8(w.table.Encodings[opcode.EXTENDED_ARG].Forward)
	for n := int(u.extended); n > 0; n-- {
		out = append(out, extendedArg, byte(u.arg>>(8*n)))
	}
	out = append(out, u.opcode, byte(u.arg))
	for range u.caches {
		out = append(out, 0, 0)
	}
	return out
}
