package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// handledClass is the tensor subclass among the values whose operations call a handler (__torch_function__) now; the zero Object for none.
func handledClass(tx Translator, vs []VariableTracker) (py.Object, error) {
	class, err := handledAmong(tx, vs)
	if err != nil || class.IsNull() {
		return py.Object{}, err
	}
	tx.Output().AddGuards(guards.GlobalState())
	on, err := tx.Scope().Call(tx.World().handlersEnabled)
	if err != nil || on != py.True() {
		return py.Object{}, err
	}
	return class, nil
}

func handledAmong(tx Translator, vs []VariableTracker) (py.Object, error) {
	var class py.Object
	for _, v := range vs {
		if l, ok := v.(*LazyVariable); ok {
			if l.real == nil && !tx.World().IsTensor(l.obj) {
				continue // no operand yet
			}
			var err error
			if v, err = Realize(tx, l); err != nil {
				return py.Object{}, err
			}
		}
		var c py.Object
		var err error
		switch x := v.(type) {
		case *TensorVariable:
			if !x.Class.IsNull() && x.Class != tx.World().ParameterType && tx.World().truth(tx.Scope(), tx.World().hasHandler, x.Class) {
				c = x.Class
			}
		case *ListVariable:
			err = within(&c, tx, x.items)
		case *TupleVariable:
			err = within(&c, tx, x.items)
		}
		if err != nil {
			return py.Object{}, err
		}
		if !c.IsNull() && !class.IsNull() && c != class {
			return py.Object{}, unsupported(exc.TensorSubclass, "%s and %s in one operation", py.TypeName(class), py.TypeName(c))
		}
		if !c.IsNull() {
			class = c
		}
	}
	return class, nil
}

func within(c *py.Object, tx Translator, items []VariableTracker) (err error) {
	*c, err = handledAmong(tx, items)
	return err
}

// dispatchTorch is fn(*args, **kwargs) of tensors whose class has a handler: that is called as torch would call it, and translated.
// ok false: there is no such tensor among the arguments, or handlers are switched off.
func dispatchTorch(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	class, err := handledClass(tx, append(kwValues(kwargs), args...))
	if err != nil || class.IsNull() {
		return nil, err != nil, err
	}
	s, w := tx.Scope(), tx.World()
	if d, ok := s.TypeLookup(w.TensorType, py.GoString(nameOf(s, fn))); ok {
		if own, _ := s.TypeLookup(class, py.GoString(nameOf(s, fn))); own != d {
			return nil, true, unsupported(exc.TensorSubclass, "%s.%s", py.TypeName(class), py.GoString(nameOf(s, fn)))
		}
	}
	ask := &torchQuestion{tx: tx, behind: map[py.Object]VariableTracker{}}
	objs, err := ask.standIns(append(append([]VariableTracker(nil), args...), kwValues(kwargs)...))
	if err != nil {
		return nil, true, err
	}
	var pairs [][2]py.Object
	for i, kw := range kwargs {
		pairs = append(pairs, [2]py.Object{s.Name(kw.Name), objs[len(args)+i]})
	}
	kw, err := s.Dict(pairs...)
	if err != nil {
		return nil, true, err
	}
	r, err := s.Call(w.handlerAsked, fn, s.Tuple(objs[:len(args)]...), kw)
	if err != nil {
		return nil, true, err
	}
	if r == pyNone {
		return nil, true, unsupported(exc.TensorSubclass, "%s of a %s", s.Repr(fn), py.TypeName(class))
	}
	parts := s.Items(r)
	given, err := ask.back(parts[1])
	if err != nil {
		return nil, true, err
	}
	var named VariableTracker
	if parts[2] != pyNone {
		if named, err = ask.back(parts[2]); err != nil {
			return nil, true, err
		}
	}
	v, err := callHandler(tx, class, torchFunction(tx, parts[0]), given, named)
	return v, true, err
}

func nameOf(s *py.Scope, fn py.Object) py.Object {
	if name, err := s.GetAttr(fn, "__name__"); err == nil && name.Kind() == py.Str {
		return name
	}
	return s.Str("")
}

// torchFunction is what a handler is told was called.
func torchFunction(tx Translator, fn py.Object) VariableTracker {
	if k := fn.Kind(); k == py.MethodDescr || k == py.WrapperDescr {
		return &UnboundMethod{name: py.GoString(nameOf(tx.Scope(), fn)), descr: fn}
	}
	return tx.Build(fn, constSource(tx, fn, "___torch_function"))
}

