package bytecode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// Row: S002-40
func TestAddLocalKeepsUserVariables(t *testing.T) {
	code := &Code{NumConsts: 1, Locals: []Local{
		{"___stack0", opcode.CO_FAST_LOCAL}, {"cell", opcode.CO_FAST_CELL}, {"free", opcode.CO_FAST_FREE},
	}}
	code.Instructions = []*Instruction{
		New(opcode.COPY_FREE_VARS, 1), New(opcode.MAKE_CELL, 1), New(opcode.LOAD_DEREF, 2), New(opcode.STORE_DEREF, 1),
		New(opcode.LOAD_FAST, 0), New(opcode.RETURN_VALUE, 0),
	}
	assert.Equal(t, 2, code.AddLocal("___stack0"))
	assert.Equal(t, 3, code.AddLocal("___stack0"))
	assert.Equal(t, []Local{
		{"___stack0", opcode.CO_FAST_LOCAL}, {"cell", opcode.CO_FAST_CELL}, {"___stack0_1", opcode.CO_FAST_LOCAL},
		{"___stack0_2", opcode.CO_FAST_LOCAL}, {"free", opcode.CO_FAST_FREE},
	}, code.Locals)
	args := []int{}
	for _, inst := range code.Instructions {
		args = append(args, inst.Arg)
	}
	assert.Equal(t, []int{1, 1, 4, 1, 0, 0}, args)
}

// Row: S002-40
func TestAddNameSharesNothing(t *testing.T) {
	raw := &Raw{Code: op311("LOAD_NAME", 0, "RETURN_VALUE", 0), Names: append(make([]string, 0, 8), "x")}
	code, err := Decode(raw, py311)
	require.NoError(t, err)
	assert.Equal(t, 0, code.AddName("x"))
	assert.Equal(t, 1, code.AddName("y"))
	assert.Equal(t, 1, code.AddName("y"))
	assert.Equal(t, []string{"x"}, raw.Names)
	assert.Empty(t, raw.Names[:2][1], "the array behind the names was not written either")
}

// Row: S002-39
// Row: S002-42
func TestEditedCodeDisassembles(t *testing.T) {
	// Before every sample function, a prologue of 300 instructions is inserted. It shifts all tables and lengthens
	// arguments.
	for _, d := range samples(t) {
		code, err := Decode(&d.Raw, d.Version)
		require.NoError(t, err)
		slot, index := code.AddLocal("__compiled_fn_0"), code.NumConsts
		code.NumConsts++
		var list []*Instruction
		for range 150 {
			list = append(list, New(opcode.LOAD_CONST, index), New(opcode.STORE_FAST, slot))
		}
		code.Instructions = append(list, code.Instructions...)
		raw, err := Lower(code, d.Version)
		require.NoError(t, err, "%v", d)
		rows, err := Disassemble(raw, d.Version)
		require.NoError(t, err, "%v", d)
		real := 0
		for _, row := range rows {
			// Rows between are EXTENDED_ARGs, PRECALLs and parts of an instruction of the dialect.
			if real < len(code.Instructions) && row.Offset == 2*code.Instructions[real].Offset {
				real++
				if opcode.For(d.Version.Major, d.Version.Minor).Forms[row.Opcode].Pair[0] != opcode.INVALID {
					real++ // the second of two instructions
				}
			}
		}
		require.Len(t, code.Instructions, real, "%v", d)
		again, err := Decode(raw, d.Version)
		require.NoError(t, err, "%v", d)
		requireSameCode(t, code, again)
	}
}

// The samples must contain every opcode of their version, except opcodes that no compiled module contains.
func TestSampleHasEveryOpcode(t *testing.T) {
	for version := range sampleFiles {
		t.Run(version.String(), func(t *testing.T) { checkSampleHasEveryOpcode(t, version) })
	}
}

func checkSampleHasEveryOpcode(t *testing.T, version Version) {
	seen := map[opcode.Op]bool{
		opcode.CACHE:            true, // listings leave it out
		opcode.PRINT_EXPR:       true, // used only by the interactive interpreter
		opcode.INTERPRETER_EXIT: true, // in no code object
		opcode.RESERVED:         true,
		opcode.EXIT_INIT_CHECK:  true, // in no code object
	}
	table := opcode.For(version.Major, version.Minor)
	for _, d := range sampleOf(t, version) {
		rows, err := Disassemble(&d.Raw, version)
		require.NoError(t, err)
		for _, row := range rows {
			seen[table.Forms[row.Opcode].Real] = true
		}
	}
	for _, form := range table.Forms {
		assert.True(t, form.Real == opcode.INVALID || seen[form.Real], "%v", form.Real)
	}
}
