package bytecode

import "github.com/godynamo/godynamo/bytecode/opcode"

// DisInstruction is one row of dis.get_instructions. It is a real instruction of the Python version. EXTENDED_ARG and
// PRECALL have rows of their own, but inline caches do not. The caller looks up the constants and names that `argval`
// shows.
type DisInstruction struct {
	Opcode int    // CPython's number
	OpName string // CPython's name
	HasArg bool
	// Arg includes the EXTENDED_ARGs before the instruction. It is 0 if HasArg is false.
	Arg          int
	Offset       int // in bytes, as in dis
	StartsLine   int // line that begins at this instruction, or -1
	IsJumpTarget bool
	Target       int // target of a jump, in bytes; -1 for other instructions
	Pos          Position
}

// Disassemble lists a code object's instructions as dis.get_instructions(code) does. Unlike Decode, it accepts
// unknown opcodes and arguments out of range. It returns an error only if a table cannot be read.
func Disassemble(raw *Raw, v Version) ([]DisInstruction, error) {
	table, err := tableFor(v)
	if err != nil {
		return nil, err
	}
	entries, err := DecodeLineTable(raw.LineTable, raw.FirstLine)
	if err != nil {
		return nil, err
	}
	units := len(raw.Code) / 2
	positions, starts := unitPositions(entries, units, table.LineGaps)
	rows := make([]DisInstruction, 0, units)
	isTarget := make([]bool, units)
	extended := 0
	for unit := 0; unit < units; {
		number := int(raw.Code[2*unit])
		form := &table.Forms[number]
		row := DisInstruction{
			Opcode: number, OpName: form.Real.String(), Offset: 2 * unit,
			StartsLine: int(starts[unit]), Target: -1, Pos: positions[unit],
		}
		arg := extended<<8 | int(raw.Code[2*unit+1])
		extended = 0
		if number >= table.HaveArgument {
			row.HasArg, row.Arg = true, arg
		}
		if form.Real == opcode.EXTENDED_ARG {
			if arg > maxUnits {
				return nil, malformed("argument too large at %d", unit)
			}
			extended = arg
		}
		if form.Jump || form.PointsBack {
			target := unit + 1 + int(form.Caches) + arg
			if form.Backward || form.PointsBack {
				target = unit + 1 + int(form.Caches) - arg
			}
			row.Target = 2 * target
			if target >= 0 && target < units {
				isTarget[target] = true
			}
		}
		rows = append(rows, row)
		unit += 1 + int(form.Caches)
	}
	for i := range rows {
		rows[i].IsJumpTarget = isTarget[rows[i].Offset/2]
	}
	return rows, nil
}

// unitPositions expands a line table to n code units. positions has the position of each unit. starts has the line
// that begins at the unit, or -1. With gaps, a line begins again after units without a line.
func unitPositions(entries []LineEntry, n int, gaps bool) (positions []Position, starts []int32) {
	positions, starts = make([]Position, n), make([]int32, n)
	for i := range positions {
		positions[i], starts[i] = NoPosition, -1
	}
	unit, line := 0, int32(-1)
	for _, e := range entries {
		if unit < n && e.Pos.Line >= 0 && e.Pos.Line != line {
			line = e.Pos.Line
			starts[unit] = line
		} else if gaps && e.Pos.Line < 0 {
			line = -1
		}
		for end := unit + e.Units; unit < end; unit++ {
			if unit < n {
				positions[unit] = e.Pos
			}
		}
	}
	return positions, starts
}
