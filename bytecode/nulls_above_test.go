package bytecode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

func TestNullsAbove(t *testing.T) {
	load := func(arg int) *Instruction { return New(opcode.LOAD_CONST, arg) }
	null := func() *Instruction { return New(opcode.PUSH_NULL, 0) }
	last := New(opcode.RETURN_VALUE, 0)
	for name, c := range map[string]struct {
		list []*Instruction
		want []string
	}{
		"no arguments": {[]*Instruction{null(), load(0), New(opcode.CALL, 0), last},
			[]string{"LOAD_CONST 0", "PUSH_NULL", "CALL 0", "RETURN_VALUE"}},
		"a callable in two instructions": {
			[]*Instruction{null(), load(0), New(opcode.LOAD_ATTR, 0), load(1), New(opcode.CALL, 1), last},
			[]string{"LOAD_CONST 0", "LOAD_ATTR 0", "PUSH_NULL", "LOAD_CONST 1", "CALL 1", "RETURN_VALUE"}},
		"calls in arguments": {
			[]*Instruction{null(), load(0), null(), load(1), load(2), New(opcode.CALL, 1), load(3), New(opcode.CALL, 2),
				last},
			[]string{"LOAD_CONST 0", "PUSH_NULL", "LOAD_CONST 1", "PUSH_NULL", "LOAD_CONST 2", "CALL 1", "LOAD_CONST 3",
				"CALL 2", "RETURN_VALUE"}},
		"a call that makes the callable": {
			[]*Instruction{null(), null(), load(0), New(opcode.CALL, 0), load(1), New(opcode.KW_NAMES, 2),
				New(opcode.CALL, 1), last},
			[]string{"LOAD_CONST 0", "PUSH_NULL", "CALL 0", "PUSH_NULL", "LOAD_CONST 1", "KW_NAMES 2", "CALL 1",
				"RETURN_VALUE"}},
		"unpacked arguments": {
			[]*Instruction{null(), load(0), load(1), load(2), New(opcode.CALL_FUNCTION_EX, 1), last},
			[]string{"LOAD_CONST 0", "PUSH_NULL", "LOAD_CONST 1", "LOAD_CONST 2", "CALL_FUNCTION_EX 1",
				"RETURN_VALUE"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := NullsAbove(c.list)
			require.NoError(t, err)
			var got []string
			for _, inst := range out {
				got = append(got, inst.String())
			}
			assert.Equal(t, c.want, got)
		})
	}
	_, err := NullsAbove([]*Instruction{null(), last})
	assert.ErrorIs(t, err, ErrMalformed)
}

// A jump to a PUSH_NULL leads to the callable.
func TestNullsAboveMovesTargets(t *testing.T) {
	null, callee, last := New(opcode.PUSH_NULL, 0), New(opcode.LOAD_CONST, 0), New(opcode.RETURN_VALUE, 0)
	jump := NewJump(opcode.JUMP, null)
	out, err := NullsAbove([]*Instruction{jump, null, callee, New(opcode.CALL, 0), last})
	require.NoError(t, err)
	assert.Same(t, callee, jump.Target)
	assert.Same(t, null, out[2])
}
