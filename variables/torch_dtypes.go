package variables

import "github.com/godynamo/godynamo/pyhook/py"

// scalarTypes maps the classes that torch takes for a dtype to the dtype's name.
var scalarTypes = map[string]string{"bool": "bool", "int": "int64", "float": "float64"}

// asDtypes returns the arguments of a call of torch with dtypes in place of the classes bool, int and float, which
// torch takes for dtypes (`torch.zeros(3, dtype=float)`). A graph has no classes as operands.
func asDtypes(tx Translator, name string, args []VariableTracker, kwargs []Kw) ([]VariableTracker, []Kw, error) {
	if name == "to" && len(args) > 0 {
		d, err := asDtype(tx, args[0])
		if err != nil {
			return nil, nil, err
		}
		args = append([]VariableTracker{d}, args[1:]...)
	}
	for i, kw := range kwargs {
		if kw.Name != "dtype" {
			continue
		}
		d, err := asDtype(tx, kw.Value)
		if err != nil {
			return nil, nil, err
		}
		kwargs = append(append(append([]Kw(nil), kwargs[:i]...), Kw{kw.Name, d}), kwargs[i+1:]...)
	}
	return args, kwargs, nil
}

// asDtype returns the dtype that v means to torch, or v if it is not one of these classes.
func asDtype(tx Translator, v VariableTracker) (VariableTracker, error) {
	for class, dtype := range scalarTypes {
		if !CallsBuiltin(tx.World(), v, class) {
			continue
		}
		if _, err := Realize(tx, v); err != nil { // guards it
			return nil, err
		}
		torch, err := tx.Scope().Import("torch")
		if err != nil {
			return nil, err
		}
		d, err := tx.Scope().GetAttr(torch, dtype)
		if err != nil {
			return nil, err
		}
		return NewConstant(d, nil), nil
	}
	return v, nil
}

// callWithDtypes calls an operation, with dtypes in place of such classes. An operator that is called by its schema
// (torch.ops.aten.sum) does not take the classes.
func (t *TorchVariable) callWithDtypes(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if t.Fn.Kind() != py.Other {
		var err error
		if args, kwargs, err = asDtypes(tx, name, args, kwargs); err != nil {
			return nil, err
		}
	}
	return t.callOp(tx, name, args, kwargs)
}
