//go:build pyembed

package translate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

func constGuard(name string) guards.Guard {
	return guards.TypeMatch(guards.NewLocalSource(name, 0), guards.Const{Text: "int", ID: 7})
}

// Row: S002-72
func TestMakeGuardNamesTheSource(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		v := variables.NewConstant(py.True(), guards.NewLocalSource("x", 0))
		g, ok := variables.MakeGuard(v, func(src guards.Source) guards.Guard {
			return guards.IDMatch(src, guards.Const{Text: "True"}, guards.KeepStrong)
		})
		require.True(t, ok)
		require.Equal(t, v.Source().Name(), g.Name)
		require.Equal(t, v.Source().GuardSource(), g.Source)
		require.Equal(t, "ID_MATCH", g.CreateFn.String())
		_, ok = variables.MakeGuard(variables.NoneConst(), nil)
		require.False(t, ok, "a value the program made has no source")
	})
}

// Row: S002-73, S002-74
func TestReplacingAndAddingGuardsCopies(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		v := variables.AddGuard(variables.BoolConst(true), constGuard("a"))
		w := variables.ReplaceGuards(v, guards.NewSet(constGuard("b")))
		require.True(t, v.Guards().Contains(constGuard("a")))
		require.False(t, v.Guards().Contains(constGuard("b")))
		require.Equal(t, 1, w.Guards().Len())
		u := variables.AddGuards(v, w.Guards())
		require.Equal(t, 2, u.Guards().Len())
		require.Equal(t, 1, v.Guards().Len(), "the original is unchanged")
	})
}

// Row: S002-75
func TestPropagateRecursesIntoContainers(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(): pass\n", "f")
		guarded := func(name string) variables.VariableTracker {
			return variables.AddGuard(variables.BoolConst(true), constGuard(name))
		}
		d := variables.NewDict(nil)
		require.NoError(t, d.SetItem(tx, variables.StrConst(tx, "k"), guarded("c")))
		inner := variables.NewList([]variables.VariableTracker{guarded("b"), d}, nil)
		first := variables.NewList([]variables.VariableTracker{guarded("a")}, nil)
		outer := variables.NewList([]variables.VariableTracker{first, inner}, nil)
		set := variables.Propagate(outer)
		for _, name := range []string{"a", "b", "c"} {
			require.True(t, set.Contains(constGuard(name)), name)
		}
		require.Equal(t, 3, set.Len())
	})
}

// kinds returns one tracker of each family, without a source.
func kinds(tx *InstructionTranslator, s *py.Scope) []variables.VariableTracker {
	list := variables.NewList(nil, nil)
	rng, _ := s.Call(tx.World().RangeType, s.Int(3))
	set, _ := variables.NewSet(tx, nil, false, nil)
	fn, _ := s.FunctionField(tx.out.frame.Function, py.FuncCode)
	_ = fn
	return []variables.VariableTracker{
		variables.NoneConst(), list, variables.NewTuple(nil, nil), variables.NewDict(nil), set,
		variables.NewSlice(variables.NoneConst(), variables.NoneConst(), variables.NoneConst()),
		variables.NewRangeObject(rng, nil), variables.NewFunction(tx.out.frame.Function, nil),
		variables.NewClass(tx.World().NNModule, nil), variables.NewCell(nil),
		variables.NewInstance(tx.World().NNModule),
		variables.NewBuiltin(tx.World().Builtin("len"), "len", nil), variables.NewSequenceIterator(list, list, 0),
	}
}

// Row: S002-77, S002-78
func TestEveryTrackerAnswersOrAsksForABreak(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(): pass\n", "f")
		for _, v := range kinds(tx, s) {
			questions := map[string]func() error{
				"call_function": func() error {
					_, err := variables.Call(tx, v, []variables.VariableTracker{v, v, v, v}, nil)
					return err
				},
				"call_method": func() error {
					_, err := variables.CallMethod(tx, v, "no_such_method", nil, nil)
					return err
				},
				"python_type": func() error { _, err := variables.PythonType(tx, v); return err },
				"as_proxy":    func() error { _, err := variables.AsProxy(tx, v); return err },
				"getattr": func() error {
					_, err := variables.GetAttr(tx, v, "no_such_attribute")
					return err
				},
				"getitem": func() error {
					_, err := variables.GetItem(tx, v, variables.StrConst(tx, "zz"))
					return err
				},
				"setitem": func() error {
					return variables.SetItem(tx, v, variables.StrConst(tx, "zz"), variables.NoneConst())
				},
				"setattr":            func() error { return variables.SetAttr(tx, v, "zz", variables.NoneConst()) },
				"iter":               func() error { _, err := variables.Unpack(tx, v); return err },
				"len":                func() error { _, err := variables.Len(tx, v); return err },
				"truth":              func() error { _, err := variables.Truth(tx, v); return err },
				"binary":             func() error { _, err := variables.Binary(tx, opcode.NB_XOR, v, v); return err },
				"unary":              func() error { _, err := variables.Unary(tx, 2, v); return err },
				"compare":            func() error { _, err := variables.Compare(tx, opcode.CMP_LT, v, v); return err },
				"as_python_constant": func() error { variables.AsConstant(tx, v); return nil },
			}
			for name, ask := range questions {
				err := ask()
				if err == nil {
					continue
				}
				var u *exc.Unsupported
				_, observed := err.(*exc.Observed)
				require.True(t, observed || AsUnsupported(err, &u), "%s of %s: %v", name, v.Kind(), err)
			}
		}
	})
}

// Row: S002-50
func TestOnlyTrackersAreOnTheStack(t *testing.T) {
	withPython(t, func(t *testing.T, s *py.Scope) {
		tx := translatorFor(t, s, "def f(a):\n    return [x for x in (a, len(str(a)))]\nargs = [3]\n", "f")
		for tx.d.code.Instructions[tx.ip].Op != opcodeReturn {
			require.NoError(t, tx.step(tx.d.code.Instructions[tx.ip]))
			for _, v := range tx.stack {
				if v != nil { // nil represents NULL
					require.NotEmpty(t, v.Kind())
				}
			}
		}
	})
}