// callHandler is class.__torch_function__(func, types, args, kwargs); named nil: without kwargs.
func callHandler(tx Translator, class py.Object, fn, given, named VariableTracker) (VariableTracker, error) {
	handler, err := NewClass(class, nil).GetAttr(tx, "__torch_function__")
	if err != nil {
		return nil, err
	}
	args := []VariableTracker{fn, NewTuple([]VariableTracker{NewClass(class, nil)}, nil), given}
	if named != nil {
		args = append(args, named)
	}
	v, err := Call(tx, handler, args, nil)
	if err != nil {
		return nil, err
	}
	if v, err = Realize(tx, v); err != nil {
		return nil, err
	}
	if c, ok := AsConstant(tx, v); ok && c.Kind() == py.NotImplemented {
		return nil, unsupported(exc.TensorSubclass, "a handler of %s that gives NotImplemented", py.TypeName(class))
	}
	return v, nil
}

// handleTorchFunction is torch.overrides.handle_torch_function(public_api, relevant_args, *args, **kwargs).
func handleTorchFunction(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) < 2 {
		return nil, unsupported(exc.CallUnsupported, "handle_torch_function")
	}
	relevant, err := Unpack(tx, args[1])
	if err != nil {
		return nil, err
	}
	for i, r := range relevant {
		if relevant[i], err = Realize(tx, r); err != nil {
			return nil, err
		}
	}
	class, err := handledClass(tx, relevant)
	if err != nil {
		return nil, err
	}
	if class.IsNull() {
		return nil, unsupported(exc.TensorSubclass, "handle_torch_function without a tensor that has a handler")
	}
	d := NewDict(nil)
	for _, kw := range kwargs {
		if err := d.put(tx, StrConst(tx, kw.Name), kw.Value); err != nil {
			return nil, err
		}
	}
	return callHandler(tx, class, args[0], NewTuple(args[2:], nil), d)
}

// torchQuestion is a call made on stand-ins of its arguments, to see how torch calls a handler.
type torchQuestion struct {
	tx     Translator
	behind map[py.Object]VariableTracker
}

func (q *torchQuestion) standIns(vs []VariableTracker) ([]py.Object, error) {
	out := make([]py.Object, len(vs))
	for i, v := range vs {
		o, err := q.standIn(v)
		if err != nil {
			return nil, err
		}
		out[i] = o
	}
	return out, nil
}

func (q *torchQuestion) standIn(v VariableTracker) (py.Object, error) {
	v, err := Realize(q.tx, v)
	if err != nil {
		return py.Object{}, err
	}
	s := q.tx.Scope()
	switch x := v.(type) {
	case *TensorVariable:
		class, err := handledAmong(q.tx, []VariableTracker{x})
		if err != nil {
			return py.Object{}, err
		}
		o, err := s.Call(q.tx.World().handlerStandIn, py.Bool(!class.IsNull()))
		if err != nil {
			return py.Object{}, err
		}
		q.behind[o] = v
		return o, nil
	case *ListVariable:
		items, err := q.standIns(x.items)
		if err != nil {
			return py.Object{}, err
		}
		o := s.List(items...)
		q.behind[o] = v
		return o, nil
	case *TupleVariable:
		if _, known := AsConstant(q.tx, x); !known && x.class.IsNull() {
			items, err := q.standIns(x.items)
			if err != nil {
				return py.Object{}, err
			}
			o := s.Tuple(items...)
			q.behind[o] = v
			return o, nil
		}
	}
	if o, ok := AsConstant(q.tx, v); ok {
		return o, nil
	}
	return py.Object{}, unsupported(exc.TensorSubclass, "%s beside a tensor subclass", Describe(q.tx, v))
}

// back is the tracker of what a handler is given.
func (q *torchQuestion) back(o py.Object) (VariableTracker, error) {
	if v, ok := q.behind[o]; ok {
		return v, nil
	}
	if v, err := ownContainer(q.tx, o, q.back); v != nil || err != nil {
		return v, err
	}
	return immutableResult(q.tx, o)
}

// asSubclass is Tensor.as_subclass of a plain tensor, or with handlers switched off; fn: a function that may give the tensor itself.
func (t *TensorVariable) asSubclass(tx Translator, fn py.Object, args []VariableTracker) (VariableTracker, error) {
	c, ok := AsConstant(tx, mustRealize(tx, arg(args, 0)))
	if !ok || len(args) != 1 || c != tx.World().TensorType && !tx.World().truth(tx.Scope(), tx.World().traceable, c) {
		return nil, unsupported(exc.TensorSubclass, "as_subclass")
	}
	if !fn.IsNull() && py.IsSubtype(t.class(tx), c) {
		return t, nil
	}
	operands := []VariableTracker{t, NewConstant(c, nil)}
	var node *fxgraph.Node
	var err error
	if fn.IsNull() {
		node, err = tx.Output().CallMethod(tx, "as_subclass", operands, nil)
	} else {
		node, err = tx.Output().CallFunction(tx, fn, "as_subclass", operands, nil)
	}
	if err != nil {
		return nil, err
	}
	r := NewTensor(node)
	if c != tx.World().TensorType {
		r.Class = c
	}
	return r, nil
}
