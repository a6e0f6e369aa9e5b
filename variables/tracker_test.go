//go:build pyembed

package variables

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/embedtest"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

func TestMain(m *testing.M) { embedtest.Main(m, py.Embed) }

// frameless is a Translator without a frame. Code under test that reads a variable or adds to a graph dereferences nil.
// Code that inlines Python code breaks the graph.
type frameless struct {
	Translator
	s *py.Scope
	w *World
	o *framelessOutput
}

func (f *frameless) Scope() *py.Scope                             { return f.s }
func (f *frameless) World() *World                                { return f.w }
func (f *frameless) Output() Output                               { return f.o }
func (f *frameless) Catches() bool                                { return false }
func (f *frameless) InsideTry() bool                              { return false }
func (f *frameless) Handled() VariableTracker                     { return nil }
func (f *frameless) InUse(py.Object) bool                         { return false }
func (f *frameless) SuperArgs() (a, b VariableTracker, err error) { return nil, nil, nil }

func (f *frameless) Inline(fn *FunctionVariable, _ []VariableTracker, _ []Kw) (VariableTracker, error) {
	return nil, unsupported(exc.InlineTooDeep, "a test inlines nothing")
}

// framelessOutput records guards and has no graph.
type framelessOutput struct {
	Output
	guards []guards.Guard
}

func (o *framelessOutput) AddGuards(gs ...guards.Guard) { o.guards = append(o.guards, gs...) }
func (o *framelessOutput) Const(py.Object) guards.Const { return guards.Const{} }
func (o *framelessOutput) LetGoOf() bool                { return false }
func (o *framelessOutput) MadeHere(guards.Source) bool  { return false }

// withPython runs a test's body on the interpreter's thread. The body receives a translator, and a namespace in which
// `source` has run.
func withPython(t *testing.T, source string, body func(t *testing.T, tx *frameless, ns py.Object)) {
	t.Helper()
	embedtest.On(func() {
		s := py.OpenScope()
		defer s.Close()
		w, err := NewWorld(s)
		require.NoError(t, err)
		ns, err := s.Run(source)
		require.NoError(t, err)
		body(t, &frameless{s: s, w: w, o: &framelessOutput{}}, ns)
	})
}

// made returns a tracker for an object, as if the program had made the object. A container holds trackers of its
// items.
func made(t *testing.T, tx Translator, o py.Object) VariableTracker {
	t.Helper()
	v, err := ownContainer(tx, o, func(item py.Object) (VariableTracker, error) { return made(t, tx, item), nil })
	require.NoError(t, err)
	if v != nil {
		return v
	}
	if o.Type() == tx.World().Builtin("set") {
		var items []VariableTracker
		all, err := listOf(tx, o)
		require.NoError(t, err)
		for _, it := range all {
			items = append(items, made(t, tx, it))
		}
		v, err := NewSet(tx, items, false, nil)
		require.NoError(t, err)
		return v
	}
	v, err = immutableResult(tx, o)
	require.NoError(t, err)
	return v
}

// outcome returns the text of a result, or an exception's type and text.
func outcome(t *testing.T, tx *frameless, shown py.Object, v VariableTracker, err error) string {
	t.Helper()
	if e, ok := err.(*exc.Observed); ok {
		if x, ok := e.Value.(VariableTracker); ok {
			text, err := CallMethod(tx, x, "__str__", nil, nil)
			require.NoError(t, err)
			return e.TypeName + ": " + py.GoString(realized(t, tx, text))
		}
		return e.TypeName + ": " + e.Text
	}
	require.NoError(t, err)
	text, err := tx.s.Call(shown, realized(t, tx, v))
	require.NoError(t, err)
	return py.GoString(text)
}

// realized builds the real object for v. An iterator yields the list of its remaining items.
func realized(t *testing.T, tx Translator, v VariableTracker) py.Object {
	t.Helper()
	s := tx.Scope()
	all := func(vs []VariableTracker) (out []py.Object) {
		for _, it := range vs {
			out = append(out, realized(t, tx, it))
		}
		return out
	}
	switch x := MustRealize(tx, v).(type) {
	case *SetVariable:
		items, err := x.Items(tx)
		require.NoError(t, err)
		set, err := s.Call(tx.World().Builtin(map[bool]string{false: "set", true: "frozenset"}[x.frozen]),
			s.List(all(items)...))
		require.NoError(t, err)
		return set
	case *ListVariable:
		return s.List(all(x.items)...)
	case *SliceVariable:
		o, err := s.Call(tx.World().Builtin("slice"), all(x.Parts())...)
		require.NoError(t, err)
		return o
	case *TupleVariable:
		return s.Tuple(all(x.items)...)
	case *DictVariable:
		pairs := make([][2]py.Object, len(x.keys))
		for i := range x.keys {
			pairs[i] = [2]py.Object{realized(t, tx, x.keys[i]), realized(t, tx, x.values[i])}
		}
		d, err := s.Dict(pairs...)
		require.NoError(t, err)
		return d
	}
	if o, ok := AsConstant(tx, v); ok {
		return o
	}
	items, err := Unpack(tx, v)
	require.NoError(t, err, "%T", v)
	return s.List(all(items)...)
}
