//go:build pyembed

package translate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Row: S002-45
func TestSymbolicLocalsAreTheFramesVariablesInOrder(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(a, b, *c):\n    d = a\n    return d\nargs = [1, 2, ()]\n", "f")
		var names []string
		for i, v := range tx.locals {
			if v == nil {
				require.Equal(t, "d", tx.d.code.Locals[i].Name, "only bound variables are built")
				continue
			}
			require.Equal(t, tx.d.code.Locals[i].Name, v.Source().Name())
			names = append(names, v.Source().Name())
		}
		require.Equal(t, []string{"a", "b", "c"}, names)
	})
}

// Row: S002-46
func TestStepExecutesOneInstruction(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(a):\n    b = (a, 1)\n    return b\nargs = [3]\n", "f")
		executed := 0
		for tx.d.code.Instructions[tx.ip].Op != opcode.RETURN_VALUE {
			before := tx.out.steps
			require.NoError(t, tx.step(tx.d.code.Instructions[tx.ip]))
			require.Equal(t, before+1, tx.out.steps)
			executed++
		}
		require.Equal(t, len(tx.d.code.Instructions)-1, executed)
	})
}

// Row: S002-47
func TestMissingHandlerNamesTheOpcode(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		saved := handlers[opcode.BUILD_TUPLE]
		defer func() { handlers[opcode.BUILD_TUPLE] = saved }()
		handlers[opcode.BUILD_TUPLE] = handler{}
		tx := translatorFor(t, s, "def f(a):\n    return (a, a)\nargs = [3]\n", "f")
		var err error
		for err == nil {
			err = tx.step(tx.d.code.Instructions[tx.ip])
		}
		var u *exc.Unsupported
		require.True(t, AsUnsupported(err, &u))
		require.Equal(t, "missing: BUILD_TUPLE", u.Reason())
	})
}

// Row: S002-48
func TestLoadConstPushesConstantVariable(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f():\n    x = -1\n    return x\n", "f")
		for _, in := range tx.d.code.Instructions {
			if in.Op == opcode.LOAD_CONST {
				require.NoError(t, tx.step(in))
				break
			}
		}
		c, ok := tx.top(1).(*variables.ConstantVariable)
		require.True(t, ok)
		n, _ := py.AsInt(c.Value)
		require.EqualValues(t, -1, n)
	})
}

// Row: S002-49, S002-76
func TestBuildTupleTakesItsItemsGuards(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(a, b):\n    return (a, b)\nargs = [3, 'x']\n", "f")
		for i := 0; i < 2; i++ {
			v, err := variables.Realize(tx, tx.locals[i])
			require.NoError(t, err)
			tx.push(v)
		}
		a, b := tx.top(2), tx.top(1)
		require.NoError(t, tx.buildTuple(&bytecode.Instruction{Op: opcode.BUILD_TUPLE, Arg: 2}))
		got := tx.top(1)
		require.Equal(t, "TupleVariable", got.Kind())
		require.Equal(t, a.Guards().Union(b.Guards()).Len(), got.Guards().Len())
		got.Guards().Each(func(g guards.Guard) {
			require.True(t, a.Guards().Contains(g) || b.Guards().Contains(g))
		})
		require.Positive(t, got.Guards().Len())
	})
}

// Row: S002-51
func TestPopnReturnsSourceOrder(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(): pass\n", "f")
		a, b, c := variables.NoneConst(), variables.BoolConst(true), variables.BoolConst(false)
		tx.push(a)
		tx.push(b)
		tx.push(c)
		require.Equal(t, []variables.VariableTracker{b, c}, tx.popn(2))
		require.Len(t, tx.stack, 1)
	})
}

// Row: S002-51
func TestStackDepthFollowsStackEffect(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, `
def f(a, b):
    c = [a, b, (a, b)]
    d = {"x": a, **{"y": b}}
    n, *rest = c
    s = f"{a}-{b!r}"
    t = c[0] + b * 2 - (a if b else n)
    c.append(t)
    return len(c), d["x"], [i for i in range(3)], s, rest
args = [3, 4]
`, "f")
		for {
			in := tx.d.code.Instructions[tx.ip]
			if in.Op == opcode.RETURN_VALUE {
				break
			}
			before := len(tx.stack)
			require.NoError(t, tx.step(in), "%v", in)
			jumped := in.Target != nil && tx.d.code.Instructions[tx.ip] == in.Target
			require.Equal(t, before+bytecode.StackEffect(in, jumped), len(tx.stack), "%v", in)
		}
	})
}

// Row: S002-52
func TestEveryOpcodeHasAHandlerOrAReason(t *testing.T) {
	for _, table := range []*opcode.Table{
		opcode.For(3, 11), opcode.For(3, 12), opcode.For(3, 13), opcode.For(3, 14),
	} {
		for _, form := range table.Forms {
			for _, op := range append(form.Choices[:len(form.Choices):len(form.Choices)], form.Op) {
				if op != opcode.INVALID && handlers[op].run == nil {
					require.NotEmpty(t, noHandler[op], "%v has neither", op)
				}
			}
		}
	}
}

// Row: S002-66, S002-71
func TestOutputGraphHoldsWhatAFrameYields(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s,
			"import torch\ndef f(x, l):\n    l.append(x)\n    return x + 1\nargs = [torch.ones(2), []]\n", "f")
		var err error
		for err == nil && tx.d.code.Instructions[tx.ip].Op != opcode.RETURN_VALUE {
			err = tx.step(tx.d.code.Instructions[tx.ip])
		}
		require.NoError(t, err)
		o := tx.out
		require.Len(t, o.inputs, 1, "graph args")
		require.Equal(t, 1, o.numOps, "graph")
		require.Len(t, o.events, 2, "the effect stands before the operation")
		require.Nil(t, o.events[0].node)
		require.Positive(t, o.guards.Set().Len())
	})
}

// Row: S002-25
func TestConvertFrameAssertTakesFrameAndCacheSize(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(x):\n    yield x\nargs = [1]\n", "f")
		convert := ConvertFrameAssert(testBackend{}, true, tx.out.opts, testInstaller{})
		_, err := convert(s, tx.out.frame, 0)
		var skip *exc.SkipFrame
		require.ErrorAs(t, err, &skip)
		require.Equal(t, "generator", skip.Reason)
	})
}
