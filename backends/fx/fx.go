// Package fx passes whole graphs to Python backends. It converts the graph to flat rows, from which
// godynamo._backends.compiling.compile_fx builds a torch.fx.GraphModule. compile_fx then calls the backend and
// checks the result.
package fx

import (
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Backend implements translate.Backend for a Python callable.
type Backend struct {
	options py.Object
	name    string
	made    []Made
}

// Made is a graph that has been compiled, with what compiles it again in another process. The translation's scope owns
// the objects.
type Made struct {
	Callable           py.Object
	Rows, Several      py.Object   // list of rows; list of ints
	Changed, OfModules py.Object   // tuples of ints
	Examples           []py.Object // the inputs in the call that was translated
	Whole              bool
	// Sizes describes the inputs' symbolic sizes (OutputGraph.symbolicExamples), and Assumed has the conditions and
	// constants of the compiler's answer. Both are None for constant sizes.
	Sizes, Assumed py.Object
}

// Made returns the graphs that this translation has compiled, the latest last.
func (b *Backend) Made() []Made { return b.made }

// Facts returns what is known about the backend and decides how graphs are translated for it.
func (b *Backend) Facts(s *py.Scope) (string, error) {
	facts := ""
	for _, name := range [...]string{"takes_apart", "takes_symbols", "fixes_sizes", "any_size"} {
		v, err := s.GetAttr(b.options, name)
		if err != nil {
			return "", err
		}
		if v == py.True() {
			facts += name + " "
		}
	}
	return facts, nil
}

// Again compiles a graph of another process. m.Callable is not used; m.Examples has None for each int that is computed
// from sizes. Again returns an error if the compiled code assumes more about sizes than in the other process.
func (b *Backend) Again(s *py.Scope, m Made) (py.Object, error) {
	if m.Sizes == py.None() {
		return b.compile(s, "compile_fx", m)
	}
	return b.compile(s, "compile_again", m, m.Assumed)
}

// New returns the backend that is named by an Options object.
func New(s *py.Scope, options py.Object) (*Backend, error) {
	name, err := s.GetAttr(options, "backend_name")
	if err != nil {
		return nil, err
	}
	return &Backend{options: options, name: py.GoString(name)}, nil
}

// Inline implements translate.Backend.
func (*Backend) Inline() bool { return false }

// Name implements translate.Backend.
func (b *Backend) Name() string { return b.name }

// EmitNode implements translate.Backend. It is never called, since this is a whole-graph backend.
func (*Backend) EmitNode(translate.NodeEmitter, *fxgraph.Node) error {
	return exc.Break(exc.Reconstruct, "backend takes whole graphs")
}

// TakesApart implements translate.Backend.
func (b *Backend) TakesApart(s *py.Scope) (bool, error) {
	apart, err := s.GetAttr(b.options, "takes_apart")
	return err == nil && apart == py.True(), err
}

// FixesSizes implements translate.Backend.
func (b *Backend) FixesSizes(s *py.Scope) (bool, error) {
	fixes, err := s.GetAttr(b.options, "fixes_sizes")
	return err == nil && fixes == py.True(), err
}

// Compile implements translate.Backend.
func (b *Backend) Compile(s *py.Scope, g *fxgraph.Graph, pool []py.Object, in translate.Inputs) (py.Object, error) {
	ref, err := translate.RefClass(s)
	if err != nil {
		return py.Object{}, err
	}
	g.PlaceholdersFirst()
	var rows, several []py.Object
	for _, n := range g.Nodes() {
		row, err := translate.NodeRow(s, n, pool, ref)
		if err != nil {
			return py.Object{}, err
		}
		rows = append(rows, row)
		if n.Several {
			several = append(several, s.Int(int64(n.Index)))
		}
	}
	sizes := in.Sizes
	if sizes.IsNull() {
		sizes = py.None()
	}
	m := Made{Rows: s.List(rows...), Several: s.List(several...), Changed: ints(s, in.Changed),
		OfModules: ints(s, in.OfModules), Examples: in.Examples, Whole: in.Whole, Sizes: sizes, Assumed: py.None()}
	answer, err := b.compile(s, "compile_fx", m)
	if err != nil {
		return answer, err
	}
	m.Callable = answer
	if sizes != py.None() && answer.Kind() == py.Tuple {
		parts := s.Items(answer)
		m.Callable, m.Assumed = parts[0], s.Tuple(parts[1:]...)
	}
	b.made = append(b.made, m)
	return answer, nil
}

// compile calls a function of godynamo._backends.compiling: compile_fx or compile_again.
func (b *Backend) compile(s *py.Scope, function string, m Made, more ...py.Object) (py.Object, error) {
	compiling, err := s.Import("godynamo._backends.compiling")
	if err != nil {
		return py.Object{}, err
	}
	backend, err := s.GetAttr(b.options, "backend")
	if err != nil {
		return py.Object{}, err
	}
	return s.CallMethod(compiling, function, append([]py.Object{m.Rows, backend, s.Str(b.name), s.List(m.Examples...),
		b.options, m.Several, py.Bool(m.Whole), m.Sizes, m.Changed, m.OfModules}, more...)...)
}

// ints returns a tuple of Python ints.
func ints(s *py.Scope, values []int) py.Object {
	out := make([]py.Object, len(values))
	for i, v := range values {
		out[i] = s.Int(int64(v))
	}
	return s.Tuple(out...)
}
