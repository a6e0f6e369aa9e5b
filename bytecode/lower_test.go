package bytecode

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// names returns the opcode names that dis would show for lowered code.
func names(t testing.TB, raw *Raw) []string {
	rows, err := Disassemble(raw, py311)
	require.NoError(t, err)
	list := make([]string, len(rows))
	for i, row := range rows {
		list[i] = row.OpName
	}
	return list
}

// Row: S002-39
func TestLowerChoosesJumpForms(t *testing.T) {
	cases := []struct {
		op                opcode.Op
		noInterrupt       bool
		forward, backward string
	}{
		{opcode.JUMP, false, "JUMP_FORWARD", "JUMP_BACKWARD"},
		{opcode.JUMP, true, "JUMP_FORWARD", "JUMP_BACKWARD_NO_INTERRUPT"},
		{opcode.POP_JUMP_IF_FALSE, false, "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE"},
		{opcode.POP_JUMP_IF_TRUE, false, "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE"},
		{opcode.POP_JUMP_IF_NONE, false, "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE"},
		{opcode.POP_JUMP_IF_NOT_NONE, false, "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE"},
		{opcode.JUMP_IF_FALSE_OR_POP, false, "JUMP_IF_FALSE_OR_POP", ""},
		{opcode.JUMP_IF_TRUE_OR_POP, false, "JUMP_IF_TRUE_OR_POP", ""},
		{opcode.SEND, false, "SEND", ""},
		{opcode.FOR_ITER, false, "FOR_ITER", ""},
	}
	for _, c := range cases {
		t.Run(c.forward+" "+c.backward, func(t *testing.T) {
			for _, backward := range []bool{false, true} {
				pops, pushes := StackUse(&Instruction{Op: c.op}, true)
				goOn := StackEffect(&Instruction{Op: c.op}, false)
				// The target expects the stack as the jump leaves it. If the jump is not taken, the code returns.
				first, target := New(opcode.NOP, 0), New(opcode.NOP, 0)
				jump := NewJump(c.op, target)
				jump.NoInterrupt = c.noInterrupt
				list := []*Instruction{first}
				for range 2 {
					list = append(list, New(opcode.LOAD_CONST, 0))
				}
				depth := 2 + pushes - pops
				rest := []*Instruction{jump}
				if c.op != opcode.JUMP {
					rest = append(rest, returnFrom(2+goOn)...)
				}
				if backward {
					// The code is: first, a JUMP over the target's block, the block, the jump.
					over := New(opcode.NOP, 0)
					block := append([]*Instruction{target}, returnFrom(depth)...)
					list = append(list, NewJump(opcode.JUMP, over))
					list = append(append(list, block...), over)
					list = append(list, rest...)
				} else {
					list = append(append(append(list, rest...), target), returnFrom(depth)...)
				}
				code := assemble(list...)
				raw, err := Lower(code, py311)
				if backward && c.backward == "" {
					require.ErrorIs(t, err, ErrMalformed)
					continue
				}
				require.NoError(t, err)
				want := c.forward
				if backward {
					want = c.backward
				}
				assert.Contains(t, names(t, raw), want)
				again, err := Decode(raw, py311)
				require.NoError(t, err)
				requireSameCode(t, code, again)
			}
		})
	}
}

// returnFrom returns instructions that empty a stack of the given depth and return.
func returnFrom(depth int) []*Instruction {
	var list []*Instruction
	for range depth {
		list = append(list, New(opcode.POP_TOP, 0))
	}
	return append(list, New(opcode.LOAD_CONST, 0), New(opcode.RETURN_VALUE, 0))
}

