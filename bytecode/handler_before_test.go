package bytecode

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// The code unit before a call has the call's handler, which may be none.
func TestHandlersBefore(t *testing.T) {
	last := New(opcode.RETURN_VALUE, 0)
	region := &ExceptionRegion{Target: last}
	in := func(op opcode.Op) *Instruction {
		inst := New(op, 0)
		inst.Handler = region
		return inst
	}
	for name, c := range map[string]struct {
		list []*Instruction
		want []string
	}{
		"begins a region": {[]*Instruction{New(opcode.LOAD_CONST, 0), in(opcode.CALL), last},
			[]string{"LOAD_CONST 0", "NOP in", "CALL 0 in", "RETURN_VALUE"}},
		"inside": {[]*Instruction{in(opcode.LOAD_CONST), in(opcode.CALL), last},
			[]string{"LOAD_CONST 0 in", "CALL 0 in", "RETURN_VALUE"}},
		"after a region": {[]*Instruction{in(opcode.LOAD_CONST), New(opcode.CALL, 0), last},
			[]string{"LOAD_CONST 0 in", "NOP", "CALL 0", "RETURN_VALUE"}},
		"with keywords": {[]*Instruction{New(opcode.LOAD_CONST, 0), New(opcode.KW_NAMES, 0), in(opcode.CALL), last},
			[]string{"LOAD_CONST 0", "KW_NAMES 0 in", "CALL 0 in", "RETURN_VALUE"}},
		"runs no function": {[]*Instruction{New(opcode.LOAD_CONST, 0), in(opcode.POP_TOP), last},
			[]string{"LOAD_CONST 0", "POP_TOP in", "RETURN_VALUE"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, inst := range HandlersBefore(c.list) {
				text := inst.String()
				if inst.Handler == region {
					text += " in"
				}
				got = append(got, text)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
