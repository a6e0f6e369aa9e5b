package translate

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/variables"
)

// moduleInputs returns the numbers of the graph's inputs that are parameters or buffers of nn.Modules. Their memory
// rarely moves; see godynamo._backends.fixed_inputs.
func (o *OutputGraph) moduleInputs() []int {
	return o.inputsWhere(func(n *fxgraph.Node) bool {
		t, ok := o.inputOf[n]
		return ok && o.ofModule(t)
	})
}

// ofModule reports whether a tensor is a parameter or a buffer, read from its nn.Module.
func (o *OutputGraph) ofModule(t *variables.TensorVariable) bool {
	if t.Source() == nil || !t.Source().GuardSource().IsNNModule() {
		return false
	}
	if t.Class == o.world.ParameterType {
		return true
	}
	for s := t.Source(); s != nil; s = s.Base() {
		if a, ok := s.(*guards.AttrSource); ok {
			return a.Attr == "_buffers"
		}
	}
	return false
}