// Row: S002-41
func TestLowerWritesPrecallAndCaches(t *testing.T) {
	code := assemble(
		New(opcode.RESUME, 0), New(opcode.LOAD_GLOBAL, 1), New(opcode.LOAD_FAST, 0), New(opcode.KW_NAMES, 1),
		New(opcode.CALL, 1),
		New(opcode.LOAD_CONST, 1), New(opcode.BINARY_OP, int(opcode.NB_ADD)), New(opcode.RETURN_VALUE, 0),
	)
	raw, err := Lower(code, py311)
	require.NoError(t, err)
	assert.Equal(t, op311(
		"RESUME", 0, "LOAD_GLOBAL", 1, "CACHE", 0, "CACHE", 0, "CACHE", 0, "CACHE", 0, "CACHE", 0,
		"LOAD_FAST", 0, "KW_NAMES", 1, "PRECALL", 1, "CACHE", 0, "CALL", 1, "CACHE", 0, "CACHE", 0, "CACHE",
		0, "CACHE", 0,
		"LOAD_CONST", 1, "BINARY_OP", 0, "CACHE", 0, "RETURN_VALUE", 0,
	), raw.Code)
	assert.Equal(t, 3, raw.StackSize)
	offsets := []int{}
	for _, inst := range code.Instructions {
		offsets = append(offsets, inst.Offset)
	}
	assert.Equal(t, []int{0, 1, 7, 8, 11, 16, 17, 19}, offsets)
	lines, err := DecodeLineTable(raw.LineTable, 1)
	require.NoError(t, err)
	units := 0
	for _, e := range lines {
		assert.Equal(t, NoPosition, e.Pos)
		units += e.Units
	}
	assert.Equal(t, len(raw.Code)/2, units)
}

// Row: S002-39
func TestLowerExtendsArguments(t *testing.T) {
	for arg, want := range map[int]int{255: 0, 256: 1, 65535: 1, 65536: 2, 1<<24 - 1: 2, 1 << 24: 3, 1<<31 - 1: 3} {
		code := assemble(New(opcode.LOAD_CONST, arg), New(opcode.RETURN_VALUE, 0))
		code.NumConsts = 1 << 32
		raw, err := Lower(code, py311)
		require.NoError(t, err)
		assert.Equal(t, 2*(want+2), len(raw.Code), "argument %d", arg)
		assert.Equal(t, want, code.Instructions[0].Offset)
		again, err := Decode(raw, py311)
		require.NoError(t, err)
		assert.Equal(t, arg, again.Instructions[0].Arg)
	}
}

// Row: S002-39
func TestLowerRelaxesJumpsToFixpoint(t *testing.T) {
	// Jump i is at 100i+1. It jumps over 255 units, which include the next two jumps. The last jump goes over 256
	// units. So the last jump needs an EXTENDED_ARG. This makes the two jumps before it longer, and so on to the
	// first.
	const jumps, reach = 8, 255
	list := make([]*Instruction, 100*jumps+2*reach)
	for i := range list {
		list[i] = New(opcode.NOP, 0)
	}
	for i := range jumps {
		at, far := 100*i+1, reach
		if i == jumps-1 {
			far++
		}
		list[at-1], list[at] = New(opcode.LOAD_CONST, 0), NewJump(opcode.POP_JUMP_IF_TRUE, list[at+1+far])
	}
	list = append(list, returnFrom(0)...)
	code := assemble(list...)
	raw, err := Lower(code, py311)
	require.NoError(t, err)
	assert.Equal(t, jumps, strings.Count(strings.Join(names(t, raw), " "), "EXTENDED_ARG"))

	again, err := Decode(raw, py311)
	require.NoError(t, err)
	requireSameCode(t, code, again)

	list[100*jumps-99].Target = list[100*jumps-99+1+reach]
	raw, err = Lower(code, py311)
	require.NoError(t, err)
	assert.NotContains(t, names(t, raw), "EXTENDED_ARG", "with the last jump one shorter none is needed")
}

// Row: S002-39
func TestLowerWritesInnermostRegion(t *testing.T) {
	outer, inner := New(opcode.RERAISE, 0), New(opcode.RERAISE, 0)
	outside := &ExceptionRegion{Target: outer, Depth: 0}
	inside := &ExceptionRegion{Target: inner, Depth: DepthAtEntry, Lasti: true}
	covered := func(r *ExceptionRegion, list ...*Instruction) []*Instruction {
		for _, inst := range list {
			inst.Handler = r
		}
		return list
	}
	var list []*Instruction
	list = append(list, covered(outside, New(opcode.LOAD_CONST, 0))...)
	list = append(list, covered(inside, New(opcode.LOAD_CONST, 0), New(opcode.POP_TOP, 0))...)
	list = append(list, covered(outside, New(opcode.POP_TOP, 0))...)
	list = append(list, New(opcode.LOAD_CONST, 1), New(opcode.RETURN_VALUE, 0))
	list = append(list, covered(outside, inner)...)
	list = append(list, outer)
	raw, err := Lower(assemble(list...), py311)
	require.NoError(t, err)
	entries, err := DecodeExceptionTable(raw.ExceptionTable)
	require.NoError(t, err)
	assert.Equal(t, []ExceptionEntry{
		{0, 1, 7, 0, false}, {1, 3, 6, 1, true}, {3, 4, 7, 0, false}, {6, 7, 7, 0, false},
	}, entries)
	assert.Equal(t, 3, raw.StackSize, "the inner handler finds one value, the saved offset and the exception")
}

