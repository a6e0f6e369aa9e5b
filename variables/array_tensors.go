package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// makesTensor lists the functions of torch that take an array and return a tensor.
var makesTensor = map[string]bool{"torch.tensor": true, "torch.as_tensor": true, "torch.asarray": true,
	"torch.from_numpy": true}

// tensorOfArray captures a function of torch that makes a tensor of an array or a scalar of numpy, or of a list with
// some. ok is false for other first arguments.
func tensorOfArray(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw) (VariableTracker,
	bool, error) {
	if !makesTensor[name] || len(args) == 0 || !holdsArray(tx, args[0], 0) {
		return nil, false, nil
	}
	r, err := tensorFromArray(tx, fn, name, args, kwargs)
	return r, true, err
}

func tensorFromArray(tx Translator, fn py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	if err := withoutModes(tx, name); err != nil {
		return nil, err
	}
	if on, err := w.TorchFunctionModeActive(s); err != nil || on {
		return nil, unsupported(exc.TensorSubclass, "a torch function mode is active")
	}
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	c := &arrayCall{name: name, args: args[:1], data: 1}
	operands, samples, err := c.operands(tx, m)
	if err != nil {
		return nil, err
	}
	var names []string
	all := samples
	for i, v := range append(append([]VariableTracker(nil), args[1:]...), KwValues(kwargs)...) {
		o, ok := AsConstant(tx, MustRealize(tx, v))
		if !ok {
			return nil, unsupported(exc.CallUnsupported, "%s of an array, with %s", name, Describe(tx, v))
		}
		if i < len(args)-1 {
			operands = append(operands, v)
		} else {
			names = append(names, kwargs[i-len(args)+1].Name)
		}
		all = append(all, o)
	}
	var pairs [][2]py.Object
	for i, n := range names {
		pairs = append(pairs, [2]py.Object{s.Name(n), all[len(args)+i]})
	}
	kw, err := s.Dict(pairs...)
	if err != nil {
		return nil, err
	}
	sample, err := s.CallMethod(m, "tensor", fn, s.Tuple(all[:len(args)]...), kw)
	if err != nil {
		return nil, err
	}
	if sample == pyNone {
		return nil, unsupported(exc.CallUnsupported, "%s of this array", name)
	}
	node, err := tx.Output().CallNumpy(tx, fn, name, operands, kwargs)
	if err != nil {
		return nil, err
	}
	tx.Output().Declare(node, Declared{Sample: sample})
	return NewTensor(node), nil
}

// index returns what torch uses as an index of a tensor in place of an array or a scalar of numpy.
func (a *ArrayVariable) index(tx Translator) (VariableTracker, error) {
	if a.Sample.Type() != tx.World().arrayType {
		if tx.World().isNumpyBool(a.Sample) {
			return a, nil
		}
		return a.number(tx, "item", py.Object{})
	}
	how, err := indexMethod(tx, a.Sample)
	if err != nil || how == "" {
		return a, err
	}
	torch, err := tx.Scope().Import("torch")
	if err != nil {
		return nil, err
	}
	fn, err := tx.Scope().GetAttr(torch, "from_numpy")
	if err != nil {
		return nil, err
	}
	t, err := tensorFromArray(tx, fn, "torch.from_numpy", []VariableTracker{a}, nil)
	if err != nil {
		return nil, err
	}
	node, err := tx.Output().CallMethod(tx, how, []VariableTracker{t}, nil)
	if err != nil {
		return nil, err
	}
	return NewTensor(node), nil
}

// arrayOfTensor captures numpy.asarray and similar functions of a tensor, which call Tensor.__array__. ok is false for
// other functions and arguments.
func arrayOfTensor(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw) (VariableTracker,
	bool, error) {
	if len(args) != 1 || len(kwargs) > 0 || name != "asarray" && name != "array" {
		return nil, false, nil
	}
	v, err := Realize(tx, args[0])
	if err != nil {
		return nil, false, err
	}
	t, ok := v.(*TensorVariable)
	if !ok {
		return nil, false, nil
	}
	r, err := t.array(tx, fn, name)
	return r, true, err
}

// array captures t.numpy() if fn is null, and otherwise the function of numpy with this name. The array shares the
// tensor's memory, unless the function is numpy.array.
func (t *TensorVariable) array(tx Translator, fn py.Object, name string) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	refused := unsupported(exc.TensorToPython, "numpy()")
	if !capturesArrays(tx) || w.FixesSizes > 0 || !t.Class.IsNull() && t.Class != w.ParameterType {
		return nil, refused
	}
	if err := withoutModes(tx, "Tensor.numpy"); err != nil {
		return nil, err
	}
	meta, err := t.Meta(tx)
	if err != nil {
		return nil, err
	}
	if meta.RequiresGrad || s.Repr(meta.Layout) != "torch.strided" || s.Repr(meta.Device) != "device(type='cpu')" {
		return nil, refused
	}
	for _, field := range []string{"dtype", "layout", "device", "stride", "requires_grad"} {
		t.Need(tx, field)
	}
	size := make([]py.Object, len(meta.Shape))
	for i, n := range meta.Shape {
		k, err := Specialise(tx, n)
		if err != nil {
			return nil, err
		}
		size[i] = s.Int(k)
	}
	stride := make([]py.Object, len(meta.Stride))
	for i, n := range meta.Stride {
		stride[i] = s.Int(int64(n))
	}
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	sample, err := s.CallMethod(m, "of_tensor", s.Name(name), s.Tuple(size...), s.Tuple(stride...), meta.Dtype)
	if err != nil {
		return nil, err
	}
	if sample == pyNone {
		return nil, refused
	}
	target := "numpy"
	if name != "" {
		target += "." + name
		if place, hidden := placeToName(tx); hidden {
			if fn, err = placedFunction(tx, m, fn, place); err != nil {
				return nil, err
			}
		}
	}
	node, err := tx.Output().CallNumpy(tx, fn, target, []VariableTracker{t}, nil)
	if err != nil {
		return nil, err
	}
	return &ArrayVariable{Node: node, Sample: sample}, nil
}
