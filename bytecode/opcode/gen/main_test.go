package main

import (
	"go/format"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The committed tables must equal the tables that are generated from the committed dumps.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	dumps, err := readDumps("..")
	require.NoError(t, err)
	texts := map[string]string{"op_gen.go": opFile(dumps, allOps(dumps))}
	for _, d := range dumps {
		texts[d.base+"_gen.go"], err = versionFile(d)
		require.NoError(t, err)
	}
	for name, text := range texts {
		want, err := format.Source([]byte(text))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: run `go generate ./bytecode/opcode`", name)
	}
}

func TestDialectForms(t *testing.T) {
	for name, want := range map[string]struct {
		op                    string
		backward, noInterrupt bool
	}{
		"JUMP_FORWARD":                  {"JUMP", false, false},
		"JUMP_BACKWARD":                 {"JUMP", true, false},
		"JUMP_BACKWARD_NO_INTERRUPT":    {"JUMP", true, true},
		"POP_JUMP_FORWARD_IF_TRUE":      {"POP_JUMP_IF_TRUE", false, false},
		"POP_JUMP_BACKWARD_IF_NOT_NONE": {"POP_JUMP_IF_NOT_NONE", true, false},
		"FOR_ITER":                      {"FOR_ITER", false, false},
	} {
		op, backward, noInterrupt := (&dump{}).dialectForm(name)
		assert.Equal(t, want.op, op, name)
		assert.Equal(t, [2]bool{want.backward, want.noInterrupt}, [2]bool{backward, noInterrupt}, name)
	}
}

func TestWhatArgumentsChoose(t *testing.T) {
	joined := &dump{Opmap: map[string]int{"LOAD_ATTR": 1, "END_SEND": 2}}
	ops, bits := joined.lowBits("LOAD_ATTR")
	assert.Equal(t, []string{"LOAD_ATTR", "LOAD_METHOD"}, ops)
	assert.Equal(t, 1, bits)
	op, _, _ := joined.dialectForm("SEND")
	assert.Equal(t, "SEND_KEEP", op)
	separate := &dump{Opmap: map[string]int{"LOAD_ATTR": 1, "LOAD_METHOD": 2}}
	ops, _ = separate.lowBits("LOAD_ATTR")
	assert.Nil(t, ops)
	assert.Equal(t, []string{"", "INTRINSIC_PRINT", "UNARY_POSITIVE"},
		intrinsicOps([]string{"INTRINSIC_1_INVALID", "INTRINSIC_PRINT", "INTRINSIC_UNARY_POSITIVE"}))
}