func TestLowerFindsDepthBehindAnotherHandler(t *testing.T) {
	// Control enters the second region only from the handler of the first.
	first, second := New(opcode.PUSH_EXC_INFO, 0), New(opcode.RERAISE, 0)
	body := New(opcode.LOAD_CONST, 0)
	body.Handler = &ExceptionRegion{Target: first, Depth: DepthAtEntry}
	nested := New(opcode.POP_TOP, 0)
	nested.Handler = &ExceptionRegion{Target: second, Depth: DepthAtEntry, Lasti: true}
	code := assemble(body, New(opcode.RETURN_VALUE, 0), first, nested, New(opcode.POP_EXCEPT, 0),
		New(opcode.LOAD_CONST, 0), New(opcode.RETURN_VALUE, 0), second)
	raw, err := Lower(code, py311)
	require.NoError(t, err)
	entries, err := DecodeExceptionTable(raw.ExceptionTable)
	require.NoError(t, err)
	assert.Equal(t, []ExceptionEntry{{0, 1, 2, 0, false}, {3, 4, 7, 2, true}}, entries)
	assert.Equal(t, 4, raw.StackSize)
}

func TestLowerChangesNothingOnError(t *testing.T) {
	loop := New(opcode.LOAD_CONST, 0)
	code := assemble(loop, NewJump(opcode.JUMP_IF_TRUE_OR_POP, loop), New(opcode.LOAD_CONST, 0),
		New(opcode.RETURN_VALUE, 0))
	_, err := Lower(code, py311)
	require.ErrorIs(t, err, ErrMalformed)
	for _, inst := range code.Instructions {
		assert.Equal(t, -1, inst.Offset)
	}
}

func TestLowerRefusesArguments(t *testing.T) {
	for name, inst := range map[string]*Instruction{
		"constant out of range":        New(opcode.LOAD_CONST, 2),
		"negative constant":            New(opcode.LOAD_CONST, -1),
		"local out of range":           New(opcode.LOAD_FAST, 3),
		"argument where there is none": New(opcode.LOAD_BUILD_CLASS, 1),
		"argument above 31 bits":       New(opcode.BUILD_LIST, 1<<31),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Lower(assemble(inst, New(opcode.LOAD_CONST, 0), New(opcode.RETURN_VALUE, 0)), py311)
			assert.ErrorIs(t, err, ErrMalformed)
		})
	}
}

