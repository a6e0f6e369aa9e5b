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
	values := map[string]VariableTracker{}
	for i, name := range []string{"module", "parameter_and_buffer_dicts", "args", "kwargs"} {
		if i < len(args) {
			values[name] = args[i]
		}
	}
	for _, kw := range kwargs {
		values[kw.Name] = kw.Value
	}
	tie := true
	for name, v := range values {
		v, err := Realize(tx, v)
		if err != nil {
			return nil, err
		}
		values[name] = v
		if name == "tie_weights" || name == "strict" {
			c, known := AsConstant(tx, v)
			if !known || name == "strict" && c != py.False() {
				return nil, refused
			}
			tie = tie && (name == "strict" || c == py.True())
		}
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
	var replaced []replacedTensor
	tx.World().replaced++
	defer func() {
		tx.World().replaced--
		for _, r := range replaced {
			r.dict.values[r.at] = r.before
		}
	}()
	dicts := []VariableTracker{values["parameter_and_buffer_dicts"]}
	switch x := dicts[0].(type) {
	case *ListVariable:
		dicts = x.items
	case *TupleVariable:
		dicts = x.items
	}
	for _, d := range dicts {
		v, err := Realize(tx, d)
		if err != nil {
			return nil, err
		}
		given, ok := v.(*DictVariable)
		if !ok {
			return nil, refused
		}
		for i, k := range given.keys {
			name, ok := ConstStr(tx, mustRealize(tx, k))
			if !ok {
				return nil, refused
			}
			t, err := Realize(tx, given.values[i])
			if err != nil {
				return nil, err
			}
			r, err := module.tensorPlace(tx, name, refused)
			if err != nil {
				return nil, err
			}
			for _, other := range replaced {
				if other.dict == r.dict && other.at == r.at {
					return nil, refused
				}
			}
			if !isTensor(t) {
				return nil, refused
			}
			r.now = t
			replaced = append(replaced, r)
			r.dict.values[r.at] = t
		}
	}
	var call []VariableTracker
	if a := values["args"]; a != nil {
		if t, ok := a.(*TupleVariable); ok {
			call = t.items
		} else if c, known := AsConstant(tx, a); !known || c != pyNone {
			call = []VariableTracker{a}
		}
	}
	var named []Kw
	if k, ok := values["kwargs"].(*DictVariable); ok {
		for i, key := range k.keys {
			name, ok := ConstStr(tx, mustRealize(tx, key))
			if !ok {
				return nil, refused
			}
			named = append(named, Kw{name, k.values[i]})
		}
	} else if v := values["kwargs"]; v != nil {
		if c, known := AsConstant(tx, v); !known || c != pyNone {
			return nil, refused
		}
	}
	r, err := Call(tx, module, call, named)
	for _, x := range replaced {
		if err == nil && mustRealize(tx, x.dict.values[x.at]) != mustRealize(tx, x.now) {
			return nil, refused // the module has stored another one
		}
	}
	return r, err
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
