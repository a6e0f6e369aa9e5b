package bytecode

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// TestStackEffect compares StackEffect with the samples of dis.stack_effect in opcode/py3XX.json.
func TestStackEffect(t *testing.T) {
	for version := range sampleFiles {
		t.Run(version.String(), func(t *testing.T) { checkStackEffect(t, version) })
	}
}

func checkStackEffect(t *testing.T, version Version) {
	var dump struct {
		StackEffects map[string][][3]*int `json:"stack_effects"`
	}
	data, err := os.ReadFile(fmt.Sprintf("opcode/py%d%d.json", version.Major, version.Minor))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &dump))
	table := opcode.For(version.Major, version.Minor)
	compared := 0
	for _, form := range table.Forms {
		switch form.Real {
		case opcode.INVALID, opcode.CACHE, opcode.EXTENDED_ARG, opcode.PRECALL, opcode.INTERPRETER_EXIT,
			opcode.RESERVED, opcode.EXIT_INIT_CHECK:
			continue // the opcode is not in the dialect
		case opcode.END_FOR:
			continue // dis counts what FOR_ITER leaves for it, although FOR_ITER skips it
		}
		if form.Pair[0] != opcode.INVALID {
			require.True(t, stackUses[form.Pair[0]].known && stackUses[form.Pair[1]].known, "%v", form.Real)
			continue
		}
		require.True(t, form.LowBits > 0 || stackUses[form.Op].known, "%v has no row", form.Op)
		for _, row := range dump.StackEffects[form.Real.String()] {
			inst := &Instruction{Op: form.Op}
			if row[0] != nil {
				inst.Arg = *row[0]
			}
			if form.LowBits > 0 {
				low := inst.Arg & (1<<form.LowBits - 1)
				if low >= len(form.Choices) || form.Choices[low] == opcode.INVALID {
					continue
				}
				inst.Op, inst.Arg = form.Choices[low], inst.Arg>>form.LowBits
			}
			for side, jump := range []bool{false, true} {
				want := *row[1+side]
				switch form.Op {
				case opcode.FOR_ITER:
					if jump && len(table.LoopEnd) > 0 {
						want -= 2 // for END_FOR and what follows it
					}
				case opcode.CALL:
					if table.Encodings[opcode.PRECALL].Known {
						want -= inst.Arg // dis counts PRECALL separately
					}
				case opcode.RETURN_GENERATOR:
					if want == 0 {
						want++ // up to 3.12, dis counts this value at the start of a generator instead
					}
				case opcode.RETURN_VALUE:
					want = -1 // in 3.14 dis counts the caller's new value
				case opcode.CALL_FUNCTION_EX:
					if table.HaveArgument > int(table.Encodings[form.Op].Forward) {
						inst.Arg = 1 // 3.14 always takes keywords, or NULL
					}
				case opcode.BUILD_SLICE:
					if inst.Arg != 2 && inst.Arg != 3 {
						continue // dis treats any other argument as 2
					}
				case opcode.MAKE_FUNCTION:
					if inst.Arg > 15 || table.Encodings[opcode.SET_FUNCTION_ATTRIBUTE].Known {
						continue
					}
				}
				if form.Jump || !jump {
					assert.Equal(t, want, StackEffect(inst, jump), "%v %d jump=%v", form.Real, inst.Arg, jump)
					compared++
				}
			}
		}
	}
	assert.Greater(t, compared, 1000)
}

// assemble builds a Code with locals a, b, c and two constants.
func assemble(list ...*Instruction) *Code {
	return &Code{
		FirstLine: 1, NumConsts: 2, Names: []string{"f", "g"}, Instructions: list,
		Locals: []Local{{"a", opcode.CO_FAST_LOCAL}, {"b", opcode.CO_FAST_LOCAL}, {"c", opcode.CO_FAST_LOCAL}},
	}
}

func TestStackDepthsRefuse(t *testing.T) {
	load, ret := func() *Instruction { return New(opcode.LOAD_FAST, 0) },
		func() *Instruction { return New(opcode.RETURN_VALUE, 0) }
	end := load()
	shared := load()
	handler := New(opcode.RERAISE, 0)
	deep := &ExceptionRegion{Target: handler, Depth: 1}
	covered := load()
	covered.Handler = deep
	outside := load()
	for name, list := range map[string][]*Instruction{
		"two depths at one place":      {load(), NewJump(opcode.JUMP_IF_TRUE_OR_POP, end), end, ret()},
		"pop of nothing":               {New(opcode.POP_TOP, 0), load(), ret()},
		"needs more than there is":     {load(), New(opcode.CALL, 0), ret()},
		"runs off its end":             {load()},
		"nothing":                      {},
		"an instruction twice":         {shared, shared, ret()},
		"nil":                          {nil, ret()},
		"target outside":               {load(), NewJump(opcode.POP_JUMP_IF_TRUE, outside), load(), ret()},
		"jump without target":          {load(), New(opcode.POP_JUMP_IF_TRUE, 0), load(), ret()},
		"target of no jump":            {load(), {Op: opcode.RETURN_VALUE, Target: end}, end, ret()},
		"handler wants more":           {covered, ret(), handler},
		"handler outside":              {{Op: opcode.LOAD_FAST, Handler: &ExceptionRegion{Target: outside}}, ret()},
		"a real opcode, not dialect's": {{Op: opcode.PRECALL}, load(), ret()},
		"no opcode at all":             {{Op: opcode.Op(opcode.NumOps)}, load(), ret()},
		"a stack that grows in a loop": func() []*Instruction {
			l := load()
			return []*Instruction{l, NewJump(opcode.JUMP, l)}
		}(),
		"a stack of two billion values": {load(), New(opcode.UNPACK_SEQUENCE, 1<<31-1), ret()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := StackDepths(assemble(list...))
			assert.ErrorIs(t, err, ErrMalformed)
			if len(list) > 0 {
				_, err = Lower(assemble(list...), py311)
				assert.ErrorIs(t, err, ErrMalformed)
			}
		})
	}
}

