package variables

import (
	"cmp"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// A call of a method of a scripted or traced module is one foreign operation of the graph, which calls the method as
// in eager mode. So is a call of a quantized operator on packed parameters. What the result looks like is found out by
// a run of a copy of the method's code on fake tensors, or of the operator on other tensors
// (python/godynamo/_translator/scripted.py). Scripted code may read attributes that change, so a second operation
// checks the result. If it looks different, the frames go on in CPython after the call, and the next call is translated
// again.

// scriptedCall is such a call.
type scriptedCall struct {
	callee   py.Object
	asks     string // the function of _translator/scripted that finds out what the result looks like
	name     string
	question string // the call's name in _called/predictions
	args     []VariableTracker
	kwargs   []Kw
	// add adds the operation.
	add func(args []VariableTracker) (*fxgraph.Node, error)
}

// callScripted calls a torch._C.ScriptMethod. It returns nil for other objects.
func callScripted(tx Translator, o *ObjectVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if o.Obj.IsNull() || o.Src == nil || o.Class != tx.World().ScriptMethod || tx.Output().WholeGraph() {
		return nil, nil
	}
	c := &scriptedCall{callee: o.Obj, asks: "of_method", name: "a scripted method"}
	c.args, c.kwargs = append([]VariableTracker(nil), args...), append([]Kw(nil), kwargs...)
	if name, ok := py.Answered(tx.Scope().GetAttr(o.Obj, "name")); ok && name.Kind() == py.Str {
		c.name = "scripted " + py.GoString(name)
	}
	c.question = c.name + " of " + o.Src.Name()
	c.add = func(args []VariableTracker) (*fxgraph.Node, error) {
		method, err := tx.Output().ObjectOperand(tx, o)
		if err != nil {
			return nil, err
		}
		args = append([]VariableTracker{method}, args...)
		return tx.Output().CallForeign(tx, py.Object{}, "__call__", args, c.kwargs)
	}
	return c.call(tx)
}

// callQuantized calls an operator with packed parameters among its positional arguments. It returns nil if there are
// none.
func (t *TorchVariable) callQuantized(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if !strings.HasPrefix(name, "torch.ops.quantized.") || tx.Output().WholeGraph() {
		return nil, nil
	}
	c := &scriptedCall{callee: t.Fn, asks: "of_operator", name: name, question: name}
	c.args, c.kwargs = append([]VariableTracker(nil), args...), append([]Kw(nil), kwargs...)
	packed := false
	for i, a := range args {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, err
		}
		if o, ok := v.(*ObjectVariable); ok && o.Src != nil && !o.Obj.IsNull() && o.Class == tx.World().ScriptObject {
			packed, c.question = true, c.question+" of "+o.Src.Name()
		}
		c.args[i] = v
	}
	if !packed {
		return nil, nil
	}
	c.add = func(args []VariableTracker) (*fxgraph.Node, error) {
		for i, a := range args {
			if o, ok := a.(*ObjectVariable); ok {
				operand, err := tx.Output().ObjectOperand(tx, o)
				if err != nil {
					return nil, err
				}
				args[i] = operand
			}
		}
		return tx.Output().CallForeign(tx, t.Fn, name, args, c.kwargs)
	}
	return c.call(tx)
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
	if x, ok := (*v).(*ObjectVariable); ok && c.asks == "of_operator" && x.Class == tx.World().ScriptObject {
		return x.Obj, nil
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
	looks, err := s.CallMethod(m, c.asks, c.callee, s.Tuple(samples...), named)
	if err == nil && looks == pyNone {
		err = c.refused("with results or effects that are unknown")
	}
	return looks, err
}

// call adds the call, and the check that its result looks as found out.
func (c *scriptedCall) call(tx Translator) (VariableTracker, error) {
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return nil, cmp.Or(err, c.refused("under a function mode"))
	}
	looks, err := c.looks(tx)
	if err != nil {
		return nil, err
	}
	out := tx.Output()
	check, err := c.check(tx, looks)
	if err != nil {
		return nil, err
	}
	given := NewTuple(nil, nil) // the result must not be one of these
	for _, v := range append(append([]VariableTracker(nil), c.args...), KwValues(c.kwargs)...) {
		if IsTensor(v) {
			given.items = append(given.items, v)
		}
	}
	node, err := c.add(append([]VariableTracker(nil), c.args...))
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
	question := s.Str(c.question)
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
