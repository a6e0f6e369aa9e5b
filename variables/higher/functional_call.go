package higher

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// replacedTensor is a parameter or buffer of a module. During a functional_call, another tensor replaces it.
type replacedTensor struct {
	dict        *variables.DictVariable
	at          int
	before, now variables.VariableTracker
}

// functionalCall implements torch.func.functional_call(module, tensors, args, kwargs). It puts the given tensors into
// the module's dicts and calls the module. After the call, it restores the original tensors, so the replacement is not
// an effect.
func functionalCall(tx variables.Translator, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	refused := exc.Break(exc.CallUnsupported, "torch.func.functional_call")
	values := functionalArgs(args, kwargs)
	tie, err := realizeFunctional(tx, values, refused)
	if err != nil {
		return nil, err
	}
	module, ok := values["module"].(*variables.ObjectVariable)
	if !ok || !module.IsModule(tx) || module.Obj.IsNull() || values["parameter_and_buffer_dicts"] == nil ||
		len(args) > 4 {
		return nil, refused
	}
	if tie {
		if err := withoutTies(tx, module, refused); err != nil {
			return nil, err
		}
	}
	r := &replacing{tx: tx, module: module, refused: refused}
	tx.World().Replaced++
	defer r.restore()
	if err := r.replaceAll(values["parameter_and_buffer_dicts"]); err != nil {
		return nil, err
	}
	call := positionalOf(tx, values["args"])
	named, err := keywordsOf(tx, values["kwargs"], refused)
	if err != nil {
		return nil, err
	}
	result, err := variables.Call(tx, module, call, named)
	if err == nil && r.stored() {
		return nil, refused
	}
	return result, err
}

// functionalArgs returns the arguments of functional_call by name.
func functionalArgs(args []variables.VariableTracker, kwargs []variables.Kw) map[string]variables.VariableTracker {
	values := map[string]variables.VariableTracker{}
	for i, name := range []string{"module", "parameter_and_buffer_dicts", "args", "kwargs"} {
		if i < len(args) {
			values[name] = args[i]
		}
	}
	for _, kw := range kwargs {
		values[kw.Name] = kw.Value
	}
	return values
}

// realizeFunctional realizes the arguments in values and returns the value of tie_weights. It refuses strict=True.
func realizeFunctional(tx variables.Translator, values map[string]variables.VariableTracker,
	refused error) (tie bool, err error) {
	tie = true
	for name, v := range values {
		v, err := variables.Realize(tx, v)
		if err != nil {
			return false, err
		}
		values[name] = v
		if name == "tie_weights" || name == "strict" {
			c, known := variables.AsConstant(tx, v)
			if !known || name == "strict" && c != py.False() {
				return false, refused
			}
			tie = tie && (name == "strict" || c == py.True())
		}
	}
	return tie, nil
}

// positionalOf returns the positional arguments for the module. For a tuple, these are its items; for None, there are
// none; any other value is the only argument.
func positionalOf(tx variables.Translator, args variables.VariableTracker) []variables.VariableTracker {
	if args == nil {
		return nil
	}
	if t, ok := args.(*variables.TupleVariable); ok {
		return itemsOf(tx, t)
	}
	if c, known := variables.AsConstant(tx, args); !known || c != py.None() {
		return []variables.VariableTracker{args}
	}
	return nil
}

// keywordsOf returns the keyword arguments for the module. kwargs is a dict or None.
func keywordsOf(tx variables.Translator, kwargs variables.VariableTracker,
	refused error) (named []variables.Kw, err error) {
	k, ok := kwargs.(*variables.DictVariable)
	if !ok {
		if kwargs == nil {
			return nil, nil
		}
		if c, known := variables.AsConstant(tx, kwargs); !known || c != py.None() {
			return nil, refused
		}
		return nil, nil
	}
	for i, key := range k.Keys() {
		name, ok := variables.ConstStr(tx, variables.MustRealize(tx, key))
		if !ok {
			return nil, refused
		}
		named = append(named, variables.Kw{Name: name, Value: k.Values()[i]})
	}
	return named, nil
}

// replacing is a functional_call in progress. It records the tensors that it has replaced.
type replacing struct {
	tx       variables.Translator
	module   *variables.ObjectVariable
	refused  error
	replaced []replacedTensor
}

// replaceAll puts the given tensors into the module. tensors is a dict, or a list or tuple of dicts.
func (r *replacing) replaceAll(tensors variables.VariableTracker) error {
	dicts := []variables.VariableTracker{tensors}
	switch x := tensors.(type) {
	case *variables.ListVariable:
		dicts = itemsOf(r.tx, x)
	case *variables.TupleVariable:
		dicts = itemsOf(r.tx, x)
	}
	for _, d := range dicts {
		v, err := variables.Realize(r.tx, d)
		if err != nil {
			return err
		}
		given, ok := v.(*variables.DictVariable)
		if !ok {
			return r.refused
		}
		for i, k := range given.Keys() {
			name, ok := variables.ConstStr(r.tx, variables.MustRealize(r.tx, k))
			if !ok {
				return r.refused
			}
			if err := r.replace(name, given.Values()[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace puts one tensor into the module, at the parameter or buffer of this name. It refuses to replace the same
// parameter or buffer twice.
func (r *replacing) replace(name string, v variables.VariableTracker) error {
	t, err := variables.Realize(r.tx, v)
	if err != nil {
		return err
	}
	dict, at, ok, err := r.module.TensorPlace(r.tx, name)
	if err != nil {
		return err
	}
	if !ok {
		return r.refused
	}
	for _, other := range r.replaced {
		if other.dict == dict && other.at == at {
			return r.refused
		}
	}
	if !variables.IsTensor(t) {
		return r.refused
	}
	r.replaced = append(r.replaced, replacedTensor{dict: dict, at: at, before: dict.Swap(at, t), now: t})
	return nil
}

// stored reports whether the module, while it ran, replaced a tensor that functional_call had put there.
func (r *replacing) stored() bool {
	for _, x := range r.replaced {
		if variables.MustRealize(r.tx, x.dict.Values()[x.at]) != variables.MustRealize(r.tx, x.now) {
			return true
		}
	}
	return false
}

// restore puts the module's original tensors back.
func (r *replacing) restore() {
	r.tx.World().Replaced--
	for _, x := range r.replaced {
		x.dict.Swap(x.at, x.before)
	}
}

// withoutTies adds a guard that no parameter or buffer of the module has two names. It refuses a module with a
// parameter or buffer that has two names.
func withoutTies(tx variables.Translator, o *variables.ObjectVariable, refused error) error {
	m, err := tx.Scope().Import("godynamo._translator.higher")
	if err != nil {
		return err
	}
	untied, err := tx.Scope().GetAttr(m, "untied")
	if err != nil {
		return err
	}
	if r, ok := py.Answered(tx.Scope().Call(untied, o.Obj)); !ok || r != py.True() {
		return refused
	}
	src := o.Src
	if src == nil {
		src = guards.NewConstSource(tx.Output().Const(o.Obj), "___module")
	}
	tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(untied), "has no tied tensors"))
	return nil
}
