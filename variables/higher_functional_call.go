package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// replacedTensor is a parameter or buffer in whose place functional_call has another tensor for the time of the call.
type replacedTensor struct {
	dict        *DictVariable
	at          int
	before, now VariableTracker
}

// functionalCall is torch.func.functional_call(module, tensors, args, kwargs): the module is called with other tensors in its dicts. They are
// put back when the call is over, so nothing of it is an effect.
func functionalCall(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	refused := unsupported(exc.CallUnsupported, "torch.func.functional_call")
	values := functionalArgs(args, kwargs)
	tie, err := realizeFunctional(tx, values, refused)
	if err != nil {
		return nil, err
	}
	module, ok := values["module"].(*ObjectVariable)
	if !ok || !module.isModule(tx) || module.Obj.IsNull() || values["parameter_and_buffer_dicts"] == nil || len(args) > 4 {
		return nil, refused
	}
	if tie {
		if err := module.withoutTies(tx, refused); err != nil {
			return nil, err
		}
	}
	r := &replacing{tx: tx, module: module, refused: refused}
	tx.World().replaced++
	defer r.restore()
	if err := r.replaceAll(values["parameter_and_buffer_dicts"]); err != nil {
		return nil, err
	}
	call := positionalOf(tx, values["args"])
	named, err := keywordsOf(tx, values["kwargs"], refused)
	if err != nil {
		return nil, err
	}
	result, err := Call(tx, module, call, named)
	if err == nil && r.stored() {
		return nil, refused
	}
	return result, err
}

// functionalArgs are the arguments by their names.
func functionalArgs(args []VariableTracker, kwargs []Kw) map[string]VariableTracker {
	values := map[string]VariableTracker{}
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

// realizeFunctional realizes the arguments in their map. tie: tensors that are tied change together; strict is refused.
func realizeFunctional(tx Translator, values map[string]VariableTracker, refused error) (tie bool, err error) {
	tie = true
	for name, v := range values {
		v, err := Realize(tx, v)
		if err != nil {
			return false, err
		}
		values[name] = v
		if name == "tie_weights" || name == "strict" {
			c, known := AsConstant(tx, v)
			if !known || name == "strict" && c != py.False() {
				return false, refused
			}
			tie = tie && (name == "strict" || c == py.True())
		}
	}
	return tie, nil
}

// positionalOf are the module's positional arguments: a tuple's items, nothing for None, else the one value.
func positionalOf(tx Translator, args VariableTracker) []VariableTracker {
	if args == nil {
		return nil
	}
	if t, ok := args.(*TupleVariable); ok {
		return t.items
	}
	if c, known := AsConstant(tx, args); !known || c != pyNone {
		return []VariableTracker{args}
	}
	return nil
}

// keywordsOf are the module's keyword arguments, of a dict or None.
func keywordsOf(tx Translator, kwargs VariableTracker, refused error) (named []Kw, err error) {
	k, ok := kwargs.(*DictVariable)
	if !ok {
		if kwargs == nil {
			return nil, nil
		}
		if c, known := AsConstant(tx, kwargs); !known || c != pyNone {
			return nil, refused
		}
		return nil, nil
	}
	for i, key := range k.keys {
		name, ok := ConstStr(tx, mustRealize(tx, key))
		if !ok {
			return nil, refused
		}
		named = append(named, Kw{name, k.values[i]})
	}
	return named, nil
}

// replacing is a functional_call under way, with the tensors that it has replaced.
type replacing struct {
	tx       Translator
	module   *ObjectVariable
	refused  error
	replaced []replacedTensor
}

// replaceAll puts the tensors of a dict, or of a list or tuple of dicts, into the module.
func (r *replacing) replaceAll(tensors VariableTracker) error {
	dicts := []VariableTracker{tensors}
	switch x := tensors.(type) {
	case *ListVariable:
		dicts = x.items
	case *TupleVariable:
		dicts = x.items
	}
	for _, d := range dicts {
		v, err := Realize(r.tx, d)
		if err != nil {
			return err
		}
		given, ok := v.(*DictVariable)
		if !ok {
			return r.refused
		}
		for i, k := range given.keys {
			name, ok := ConstStr(r.tx, mustRealize(r.tx, k))
			if !ok {
				return r.refused
			}
			if err := r.replace(name, given.values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace puts one tensor into the module; a second one at its place is refused.
func (r *replacing) replace(name string, v VariableTracker) error {
	t, err := Realize(r.tx, v)
	if err != nil {
		return err
	}
	place, err := r.module.tensorPlace(r.tx, name, r.refused)
	if err != nil {
		return err
	}
	for _, other := range r.replaced {
		if other.dict == place.dict && other.at == place.at {
			return r.refused
		}
	}
	if !isTensor(t) {
		return r.refused
	}
	place.now = t
	r.replaced = append(r.replaced, place)
	place.dict.values[place.at] = t
	return nil
}

// stored reports whether the module has stored another tensor at a replaced one's place.
func (r *replacing) stored() bool {
	for _, x := range r.replaced {
		if mustRealize(r.tx, x.dict.values[x.at]) != mustRealize(r.tx, x.now) {
			return true
		}
	}
	return false
}

// restore puts the module's own tensors back.
func (r *replacing) restore() {
	r.tx.World().replaced--
	for _, x := range r.replaced {
		x.dict.values[x.at] = x.before
	}
}

// withoutTies sees to it that no tensor of the module's is there under two names.
func (o *ObjectVariable) withoutTies(tx Translator, refused error) error {
	m, err := tx.Scope().Import("godynamo._translator.higher")
	if err != nil {
		return err
	}
	untied, err := tx.Scope().GetAttr(m, "untied")
	if err != nil {
		return err
	}
	if !tx.World().truth(tx.Scope(), untied, o.Obj) {
		return refused
	}
	src := o.Src
	if src == nil {
		src = guards.NewConstSource(tx.Output().Const(o.Obj), "___module")
	}
	tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(untied), "has no tied tensors"))
	return nil
}

// tensorPlace is where a module keeps a parameter or buffer, by its dotted name.
func (o *ObjectVariable) tensorPlace(tx Translator, name string, refused error) (replacedTensor, error) {
	none := replacedTensor{}
	path := strings.Split(name, ".")
	for _, part := range path[:len(path)-1] {
		dv, err := o.lookup(tx, "_modules")
		if err != nil || dv == nil {
			return none, refused
		}
		v, found, err := moduleDictItem(tx, dv, part)
		if err != nil || !found {
			return none, refused
		}
		if v, err = Realize(tx, v); err != nil {
			return none, err
		}
		sub, ok := v.(*ObjectVariable)
		if !ok || !sub.isModule(tx) || sub.Obj.IsNull() {
			return none, refused
		}
		o = sub
	}
	for _, part := range []string{"_parameters", "_buffers"} {
		dv, err := o.lookup(tx, part)
		if err != nil || dv == nil {
			return none, refused
		}
		v, err := Realize(tx, dv)
		if err != nil {
			return none, err
		}
		d, ok := v.(*DictVariable)
		if !ok {
			return none, refused
		}
		for i, k := range d.keys {
			if text, ok := ConstStr(tx, mustRealize(tx, k)); ok && text == path[len(path)-1] {
				if c, known := AsConstant(tx, mustRealize(tx, d.values[i])); known && c == pyNone {
					return none, refused
				}
				return replacedTensor{dict: d, at: i, before: d.values[i]}, nil
			}
		}
	}
	return none, refused
}