func TestCloneIsIndependent(t *testing.T) {
	code := sampleCode(t, "exceptions")
	clone := code.Clone()
	requireSameCode(t, code, clone)
	mine := map[*Instruction]bool{}
	for _, inst := range code.Instructions {
		mine[inst] = true
	}
	regions := map[*ExceptionRegion]bool{}
	for i, inst := range clone.Instructions {
		require.False(t, mine[inst])
		if inst.Target != nil {
			require.False(t, mine[inst.Target])
		}
		if inst.Handler != nil {
			require.NotSame(t, code.Instructions[i].Handler, inst.Handler)
			require.False(t, mine[inst.Handler.Target])
			regions[inst.Handler] = true
		}
	}
	original := map[*ExceptionRegion]bool{}
	for _, inst := range code.Instructions {
		if inst.Handler != nil {
			original[inst.Handler] = true
		}
	}
	assert.Len(t, regions, len(original), "regions stay shared")
	want, err := Lower(code, py311)
	require.NoError(t, err)
	clone.Instructions[0].Arg, clone.Names[0], clone.Locals[0].Name = 1, "changed", "changed"
	got, err := Lower(code, py311)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// codes returns the names of the opcodes of written code.
func codes(t *testing.T, raw *Raw, v Version) (names []string) {
	rows, err := Disassemble(raw, v)
	require.NoError(t, err)
	for _, row := range rows {
		names = append(names, row.OpName)
	}
	return names
}

func TestLowerChoosesTheFormsOfTheVersion(t *testing.T) {
	code := assemble(New(opcode.LOAD_FAST, 0), New(opcode.LOAD_METHOD, 1), New(opcode.CALL, 0),
		New(opcode.UNARY_POSITIVE, 0), New(opcode.LOAD_CONST, 0), New(opcode.COMPARE_OP, int(opcode.CMP_EQ)),
		New(opcode.RETURN_VALUE, 0))
	raw, err := Lower(code, py311)
	require.NoError(t, err)
	assert.Equal(t, []string{"LOAD_FAST", "LOAD_METHOD", "PRECALL", "CALL", "UNARY_POSITIVE", "LOAD_CONST",
		"COMPARE_OP", "RETURN_VALUE"}, codes(t, raw, py311))
	raw, err = Lower(code, py312)
	require.NoError(t, err)
	assert.Equal(t, []string{"LOAD_FAST", "LOAD_ATTR", "CALL", "CALL_INTRINSIC_1", "LOAD_CONST", "COMPARE_OP",
		"RETURN_VALUE"}, codes(t, raw, py312))
	again, err := Decode(raw, py312)
	require.NoError(t, err)
	for i, inst := range code.Instructions {
		assert.Equal(t, inst.Op, again.Instructions[i].Op)
		assert.Equal(t, inst.Arg, again.Instructions[i].Arg)
	}
}

func TestLowerEndsLoopsWhereTheVersionWantsIt(t *testing.T) {
	for name, before := range map[string][]*Instruction{
		"after a return":          {New(opcode.RETURN_VALUE, 0)},
		"after code that goes on": {New(opcode.POP_TOP, 0), New(opcode.POP_TOP, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			end, loop := New(opcode.LOAD_CONST, 0), NewJump(opcode.FOR_ITER, nil)
			loop.Target = end
			list := append([]*Instruction{New(opcode.LOAD_FAST, 0), loop}, before...)
			want := []string{"LOAD_FAST", "FOR_ITER"}
			for _, inst := range before {
				want = append(want, inst.Op.String())
			}
			if len(before) == 2 {
				want = append(want, "JUMP_FORWARD")
			}
			want = append(want, "END_FOR", "LOAD_CONST", "RETURN_VALUE")
			code := assemble(append(list, end, New(opcode.RETURN_VALUE, 0))...)
			raw, err := Lower(code, py312)
			require.NoError(t, err)
			assert.Equal(t, want, codes(t, raw, py312))
			again, err := Decode(raw, py312)
			require.NoError(t, err)
			assert.Equal(t, opcode.LOAD_CONST, again.Instructions[1].Target.Op)
			twice, err := Lower(again, py312)
			require.NoError(t, err)
			assert.Equal(t, raw.Code, twice.Code)
			_, err = Lower(code, py311)
			require.NoError(t, err, "3.11 needs none")
		})
	}
}

func TestLowerRefusesWhatTheVersionLacks(t *testing.T) {
	for version, op := range map[Version]opcode.Op{py311: opcode.LOAD_FAST_CHECK, py312: opcode.LOAD_CLASSDEREF} {
		_, err := Lower(assemble(New(op, 0), New(opcode.RETURN_VALUE, 0)), version)
		assert.ErrorIs(t, err, ErrMalformed, "%v", op)
	}
	_, err := Lower(assemble(New(opcode.LOAD_CONST, 0), New(opcode.YIELD_VALUE, 1), New(opcode.RETURN_VALUE, 0)), py311)
	assert.ErrorIs(t, err, ErrMalformed, "3.11's YIELD_VALUE has no argument")
}

// written313 returns the opcodes and arguments of code that is written for 3.13, without the arguments of jumps.
func written313(t *testing.T, code *Code) (out []string) {
	raw, err := Lower(code, py313)
	require.NoError(t, err)
	rows, err := Disassemble(raw, py313)
	require.NoError(t, err)
	for _, row := range rows {
		text := row.OpName
		if row.HasArg && row.Target < 0 {
			text += " " + strconv.Itoa(row.Arg)
		}
		out = append(out, text)
	}
	return out
}

func TestLowerWritesSeveralInstructionsForOne(t *testing.T) {
	load := func() *Instruction { return New(opcode.LOAD_CONST, 0) }
	last := New(opcode.RETURN_VALUE, 0)
	for name, c := range map[string]struct {
		list []*Instruction
		want []string
	}{
		"a call with names": {
			[]*Instruction{load(), New(opcode.PUSH_NULL, 0), load(), New(opcode.KW_NAMES, 1), New(opcode.CALL, 1),
				last},
			[]string{"LOAD_CONST 0", "PUSH_NULL", "LOAD_CONST 0", "LOAD_CONST 1", "CALL_KW 1", "RETURN_VALUE"}},
		"a format": {[]*Instruction{load(), New(opcode.FORMAT_VALUE, 0), last},
			[]string{"LOAD_CONST 0", "FORMAT_SIMPLE", "RETURN_VALUE"}},
		"a conversion": {[]*Instruction{load(), New(opcode.FORMAT_VALUE, 2), last},
			[]string{"LOAD_CONST 0", "CONVERT_VALUE 2", "FORMAT_SIMPLE", "RETURN_VALUE"}},
		"a conversion below a specification": {[]*Instruction{load(), load(), New(opcode.FORMAT_VALUE, 6), last},
			[]string{"LOAD_CONST 0", "LOAD_CONST 0", "SWAP 2", "CONVERT_VALUE 2", "SWAP 2", "FORMAT_WITH_SPEC",
				"RETURN_VALUE"}},
		"a function with defaults and a closure": {
			[]*Instruction{load(), load(), load(), New(opcode.MAKE_FUNCTION, 9), last},
			[]string{"LOAD_CONST 0", "LOAD_CONST 0", "LOAD_CONST 0", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE 8",
				"SET_FUNCTION_ATTRIBUTE 1", "RETURN_VALUE"}},
		"a branch": {
			[]*Instruction{load(), load(), New(opcode.UNARY_NOT, 0), NewJump(opcode.POP_JUMP_IF_TRUE, last), last},
			[]string{"LOAD_CONST 0", "LOAD_CONST 0", "TO_BOOL", "UNARY_NOT", "TO_BOOL", "POP_JUMP_IF_TRUE",
				"RETURN_VALUE"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, written313(t, assemble(c.list...))) })
	}
	code := assemble(load(), New(opcode.PUSH_NULL, 0), load(), New(opcode.KW_NAMES, 1), New(opcode.CALL, 1), last)
	raw, err := Lower(code, py313)
	require.NoError(t, err)
	assert.Equal(t, 4, raw.StackSize, "the names are on the stack")
}

