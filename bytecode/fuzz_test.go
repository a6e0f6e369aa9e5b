package bytecode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// FuzzDecode passes arbitrary code and tables to Decode. For invalid input Decode must return an error. Otherwise all
// analyses must accept the decoded code, and the lowered code must decode again to the same instructions.
func FuzzDecode(f *testing.F) {
	for i, d := range sample(f) {
		if i%20 == 0 && len(d.Code) < 600 {
			f.Add(d.Code, d.LineTable, d.ExceptionTable, uint8(d.NumConsts), uint8(len(d.Names)),
				uint8(len(d.LocalsPlusNames)))
		}
	}
	f.Add(op311("EXTENDED_ARG", 255, "EXTENDED_ARG", 255, "JUMP_BACKWARD", 255), []byte{}, []byte{}, uint8(0),
		uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, code, lines, exceptions []byte, consts, names, locals uint8) {
		raw := &Raw{
			Code: code, LineTable: lines, ExceptionTable: exceptions, FirstLine: 1, NumConsts: int(consts),
			Names: make([]string, names), LocalsPlusNames: make([]string, locals),
			LocalsPlusKinds: make([]byte, locals),
		}
		_, _ = Disassemble(raw, py311)
		decoded, err := Decode(raw, py311)
		if err != nil {
			assert.ErrorIs(t, err, ErrMalformed)
			return
		}
		live, reached := Liveness(decoded), Reachable(decoded)
		require.True(t, reached[decoded.Instructions[0]])
		require.Len(t, live, len(decoded.Instructions))
		clone := decoded.Clone()
		lowered, err := Lower(decoded, py311)
		if err != nil {
			assert.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := Decode(lowered, py311)
		require.NoError(t, err)
		requireSameCode(t, clone, again)
		fixed, err := Lower(again, py311)
		require.NoError(t, err)
		assert.Equal(t, lowered, fixed, "lowering what was lowered changes nothing")
	})
}

// requireSameCode compares two instruction lists. Targets and handlers are compared by their indexes.
func requireSameCode(t testing.TB, want, got *Code) {
	require.Len(t, got.Instructions, len(want.Instructions))
	number(want.Instructions)
	number(got.Instructions)
	for i, x := range want.Instructions {
		y := got.Instructions[i]
		require.Equal(t, [3]any{x.Op, x.Arg, x.NoInterrupt && x.Target.index <= x.index},
			[3]any{y.Op, y.Arg, y.NoInterrupt}, "instruction %d", i)
		require.Equal(t, x.Target == nil, y.Target == nil)
		if x.Target != nil {
			require.Equal(t, x.Target.index, y.Target.index, "target of instruction %d", i)
		}
		require.Equal(t, x.Handler == nil, y.Handler == nil, "handler of instruction %d", i)
		if x.Handler != nil {
			require.Equal(t, [3]any{x.Handler.Target.index, x.Handler.Depth, x.Handler.Lasti},
				[3]any{y.Handler.Target.index, y.Handler.Depth, y.Handler.Lasti})
		}
		require.Equal(t, normalPosition(x.Pos), y.Pos, "position of instruction %d", i)
	}
}

// normalPosition returns p as it is read back from a line table.
func normalPosition(p Position) Position {
	entries, _ := DecodeLineTable(EncodeLineTable([]LineEntry{{1, p}}, 0), 0)
	return entries[0].Pos
}

// FuzzExceptionTable checks that a decoded exception table stays the same when it is encoded and decoded again.
func FuzzExceptionTable(f *testing.F) {
	for _, d := range sample(f) {
		if n := len(d.ExceptionTable); n > 0 && n < 40 {
			f.Add(d.ExceptionTable)
		}
	}
	f.Fuzz(func(t *testing.T, table []byte) {
		entries, err := DecodeExceptionTable(table)
		if err != nil {
			assert.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := DecodeExceptionTable(EncodeExceptionTable(entries))
		require.NoError(t, err)
		assert.Equal(t, entries, again)
	})
}

// FuzzLineTable decodes a line table, encodes it, and decodes it again. The entries must stay the same, with
// normalPosition applied to their positions.
func FuzzLineTable(f *testing.F) {
	for _, d := range sample(f) {
		if len(d.LineTable) < 40 {
			f.Add(d.LineTable, uint16(d.FirstLine))
		}
	}
	f.Fuzz(func(t *testing.T, table []byte, firstLine uint16) {
		entries, err := DecodeLineTable(table, int(firstLine))
		if err != nil {
			assert.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := DecodeLineTable(EncodeLineTable(entries, int(firstLine)), int(firstLine))
		require.NoError(t, err)
		require.Len(t, again, len(entries))
		for i, e := range entries {
			assert.Equal(t, LineEntry{e.Units, normalPosition(e.Pos)}, again[i])
		}
	})
}

// FuzzJumps builds instruction lists of arbitrary jumps over arbitrary distances. Lower must keep every target.
func FuzzJumps(f *testing.F) {
	f.Add([]byte{0, 255, 3, 10, 0, 255, 7, 4}, uint16(300))
	f.Add([]byte{0, 126, 0, 127, 0, 128, 0, 129}, uint16(120))
	f.Fuzz(func(t *testing.T, plan []byte, spread uint16) {
		var list []*Instruction
		for i := 0; i+1 < len(plan) && len(list) < 4000; i += 2 {
			list = append(list, New(opcode.LOAD_CONST, 0), New(opcode.POP_JUMP_IF_TRUE, 0))
			for range int(plan[i]) % (int(spread)%300 + 1) {
				list = append(list, New(opcode.NOP, 0))
			}
		}
		list = append(list, New(opcode.LOAD_CONST, 0), New(opcode.RETURN_VALUE, 0))
		jumps := 0
		for i, inst := range list {
			if inst.Op == opcode.POP_JUMP_IF_TRUE {
				target := (int(plan[2*jumps])<<8 | int(plan[2*jumps+1])) * (int(spread) + 1) % len(list)
				// Between a push and the jump that pops it, the stack has another height. So that place is not a
				// valid target.
				if list[target].Op == opcode.POP_JUMP_IF_TRUE || list[target].Op == opcode.RETURN_VALUE {
					target--
				}
				list[i].Target = list[target]
				jumps++
			}
		}
		code := &Code{NumConsts: 1, Instructions: list}
		raw, err := Lower(code, py311)
		require.NoError(t, err)
		again, err := Decode(raw, py311)
		require.NoError(t, err)
		requireSameCode(t, code, again)
		for i, inst := range again.Instructions {
			require.Equal(t, inst.Offset, list[i].Offset)
		}
	})
}
