//go:build pyembed

package pyhook

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/embedtest"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

func TestMain(m *testing.M) { embedtest.Main(m, py.Embed) }

// with runs a test's body on the interpreter's thread. The body gets a function `run`, which evaluates an
// expression in the namespace that the Python source has filled.
func with(t *testing.T, source string, body func(t *testing.T, s *py.Scope, run func(expression string) py.Object)) {
	t.Helper()
	embedtest.On(func() {
		s := py.OpenScope()
		defer s.Close()
		ns, err := s.Run("from godynamo import config\nfrom godynamo._user.options import Options\n" + source)
		require.NoError(t, err)
		builtins, err := s.Import("builtins")
		require.NoError(t, err)
		body(t, s, func(expression string) py.Object {
			o, err := s.CallMethod(builtins, "eval", s.Str(expression), ns)
			require.NoError(t, err, expression)
			return o
		})
	})
}

func TestSettingsAreTheCallsAndTheConfigs(t *testing.T) {
	with(t, "", func(t *testing.T, s *py.Scope, run func(string) py.Object) {
		plain, err := readSettings(s, run("Options()"))
		require.NoError(t, err)
		assert.True(t, plain.backend.Inline())
		assert.False(t, plain.NoPython || plain.PythonOps || plain.CheckTypes || plain.TakesApart || plain.Transparent)
		assert.False(t, plain.FullGuards)
		assert.Equal(t, 200_000, plain.MaxSteps)

		asked, err := readSettings(s, run("Options(nopython=True, python_ops='checked', transparent=True)"))
		require.NoError(t, err)
		assert.True(t, asked.NoPython && asked.PythonOps && asked.CheckTypes && asked.Transparent)

		compiled,
			err := readSettings(s, run("Options(inline=False, backend=lambda gm, inputs: gm, backend_name='mine')"))
		require.NoError(t, err)
		assert.False(t, compiled.backend.Inline())
		assert.Equal(t, "mine", compiled.backend.Name())
		assert.True(t, compiled.FullGuards, "a compiled graph is right for these sizes and strides alone")
	})
}

func TestSettingsFollowTheConfigAtRunTime(t *testing.T) {
	with(t, "", func(t *testing.T, s *py.Scope, run func(string) py.Object) {
		for name, at := range map[string]func(o *settings) any{
			"guard_nn_modules":            func(o *settings) any { return o.GuardNNModules },
			"reuse_layers":                func(o *settings) any { return o.ReuseLayers },
			"queue_effects":               func(o *settings) any { return o.QueueEffects },
			"translate_everything":        func(o *settings) any { return o.TranslateEverything },
			"max_translated_instructions": func(o *settings) any { return o.MaxSteps },
			"inline_depth_limit":          func(o *settings) any { return o.InlineDepth },
		} {
			before, err := readSettings(s, run("Options()"))
			require.NoError(t, err)
			was := run("config." + name)
			run("setattr(config, '" + name + "', not config." + name + " if type(config." + name + ") is bool else 7)")
			after, err := readSettings(s, run("Options()"))
			require.NoError(t, err)
			assert.NotEqual(t, at(before), at(after), name)
			config, err := s.Import("godynamo.config")
			require.NoError(t, err)
			require.NoError(t, s.SetAttr(config, name, was))
		}
	})
}

func TestWatchedBitsAreThoseOfPython(t *testing.T) {
	with(t, `
import logging
from godynamo._called import runtime
logger = logging.getLogger("godynamo")
`, func(t *testing.T, s *py.Scope, run func(string) py.Object) {
		bits := func() int64 {
			n, err := watched(s)
			require.NoError(t, err)
			return n
		}
		none := bits()
		assert.Zero(t, none&(watchedDebug|watchedExplain|watchedTrace|watchedBisect))
		run("logger.setLevel(logging.DEBUG)")
		assert.Equal(t, none|watchedDebug, bits())
		run("logger.setLevel(logging.NOTSET)")
		run("setattr(config, 'trace_dir', 'traces')")
		assert.Equal(t, none|watchedTrace, bits())
		run("setattr(config, 'trace_dir', '')")
		run("runtime.recorders.lists.append([])")
		assert.Equal(t, none|watchedExplain, bits())
		run("runtime.recorders.lists.pop()")
		assert.Equal(t, none, bits())
	})
}

