package opcode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableOfUnsupportedVersion(t *testing.T) {
	assert.Nil(t, For(3, 10))
	assert.NotNil(t, For(3, 11))
	assert.NotNil(t, For(3, 12))
	assert.NotNil(t, For(3, 13))
}

func TestFormsAndEncodingsAreInverse(t *testing.T) {
	for _, table := range tables {
		for number, form := range table.Forms {
			if form.Real == INVALID {
				continue
			}
			if form.Pair[0] != INVALID {
				assert.Equal(t, number, table.Joined(form.Pair[0], form.Pair[1], form.Borrowed))
				continue
			}
			if form.LowBits > 0 {
				for low, op := range form.Choices {
					if op != INVALID {
						want := Encoding{Known: true, Forward: int16(number), Backward: -1, NoInterrupt: -1,
							LowBits: form.LowBits, Low: uint8(low)}
						assert.Equal(t, want, table.Encodings[op], "%v", op)
					}
				}
				continue
			}
			encoding := table.Encodings[form.Op]
			require.True(t, encoding.Known, "%v", form.Op)
			back := encoding.Forward
			switch {
			case form.Borrowed:
				back = int16(encoding.Borrowed)
			case form.NoInterrupt:
				back = encoding.NoInterrupt
			case form.Backward:
				back = encoding.Backward
			}
			assert.Equal(t, int16(number), back, "%v", form.Real)
			assert.Equal(t, form.Jump, form.Op.ArgKind() == ArgJump, "%v", form.Real)
			switch form.Real {
			case YIELD_VALUE, MAKE_FUNCTION, CALL_FUNCTION_EX, END_ASYNC_FOR: // they differ from version to version
			case BEFORE_WITH, WITH_EXCEPT_START: // have an argument in the dialect only
			default:
				assert.Equal(t, number >= table.HaveArgument, form.Real.ArgKind() != ArgNone, "%v", form.Real)
			}
		}
	}
}

func TestNames(t *testing.T) {
	assert.Equal(t, "LOAD_FAST", LOAD_FAST.String())
	assert.Equal(t, "POP_JUMP_IF_NOT_NONE", POP_JUMP_IF_NOT_NONE.String())
	assert.Equal(t, "Op(9999)", Op(9999).String())
	assert.Equal(t, ArgNone, Op(9999).ArgKind())
	seen := map[string]bool{}
	for op := range NumOps {
		name := Op(op).String()
		assert.NotEmpty(t, name)
		assert.False(t, seen[name], name)
		seen[name] = true
	}
}

func TestOperators(t *testing.T) {
	assert.Equal(t, "+", NB_ADD.Symbol())
	assert.Equal(t, "NB_INPLACE_XOR", NB_INPLACE_XOR.String())
	assert.Equal(t, "^=", NB_INPLACE_XOR.Symbol())
	assert.True(t, NB_INPLACE_ADD.Inplace())
	assert.False(t, NB_XOR.Inplace())
	assert.False(t, BinaryOp(26).Valid())
	assert.Equal(t, "?", BinaryOp(-1).Symbol())
	assert.Equal(t, "BinaryOp(26)", BinaryOp(26).String())
	for op := NB_INPLACE_ADD; op.Valid(); op++ {
		assert.Equal(t, op.Symbol(), op.Plain().Symbol()+"=")
	}
	assert.Equal(t, NB_XOR, NB_XOR.Plain())
	assert.Equal(t, ">=", CMP_GE.String())
	assert.False(t, CompareOp(6).Valid())
	assert.Equal(t, "?", CompareOp(6).Symbol())
}

func TestOperatorsAreNamedAsPythonNamesThem(t *testing.T) {
	assert.Equal(t, "and_", NB_AND.Function())
	assert.Equal(t, "iand", NB_INPLACE_AND.Function())
	assert.Equal(t, "truediv", NB_TRUE_DIVIDE.Function())
	assert.Equal(t, []string{"__or__", "__ror__", "__ior__"},
		[]string{NB_INPLACE_OR.Method(), NB_OR.Reflected(), NB_OR.InplaceMethod()})
	assert.Equal(t, []string{"** or pow()", "**=", "//"}, []string{NB_POWER.InMessages(), NB_INPLACE_POWER.InMessages(),
		NB_FLOOR_DIVIDE.InMessages()})
	assert.Equal(t, []CompareOp{CMP_GT, CMP_LE, CMP_NE},
		[]CompareOp{CMP_LT.Swapped(), CMP_GE.Swapped(), CMP_NE.Swapped()})
	for b := NB_ADD; b.Valid(); b++ {
		got, ok := BinaryOpOf(b.Function())
		assert.True(t, ok && got == b, b)
		assert.True(t, b.Plain().InplaceOp().Inplace())
	}
	got, ok := CompareOpOf("__ge__")
	assert.True(t, ok && got == CMP_GE)
	_, ok = BinaryOpOf("radd")
	assert.False(t, ok)
}