func TestStackDepthsOfGenerator(t *testing.T) {
	code := assemble(
		New(opcode.RETURN_GENERATOR, 0), New(opcode.POP_TOP, 0), New(opcode.RESUME, 0), New(opcode.LOAD_CONST, 0),
		New(opcode.YIELD_VALUE, 0), New(opcode.RETURN_VALUE, 0),
	)
	depths, err := StackDepths(code)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 0, 0, 1, 1}, depths)
}

func TestReachableFollowsHandlers(t *testing.T) {
	handler, dead := New(opcode.RERAISE, 0), New(opcode.NOP, 0)
	load := New(opcode.LOAD_FAST, 0)
	load.Handler = &ExceptionRegion{Target: handler}
	ret := New(opcode.RETURN_VALUE, 0)
	target := New(opcode.LOAD_FAST, 1)
	code := assemble(load, NewJump(opcode.POP_JUMP_IF_FALSE, target), New(opcode.LOAD_FAST, 0), ret, dead, target,
		New(opcode.RETURN_VALUE, 0), handler)
	reached := Reachable(code)
	assert.False(t, reached[dead])
	assert.True(t, reached[handler])
	assert.True(t, reached[target])
	assert.Len(t, reached, len(code.Instructions)-1)
}

func liveNames(code *Code, live LocalSet) []string {
	names := []string{}
	for _, slot := range live.Slots() {
		names = append(names, code.Locals[slot].Name)
	}
	return names
}

func TestLivenessInLoop(t *testing.T) {
	// a is the iterable, b is the loop variable, and c is set in one round of the loop and read in the next.
	end := New(opcode.LOAD_FAST, 2)
	loop := NewJump(opcode.FOR_ITER, end)
	code := assemble(
		New(opcode.LOAD_FAST, 0), New(opcode.GET_ITER, 0), loop, New(opcode.STORE_FAST, 1), New(opcode.LOAD_FAST, 1),
		New(opcode.STORE_FAST, 2), NewJump(opcode.JUMP, loop), end, New(opcode.RETURN_VALUE, 0),
	)
	live := Liveness(code)
	want := [][]string{{"a", "c"}, {"c"}, {"c"}, {}, {"b"}, {}, {"c"}, {"c"}, {}}
	for i, inst := range code.Instructions {
		assert.Equal(t, want[i], liveNames(code, live[inst]), "before instruction %d", i)
	}
	assert.True(t, live[code.Instructions[0]].Has(2))
	assert.False(t, live[code.Instructions[0]].Has(1))
	assert.False(t, live[code.Instructions[0]].Has(64))
	assert.False(t, live[code.Instructions[0]].Has(-1))
}

func TestLivenessThroughHandlers(t *testing.T) {
	// The handler reads b. If the region's STORE_FAST b has not run by then, the handler reads the earlier value. So
	// b is live before the STORE_FAST.
	handler := New(opcode.POP_TOP, 0)
	region := &ExceptionRegion{Target: handler}
	call, store := New(opcode.LOAD_NAME, 0), New(opcode.STORE_FAST, 1)
	call.Handler, store.Handler = region, region
	code := assemble(
		New(opcode.LOAD_FAST, 0), New(opcode.STORE_FAST, 1), call, store, New(opcode.LOAD_FAST, 1),
		New(opcode.RETURN_VALUE, 0),
		handler, New(opcode.LOAD_FAST, 1), New(opcode.RETURN_VALUE, 0),
	)
	live := Liveness(code)
	want := [][]string{{"a"}, {}, {"b"}, {"b"}, {"b"}, {}, {"b"}, {"b"}, {}}
	for i, inst := range code.Instructions {
		assert.Equal(t, want[i], liveNames(code, live[inst]), "before instruction %d", i)
	}
}

func TestLivenessOfCells(t *testing.T) {
	code := assemble(
		New(opcode.COPY_FREE_VARS, 1), New(opcode.MAKE_CELL, 0), New(opcode.LOAD_CONST, 0), New(opcode.STORE_DEREF, 0),
		New(opcode.LOAD_DEREF, 2), New(opcode.DELETE_FAST, 1), New(opcode.RETURN_VALUE, 0),
	)
	live := Liveness(code)
	want := [][]string{{"a", "b"}, {"a", "b", "c"}, {"a", "b", "c"}, {"a", "b", "c"}, {"b", "c"}, {"b"}, {}}
	for i, inst := range code.Instructions {
		assert.Equal(t, want[i], liveNames(code, live[inst]), "before instruction %d", i)
	}
}
