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
	compiling, err := s.Import("godynamo._backends.compiling")
	if err != nil {
		return py.Object{}, err
	}
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
	backend, err := s.GetAttr(b.options, "backend")
	if err != nil {
		return py.Object{}, err
	}
	return s.CallMethod(compiling, "compile_fx", s.List(rows...), backend, s.Str(b.name), s.List(in.Examples...),
		b.options, s.List(several...), py.Bool(in.Whole), sizes, ints(s, in.Changed), ints(s, in.OfModules))
}

// ints returns a tuple of Python ints.
func ints(s *py.Scope, values []int) py.Object {
	out := make([]py.Object, len(values))
	for i, v := range values {
		out[i] = s.Int(int64(v))
	}
	return s.Tuple(out...)
}
