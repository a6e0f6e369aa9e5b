package variables

import (
	"cmp"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// A call of a method of a scripted or traced module is one foreign operation of the graph, which calls the method as in
// eager mode. What the result looks like is found out by a run of a copy of its code on fake tensors
// (python/godynamo/_translator/scripted.py). The code may read attributes that change, so a second operation checks the
// result. If it looks different, the frames go on in CPython after the call, and the next call is translated again.

// scriptedCall is such a call.
type scriptedCall struct {
	method *ObjectVariable
	name   string
	args   []VariableTracker
	kwargs []Kw
}

// callScripted calls a torch._C.ScriptMethod. It returns nil for other objects.
func callScripted(tx Translator, o *ObjectVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if o.Obj.IsNull() || o.Class != tx.World().ScriptMethod || tx.Output().WholeGraph() {
		return nil, nil
	}
	c := &scriptedCall{o, "a scripted method", append([]VariableTracker(nil), args...), append([]Kw(nil), kwargs...)}
	if name, ok := py.Answered(tx.Scope().GetAttr(o.Obj, "name")); ok && name.Kind() == py.Str {
		c.name = "scripted " + py.GoString(name)
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return nil, cmp.Or(err, c.refused("under a function mode"))
	}
	looks, err := c.looks(tx)
	if err != nil {
		return nil, err
	}
	return c.call(tx, looks)
}

func (c *scriptedCall) refused(why string) error {
	return unsupported(exc.CallUnsupported, "%s %s", c.name, why)
}

// sample returns an argument as _translator/scripted.of_method takes it: a tensor with the same metadata, or the value.
func (c *scriptedCall) sample(tx Translator, v *VariableTracker) (py.Object, error) {
	var err error
	if *v, err = Realize(tx, *v); err != nil {
		return py.Object{}, err
	}
	if t, ok := (*v).(*TensorVariable); ok && t.plain(tx) {
		return tx.Output().Sample(t)
	}
	o, known := AsConstant(tx, *v)
	if _, err := AsProxy(tx, *v); !known || err != nil {
		return py.Object{}, c.refused("with " + Describe(tx, *v))
	}
	return o, nil
}

// looks returns what the result looks like, with the metadata of the arguments in this call.
func (c *scriptedCall) looks(tx Translator) (py.Object, error) {
	s := tx.Scope()
	tx.Output().AddGuards(guards.GlobalState())
	samples := make([]py.Object, len(c.args))
	var err error
	for i := range c.args {
		if samples[i], err = c.sample(tx, &c.args[i]); err != nil {
			return py.Object{}, err
		}
	}
	named, err := s.Dict()
	if err != nil {
		return py.Object{}, err
	}
	for i := range c.kwargs {
		o, err := c.sample(tx, &c.kwargs[i].Value)
		if err != nil {
			return py.Object{}, err
		}
		s.DictSet(named, c.kwargs[i].Name, o)
	}
	m, err := s.Import("godynamo._translator.scripted")
	if err != nil {
		return py.Object{}, err
	}
	looks, err := s.CallMethod(m, "of_method", c.method.Obj, s.Tuple(samples...), named)
	if err == nil && looks == pyNone {
		err = c.refused("with results or effects that are unknown")
	}
	return looks, err
}

// call adds the call, and the check that its result looks like that.
func (c *scriptedCall) call(tx Translator, looks py.Object) (VariableTracker, error) {
	out := tx.Output()
	check, err := c.check(tx, looks)
	if err != nil {
		return nil, err
	}
	method, err := out.ObjectOperand(tx, c.method)
	if err != nil {
		return nil, err
	}
	node, err := out.CallForeign(tx, py.Object{}, "__call__", append([]VariableTracker{method}, c.args...), c.kwargs)
	if err != nil {
		return nil, err
	}
	node.Opaque = true // it may draw random numbers
	parts := tx.Scope().Items(looks)
	tensors := tx.Scope().Items(parts[1])
	result := VariableTracker(NewTensor(node))
	items := NewTuple(nil, nil)
	if parts[0] == py.True() {
		result = items
	}
	given := NewTuple(append(append([]VariableTracker(nil), c.args...), KwValues(c.kwargs)...), nil)
	_, err = out.CallLeaving(tx, check, "godynamo.as_declared", []VariableTracker{NewForeign(node, ""), given},
		Leaving{Result: result, Node: node, Why: c.name})
	if err != nil {
		return nil, err
	}
	if parts[0] != py.True() { // the result itself is not foreign, so it must not count as one of a change in place
		out.Declare(node, Declared{Looks: tensors[0], Computed: true})
		return result, nil
	}
	node.Inplace = true
	for i, t := range tensors {
		item, err := out.CallFunction(tx, tx.World().Operator("getitem"), "godynamo.item",
			[]VariableTracker{NewForeign(node, ""), IntConst(tx, i)}, nil)
		if err != nil {
			return nil, err
		}
		item.Item = true
		out.Declare(item, Declared{Looks: t, Computed: true})
		items.items = append(items.items, NewTensor(item))
	}
	return result, nil
}

// check returns the function that checks the result, and guards that it has found no difference since.
func (c *scriptedCall) check(tx Translator, looks py.Object) (py.Object, error) {
	s := tx.Scope()
	predictions, err := s.Import("godynamo._called.predictions")
	if err != nil {
		return py.Object{}, err
	}
	question := s.Str(c.name + " of " + c.method.Src.Name())
	key, err := s.CallMethod(predictions, "declare", question, s.Str(s.Repr(looks)))
	if err != nil {
		return py.Object{}, err
	}
	if key == pyNone {
		return py.Object{}, c.refused("whose results change")
	}
	out := tx.Output()
	src := guards.NewModuleAttrSource(guards.NewConstSource(out.Const(predictions), "___predictions"), "refuted")
	out.AddGuards(guards.DictContains(src, out.Const(key), false))
	m, err := s.Import("godynamo._translator.scripted")
	if err != nil {
		return py.Object{}, err
	}
	return s.CallMethod(m, "as_declared", question, key, looks)
}