func TestWhatIsNoOptionsIsAnError(t *testing.T) {
	with(t, "", func(t *testing.T, s *py.Scope, run func(string) py.Object) {
		_, err := readSettings(s, run("object()"))
		var e *py.Error
		require.ErrorAs(t, err, &e)
		assert.Contains(t, e.Error(), "object has no attribute")
	})
}

func TestZapsRecordsReachLogging(t *testing.T) {
	with(t, `
import logging
lines = []
class Kept(logging.Handler):
    def emit(self, record): lines.append((record.name, record.levelno, record.getMessage()))
logger = logging.getLogger("godynamo")
logger.addHandler(Kept())
logger.setLevel(logging.DEBUG)
`, func(t *testing.T, s *py.Scope, run func(string) py.Object) {
		l := logger(s).With(zap.String("code", "f"))
		for range 20 { // repeated: the order of a Go map would vary between runs
			l.Debug("translated", zap.Int("ops", 3), zap.Float64("seconds", 0.5), zap.Error(errors.New("none")))
		}
		l.Named("guards").Warn("failed")
		run("logger.setLevel(logging.NOTSET)")
		assert.Equal(t, "True",
			s.Repr(run("lines[:20] == 20 * [('godynamo', 10, 'translated code=f ops=3 seconds=0.5 error=none')]")))
		assert.Equal(t, "[('godynamo.guards', 30, 'failed code=f')]", s.Repr(run("lines[20:]")))
	})
}

func TestABreakIsATupleForPython(t *testing.T) {
	with(t, "", func(t *testing.T, s *py.Scope, _ func(string) py.Object) {
		u := exc.Break(exc.CallUnsupported, "print").(*exc.Unsupported)
		u.Stack = []exc.Frame{exc.Frame{Name: "inner", File: "a.py", Line: 3}.At(4, 8, 12),
			{Name: "outer", File: "b.py", Line: 7}}
		row := u.Code.Entry()
		want := s.Repr(s.Tuple(s.Str(row.ID), s.Str(u.Reason()), s.Str(row.Hint)))
		assert.Equal(t, want[:len(want)-1]+", (('inner', 'a.py', 3), ('outer', 'b.py', 7)))", s.Repr(breakTuple(s, u)))
		assert.Equal(t, "(((4, 8, 12), None),)", s.Repr(positionsTuple(s, []*exc.Unsupported{u})))
	})
}

func TestAnAccountNamesNodesAndTheirInputs(t *testing.T) {
	with(t, "", func(t *testing.T, s *py.Scope, run func(string) py.Object) {
		none, err := accountDict(s, nil)
		require.NoError(t, err)
		assert.Equal(t, py.None(), none)

		g := fxgraph.NewGraph()
		x := g.Placeholder("x")
		y := g.CallFunction(fxgraph.Target{Text: "torch.relu"}, []fxgraph.Arg{x}, nil)
		code := run("(lambda: 0).__code__")
		d, err := accountDict(s, &translate.Account{
			Translated: []translate.CodeUnits{{Code: code, Units: []int{1, 2}}},
			Nodes:      []translate.NodePlace{{Node: y, Stack: []exc.Frame{{Name: "f", File: "f.py", Line: 2}}}},
		})
		require.NoError(t, err)
		nodes, ok := s.DictGetName(d, "nodes")
		require.True(t, ok)
		assert.Contains(t, s.Repr(nodes), "(('call_function', 'relu', 'torch.relu', ")
		assert.Contains(t, s.Repr(nodes), ", ('x',), (('f', 'f.py', 2),)),)")
		native, _ := s.DictGetName(d, "native")
		assert.Equal(t, py.None(), native)
	})
}
