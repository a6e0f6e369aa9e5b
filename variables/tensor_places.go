package variables

import (
	"slices"

	"github.com/godynamo/godynamo/pyhook/py"
)

// placesKind returns the kind of result of nonzero(as_tuple=...) and of where(condition). The result is one tensor, or
// one for each dimension. Its sizes depend on data. ok is false for other calls.
func placesKind(tx Translator, name string, args []VariableTracker, kwargs []Kw) (kind result, ok bool, err error) {
	switch {
	case name == "where" && len(args) == 1 && len(kwargs) == 0:
	case name == "nonzero" && len(args) == 1:
		at := slices.IndexFunc(kwargs, func(kw Kw) bool { return kw.Name == "as_tuple" })
		if at < 0 {
			return result{}, false, nil
		}
		v, err := Realize(tx, kwargs[at].Value)
		if err != nil {
			return result{}, false, err
		}
		tuple, known := AsConstant(tx, v)
		if !known || tuple.Kind() != py.BoolKind || tuple == py.True() && len(kwargs) > 1 {
			return result{}, false, nil
		}
		if tuple != py.True() {
			return result{kind: givesTensor}, true, nil
		}
	default:
		return result{}, false, nil
	}
	v, err := Realize(tx, args[0])
	if err != nil {
		return result{}, false, err
	}
	x, ok := v.(*TensorVariable)
	if !ok {
		return result{}, false, nil
	}
	m, err := x.Sizes(tx)
	if err != nil {
		return result{}, false, err
	}
	x.Need(tx, "ndim")
	return result{givesTensors, max(len(m.Shape), 1)}, true, nil
}

// makers lists functions whose arguments are sizes. A size may be a tensor.
var makers = map[string]bool{"torch.zeros": true, "torch.ones": true, "torch.empty": true, "torch.rand": true,
	"torch.randn": true}

// knownSizes handles calls of makers in torch's own code. It replaces tensors among the sizes with their values, if
// these can be precomputed: fake tensors of a backend have no values.
func (t *TorchVariable) knownSizes(tx Translator, name string, args []VariableTracker) ([]VariableTracker, error) {
	if !makers[name] {
		return args, nil
	}
	out := make([]VariableTracker, len(args))
	for i, a := range args {
		v, err := Argument(tx, a)
		if err != nil {
			return nil, err
		}
		switch x := v.(type) {
		case *TensorVariable:
			known, ok, err := x.foresee(tx, "index")
			if err != nil {
				return nil, err
			}
			if ok {
				v = known
			}
		case *TupleVariable:
			if x.Src == nil && x.class.IsNull() {
				items, err := t.knownSizes(tx, name, x.items)
				if err != nil {
					return nil, err
				}
				v = NewTuple(items, nil)
			}
		}
		out[i] = v
	}
	return out, nil
}
