//go:build pyembed

package translate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/embedtest"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

func TestMain(m *testing.M) { embedtest.Main(m, py.Embed) }

// withPython runs a test's body on the thread of the embedded interpreter.
func withPython(t *testing.T, body func(t *testing.T, s *py.Scope)) {
	t.Helper()
	embedtest.On(func() {
		s := py.OpenScope()
		defer s.Close()
		body(t, s)
	})
}

// testInstaller reads code objects through their Python attributes. It creates no code objects.
type testInstaller struct{}

func (testInstaller) Decode(s *py.Scope, code py.Object) (*bytecode.Raw, []py.Object, error) {
	text := func(name string) string {
		v, err := s.GetAttr(code, name)
		if err != nil {
			panic(err)
		}
		return py.GoString(v)
	}
	number := func(name string) int {
		v, err := s.GetAttr(code, name)
		if err != nil {
			panic(err)
		}
		n, _ := py.AsInt(v)
		return int(n)
	}
	items := func(name string) []py.Object {
		v, err := s.GetAttr(code, name)
		if err != nil {
			panic(err)
		}
		return s.Items(v)
	}
	data := func(name string) []byte {
		v, err := s.GetAttr(code, name)
		if err != nil {
			panic(err)
		}
		l, err := s.Call(mustBuiltin(s, "list"), v)
		if err != nil {
			panic(err)
		}
		var out []byte
		for _, b := range s.Items(l) {
			n, _ := py.AsInt(b)
			out = append(out, byte(n))
		}
		return out
	}
	raw := &bytecode.Raw{
		Name: text("co_name"), QualName: text("co_qualname"), Filename: text("co_filename"), Code: data("co_code"),
		LineTable: data("co_linetable"), ExceptionTable: data("co_exceptiontable"), Flags: number("co_flags"),
		FirstLine: number("co_firstlineno"), ArgCount: number("co_argcount"),
		PosOnlyArgCount: number("co_posonlyargcount"),
		KwOnlyArgCount:  number("co_kwonlyargcount"), StackSize: number("co_stacksize"),
	}
	for _, n := range items("co_names") {
		raw.Names = append(raw.Names, py.GoString(n))
	}
	cells := map[string]bool{}
	for _, n := range items("co_cellvars") {
		cells[py.GoString(n)] = true
	}
	add := func(name string, kind byte) {
		raw.LocalsPlusNames = append(raw.LocalsPlusNames, name)
		raw.LocalsPlusKinds = append(raw.LocalsPlusKinds, kind)
	}
	for _, n := range items("co_varnames") {
		kind := byte(opcode.CO_FAST_LOCAL)
		if cells[py.GoString(n)] {
			kind |= opcode.CO_FAST_CELL
			delete(cells, py.GoString(n))
		}
		add(py.GoString(n), kind)
	}
	for _, n := range items("co_cellvars") {
		if cells[py.GoString(n)] {
			add(py.GoString(n), opcode.CO_FAST_CELL)
		}
	}
	for _, n := range items("co_freevars") {
		add(py.GoString(n), opcode.CO_FAST_FREE)
	}
	consts := items("co_consts")
	raw.NumConsts = len(consts)
	return raw, consts, nil
}

func (testInstaller) NewCode(*py.Scope, *bytecode.Raw, []py.Object) (py.Object, error) {
	return py.Object{}, &exc.SkipFrame{Reason: "tests make no code"}
}

func (testInstaller) ReadsSizes(py.Object) bool { return false }

func (testInstaller) NewCheck(*py.Scope, *guards.Program, []py.Object) (Check, error) {
	return nil, &exc.SkipFrame{Reason: "tests make no checks"}
}

func (testInstaller) Resume(*py.Scope, *Origin, py.Object, py.Object, func() (py.Object, error)) (py.Object, error) {
	return py.Object{}, &exc.SkipFrame{Reason: "tests make no code"}
}

// testBackend takes whole graphs and runs nothing.
type testBackend struct{}

func (testBackend) Inline() bool                              { return true }
func (testBackend) Name() string                              { return "test" }
func (testBackend) EmitNode(NodeEmitter, *fxgraph.Node) error { return nil }
func (testBackend) FixesSizes(*py.Scope) (bool, error)        { return false, nil }
func (testBackend) TakesApart(*py.Scope) (bool, error)        { return false, nil }

func (testBackend) Compile(*py.Scope, *fxgraph.Graph, []py.Object, Inputs) (py.Object, error) {
	return py.None(), nil
}

func mustBuiltin(s *py.Scope, name string) py.Object {
	b, err := s.Import("builtins")
	if err != nil {
		panic(err)
	}
	v, err := s.GetAttr(b, name)
	if err != nil {
		panic(err)
	}
	return v
}

// translatorFor returns a translator for the function name in source. The list `args` in source holds its arguments.
func translatorFor(t *testing.T, s *py.Scope, source, name string) *InstructionTranslator {
	t.Helper()
	ns, err := s.Run(source)
	require.NoError(t, err)
	fn, ok := s.DictGetName(ns, name)
	require.True(t, ok)
	code, _ := s.FunctionField(fn, py.FuncCode)
	f := &Frame{Function: fn, Code: code, Globals: ns}
	if args, ok := s.DictGetName(ns, "args"); ok {
		f.Slots = s.Items(args)
	}
	f.NumArgs = len(f.Slots)
	b, err := s.Import("builtins")
	require.NoError(t, err)
	f.Builtins, err = s.GetAttr(b, "__dict__")
	require.NoError(t, err)
	w, err := variables.NewWorld(s)
	require.NoError(t, err)
	o := newOutputGraph(s, w, f, &Options{MaxSteps: 1000, InlineDepth: 10}, testBackend{}, testInstaller{})
	d, err := o.decode(code)
	require.NoError(t, err)
	o.root, o.log = &rootInfo{d.code, f, slotNames(s, f, d.code)}, newSpeculationLog()
	tx := &InstructionTranslator{out: o, d: d, globals: ns, builtins: f.Builtins, log: o.log,
		locals: make([]variables.VariableTracker, len(d.code.Locals))}
	tx.symbolicLocals()
	o.current = tx
	return tx
}

const opcodeReturn = opcode.RETURN_VALUE
