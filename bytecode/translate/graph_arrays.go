package translate

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// An operation that calls numpy (variables.ArrayVariable) is a foreign operation: it runs exactly once, where the
// program calls it, and FakeTensor does not compute its result. Only Tensor.numpy() may run again. Tensors made from
// arrays are declared: they have the metadata of a sample.

// ArrayInput implements variables.Output.
func (o *OutputGraph) ArrayInput(a *variables.ArrayVariable) *fxgraph.Node {
	o.foreign.found()
	n := o.placeholder(a, sanitize(a.Src.Name())).Node
	n.Foreign, o.foreign.arrays[n] = true, true
	return n
}

// CallNumpy implements variables.Output.
func (o *OutputGraph) CallNumpy(tx variables.Translator, fn py.Object, name string, args []variables.VariableTracker,
	kwargs []variables.Kw) (*fxgraph.Node, error) {
	if err := o.mayBeForeign(tx, name, true); err != nil {
		return nil, err
	}
	ran := o.foreign.ran
	n, err := o.callForeign(tx, fn, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	o.foreign.arrays[n] = true
	if fn.IsNull() && name == "numpy" { // t.numpy() only makes an array of the tensor's memory
		o.foreign.ran, o.foreign.repeatable[n] = ran, true
	}
	return n, nil
}
