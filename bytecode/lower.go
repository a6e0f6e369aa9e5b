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
	if table.HasEndFor() {
		with := *code
		with.Instructions = endLoops(code.Instructions)
		code = &with
	}
	flow, err := followStack(code.Instructions)
	if err != nil {
		return nil, err
	}
	w := lowering{table: table, code: code, flow: flow, layout: make([]layout, len(code.Instructions))}
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
		StackSize: int(flow.max), NumConsts: code.NumConsts,
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
	// start is the first code unit of the instruction, which may be its PRECALL or its first EXTENDED_ARG.
	start    int32
	arg      int32 // distance, if the instruction is a jump
	opcode   uint8 // CPython's number
	extended uint8 // number of EXTENDED_ARGs
	caches   uint8
	jump     bool
	backward bool
	precall  bool
}

// units returns the number of code units that the instruction takes.
func (l *layout) units() int32 {
	n := int32(l.extended) + 1 + int32(l.caches)
	if l.precall {
		n += int32(l.extended) + 1 + precallCaches
	}
	return n
}

// precallCaches is the size of PRECALL's inline cache in 3.11, the only version that has PRECALL. A test compares it
// with the opcode table.
const precallCaches = 1

// endForUnits is the size of END_FOR. A real FOR_ITER jumps to END_FOR, in the dialect to the instruction after it.
const endForUnits = 1

// lowering is the state of one call of Lower.
type lowering struct {
	table  *opcode.Table
	code   *Code
	flow   *stackFlow
	layout []layout
	units  int32 // number of code units of the whole code
}

// choose chooses the opcode of each instruction. The direction of a jump depends only on the order of the
// instructions, not on the layout.
func (w *lowering) choose() error {
	hasPrecall := w.table.Encodings[opcode.PRECALL].Known
	for i, inst := range w.code.Instructions {
		l := &w.layout[i]
		if !stackUses[inst.Op].known || !w.table.Encodings[inst.Op].Known {
			return malformed("instruction %d: %v is not of the dialect of %d.%d", i, inst.Op, w.table.Major,
				w.table.Minor)
		}
		encoding := &w.table.Encodings[inst.Op]
		form := encoding.Forward
		if inst.Target != nil {
			l.jump, l.backward, l.extended = true, inst.Target.index <= int32(i), inst.extended
			switch {
			case l.backward && inst.NoInterrupt && encoding.NoInterrupt >= 0:
				form = encoding.NoInterrupt
			case l.backward:
				form = encoding.Backward
			}
		} else {
			if err := w.checkArg(i, inst); err != nil {
				return err
			}
			l.arg = w.realArg(inst, encoding)
			l.extended = extendedFor(l.arg)
		}
		if form < 0 {
			return malformed("instruction %d: %v cannot jump there (backward: %v)", i, inst.Op, l.backward)
		}
		l.opcode = uint8(form)
		l.caches = w.table.Forms[form].Caches
		l.precall = hasPrecall && inst.Op == opcode.CALL
	}
	return nil
}

func (w *lowering) checkArg(i int, inst *Instruction) error {
	if inst.Op.ArgKind() == opcode.ArgNone {
		if inst.Arg != 0 {
			return malformed("instruction %d: %v takes no argument", i, inst.Op)
		}
		return nil
	}
	if encoding := &w.table.Encodings[inst.Op]; inst.Arg>>(31-encoding.LowBits) != 0 ||
		inst.Arg != 0 && int(encoding.Forward) < w.table.HaveArgument {
		return malformed("instruction %d: %v %d: no such argument in %d.%d", i, inst.Op, inst.Arg, w.table.Major,
			w.table.Minor)
	}
	return w.code.checkArg(inst.Op, inst.Arg)
}

// realArg returns the argument as the version writes it.
func (w *lowering) realArg(inst *Instruction, encoding *opcode.Encoding) int32 {
	if inst.Op == opcode.COMPARE_OP {
		return int32(w.table.CompareArgs[inst.Arg])
	}
	return int32(inst.Arg)<<encoding.LowBits | int32(encoding.Low)
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
			if !l.jump {
				continue
			}
			inst := w.code.Instructions[i]
			l.arg = w.layout[inst.Target.index].start - (l.start + l.units())
			if inst.Op == opcode.FOR_ITER && w.table.HasEndFor() {
				l.arg -= endForUnits
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
	precall := w.table.Encodings[opcode.PRECALL].Forward
	out := make([]byte, 0, 2*w.units)
	lines := newLineWriter(w.code.FirstLine, len(w.layout))
	lines.merges = w.table.MergesLines
	entries := make([]ExceptionEntry, 0, 8)
	var region *ExceptionRegion
	for i, inst := range w.code.Instructions {
		l := &w.layout[i]
		if inst.Handler != region {
			if region = inst.Handler; region != nil {
				entries = append(entries, ExceptionEntry{
					Start: int(l.start), Target: int(w.layout[region.Target.index].start),
					Depth: w.flow.regionDepth(region), Lasti: region.Lasti,
				})
			}
		}
		if region != nil {
			entries[len(entries)-1].End = int(l.start + l.units())
		}
		if l.precall {
			out = w.appendUnit(out, l, uint8(precall), precallCaches)
			lines.add(int(l.extended)+1+precallCaches, inst.Pos)
		}
		inst.Offset = len(out)/2 + int(l.extended)
		out = w.appendUnit(out, l, l.opcode, l.caches)
		lines.add(int(l.extended)+1+int(l.caches), inst.Pos)
	}
	lines.finish()
	raw.Code, raw.LineTable, raw.ExceptionTable = out, lines.table, EncodeExceptionTable(entries)
}

// appendUnit writes the EXTENDED_ARGs of l, then an instruction with its argument, then its empty caches.
func (w *lowering) appendUnit(out []byte, l *layout, code, caches uint8) []byte {
	extendedArg := uint8(w.table.Encodings[opcode.EXTENDED_ARG].Forward)
	for n := int(l.extended); n > 0; n-- {
		out = append(out, extendedArg, byte(l.arg>>(8*n)))
	}
	out = append(out, code, byte(l.arg))
	for range caches {
		out = append(out, 0, 0)
	}
	return out
}