// Two instructions that CPython does in one, or a comparison that makes a bool, stay so only while they are neighbours
// that nothing else reaches.
func TestLowerKeepsForms313(t *testing.T) {
	last := New(opcode.RETURN_VALUE, 0)
	compared := assemble(New(opcode.LOAD_FAST, 0), New(opcode.LOAD_FAST, 1), New(opcode.COMPARE_OP, 0),
		NewJump(opcode.POP_JUMP_IF_FALSE, last), New(opcode.LOAD_FAST, 0), New(opcode.RETURN_VALUE, 0),
		New(opcode.LOAD_FAST, 0), last)
	compared.Instructions[3].Target = compared.Instructions[6]
	for i, inst := range compared.Instructions {
		inst.order = int32(i + 1)
	}
	compared.Instructions[0].joined, compared.Instructions[2].makesBool = true, true
	assert.Equal(t, []string{"LOAD_FAST_LOAD_FAST 1", "COMPARE_OP 18", "POP_JUMP_IF_FALSE", "LOAD_FAST 0",
		"RETURN_VALUE", "LOAD_FAST 0", "RETURN_VALUE"}, written313(t, compared))
	branch := compared.Instructions[3]
	entered := *compared
	entered.Instructions = append([]*Instruction{New(opcode.LOAD_CONST, 0), NewJump(opcode.JUMP, branch)},
		compared.Instructions...)
	assert.Equal(t, []string{"LOAD_CONST 0", "JUMP_FORWARD", "LOAD_FAST_LOAD_FAST 1", "COMPARE_OP 2", "TO_BOOL",
		"POP_JUMP_IF_FALSE", "LOAD_FAST 0", "RETURN_VALUE", "LOAD_FAST 0", "RETURN_VALUE"}, written313(t, &entered))
	second := compared.Instructions[1]
	entered.Instructions = append([]*Instruction{New(opcode.LOAD_CONST, 0), NewJump(opcode.JUMP, second)},
		compared.Instructions...)
	assert.Equal(t, []string{"LOAD_FAST 0", "LOAD_FAST 1", "COMPARE_OP 18", "POP_JUMP_IF_FALSE"},
		written313(t, &entered)[2:6])
}
