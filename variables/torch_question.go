package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// torchQuestion is a call of a torch function with stand-ins for its arguments. The call shows which handlers torch
// calls.
type torchQuestion struct {
	tx      Translator
	classes []py.Object                   // classes of the arguments that have handlers
	mirrors []py.Object                   // stand-in classes for `classes`, with the same inheritance
	behind  map[py.Object]VariableTracker // maps a stand-in to the value that it represents
	opaque  bool                          // whether the function reads no arguments except those with handlers
}

// handlerCall is one call of a handler: class.__torch_function__(func, types, args, kwargs).
type handlerCall struct {
	class        py.Object // zero for the active mode
	fn           py.Object
	told         VariableTracker // the tracker of fn that is passed to the handler
	types        []VariableTracker
	given, named VariableTracker // args and kwargs; named is nil without kwargs
}

// askTorch returns the handler calls that fn(*args, **kwargs) makes if each handler returns NotImplemented. If mode is
// true, a mode's handler comes first.
func askTorch(tx Translator, classes []py.Object, mode bool, fn py.Object, args []VariableTracker,
	kwargs []Kw) ([]handlerCall, error) {
	s, w := tx.Scope(), tx.World()
	for _, c := range classes {
		w.RestsOnBases(tx, c)
	}
	r, err := s.Call(w.handlerMirrors, s.Tuple(classes...))
	if err != nil {
		return nil, err
	}
	q := &torchQuestion{tx: tx, classes: classes, mirrors: s.Items(r), behind: map[py.Object]VariableTracker{},
		opaque: fn == w.handleTorchFunction}
	objs, err := q.standIns(append(append([]VariableTracker(nil), args...), KwValues(kwargs)...))
	if err != nil {
		return nil, err
	}
	kw, err := kwDict(s, kwargs, objs[len(args):])
	if err != nil {
		return nil, err
	}
	told, err := s.Call(w.handlerAsked, fn, s.Tuple(objs[:len(args)]...), kw, py.Bool(mode))
	if err != nil {
		return nil, err
	}
	var calls []handlerCall
	for _, t := range s.Items(told) {
		c, err := q.call(s.Items(t))
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// call converts (class, func, types, args, kwargs) to a handlerCall.
func (q *torchQuestion) call(parts []py.Object) (handlerCall, error) {
	c := handlerCall{fn: parts[1], told: q.behind[parts[1]]}
	if c.told == nil {
		c.told = torchFunction(q.tx, c.fn)
	}
	var ok bool
	if parts[0] == pyNone {
		c.class = py.Object{}
	} else if c.class, ok = q.mirrored(parts[0]); !ok {
		return c, unsupported(exc.TensorSubclass, "a handler that is not the operands'")
	}
	for _, t := range q.tx.Scope().Items(parts[2]) {
		class, ok := q.mirrored(t)
		if !ok {
			return c, unsupported(exc.TensorSubclass, "a handler called with a %s", py.TypeName(t))
		}
		c.types = append(c.types, NewClass(class, nil))
	}
	var err error
	if c.given, err = q.back(parts[3]); err == nil && parts[4] != pyNone {
		c.named, err = q.back(parts[4])
	}
	return c, err
}

func (q *torchQuestion) mirrored(mirror py.Object) (py.Object, bool) {
	for i, m := range q.mirrors {
		if m == mirror {
			return q.classes[i], true
		}
	}
	return mirror, mirror == q.tx.World().TensorType // for handle_torch_function, `types` includes torch.Tensor
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
	remember := func(o py.Object) (py.Object, error) {
		q.behind[o] = v
		return o, nil
	}
	switch x := v.(type) {
	case *TensorVariable, *ObjectVariable:
		class, err := handlerClass(q.tx, v)
		if err != nil {
			return py.Object{}, err
		}
		if class.IsNull() && !IsTensor(v) {
			break
		}
		mirror := pyNone
		for i, c := range q.classes {
			if c == class {
				mirror = q.mirrors[i]
			}
		}
		o, err := s.Call(q.tx.World().handlerStandIn, mirror)
		if err != nil {
			return py.Object{}, err
		}
		return remember(o)
	case *ListVariable:
		items, err := q.standIns(x.items)
		if err != nil {
			return py.Object{}, err
		}
		return remember(s.List(items...))
	case *TupleVariable:
		if _, known := AsConstant(q.tx, x); !known && x.class.IsNull() {
			items, err := q.standIns(x.items)
			if err != nil {
				return py.Object{}, err
			}
			return remember(s.Tuple(items...))
		}
	}
	if o, ok := AsConstant(q.tx, v); ok {
		return o, nil
	}
	if !q.opaque {
		return py.Object{}, unsupported(exc.TensorSubclass, "%s beside a tensor subclass", Describe(q.tx, v))
	}
	o, err := s.Call(q.tx.World().ObjectType)
	if err != nil {
		return py.Object{}, err
	}
	return remember(o)
}

// back returns the tracker of an argument that torch passes to a handler.
func (q *torchQuestion) back(o py.Object) (VariableTracker, error) {
	if v, ok := q.behind[o]; ok {
		return v, nil
	}
	if v, err := ownContainer(q.tx, o, q.back); v != nil || err != nil {
		return v, err
	}
	return immutableResult(q.tx, o)
}

// run inlines the handler.
func (c *handlerCall) run(tx Translator) (VariableTracker, error) {
	class := NewClass(c.class, nil)
	if d, ok := tx.Scope().TypeLookup(c.class, "__torch_function__"); ok && d.Kind() == py.Function {
		// torch warns about such a handler
		return nil, unsupported(exc.TensorSubclass, "a handler of %s that is not a class method", py.TypeName(c.class))
	}
	handler, err := class.GetAttr(tx, "__torch_function__")
	if err != nil {
		return nil, err
	}
	return c.callHandler(tx, handler)
}

func (c *handlerCall) callHandler(tx Translator, handler VariableTracker) (VariableTracker, error) {
	args := []VariableTracker{c.told, NewTuple(c.types, nil), c.given}
	if c.named != nil {
		args = append(args, c.named)
	}
	v, err := Call(tx, handler, args, nil)
	if err != nil {
		return nil, err
	}
	return Realize(tx, v)
}

// torchFunction returns the tracker of the function for which a handler is called.
func torchFunction(tx Translator, fn py.Object) VariableTracker {
	switch fn.Kind() {
	case py.MethodDescr, py.WrapperDescr:
		return &UnboundMethod{name: py.GoString(nameOf(tx.Scope(), fn)), descr: fn}
	case py.MethodWrapper: // for example, Tensor.shape.__get__
		return NewBuiltin(fn, "", nil)
	}
	return tx.Build(fn, constSource(tx, fn, "___torch_function"))
}

func nameOf(s *py.Scope, fn py.Object) py.Object {
	if name, ok := py.Answered(s.GetAttr(fn, "__name__")); ok && name.Kind() == py.Str {
		return name
	}
	return s.Str("")
}

// descriptorCall handles a call of `__get__` or `__set__` of an attribute of torch.Tensor. For a handler, a read or
// write of an attribute is such a call.
func descriptorCall(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	if fn.Kind() != py.MethodWrapper || len(kwargs) > 0 || len(args) == 0 {
		return nil, false, nil
	}
	s, w := tx.Scope(), tx.World()
	d, err := s.GetAttr(fn, "__self__")
	if err != nil {
		return nil, false, observed(err)
	}
	self, err := Realize(tx, args[0])
	if err != nil {
		return nil, false, err
	}
	t, ok := self.(*TensorVariable)
	if !ok {
		return nil, false, nil
	}
	of, what := nameOf(s, d), py.GoString(nameOf(s, fn))
	if d.Kind() == py.Property {
		if getter, ok := py.Answered(s.GetAttr(d, "fget")); ok {
			of = nameOf(s, getter)
		}
	}
	name := py.GoString(of)
	if own, ok := s.TypeLookup(w.TensorType, name); !ok || own != d {
		return nil, false, nil
	}
	switch {
	case what == "__get__" && len(args) <= 2:
		v, err := t.torchAttr(tx, name)
		return v, true, err
	case what == "__set__" && len(args) == 2:
		return NoneConst(), true, unsupported(exc.StoreUnsupported, "%s of a tensor", name)
	}
	return nil, false, nil
}

// torchAttr returns an attribute of torch.Tensor, even if the tensor's class overrides it.
func (t *TensorVariable) torchAttr(tx Translator, name string) (VariableTracker, error) {
	if isHandled, err := t.handled(tx); err != nil {
		return nil, err
	} else if isHandled {
		return t.handledAttr(tx, name)
	}
	return t.plainAttr(tx, name)
}

// handledAttr reads an attribute of torch.Tensor from a tensor whose class has a handler, and runs that handler.
func (t *TensorVariable) handledAttr(tx Translator, name string) (VariableTracker, error) {
	d, _ := tx.Scope().TypeLookup(tx.World().TensorType, name)
	switch d.Kind() {
	case py.MethodDescr, py.WrapperDescr, py.Function:
		return &BoundBuiltin{obj: t, name: name}, nil
	case py.GetSet, py.Property:
	default:
		return nil, unsupported(exc.TensorSubclass, "%s of a %s", name, py.TypeName(t.class(tx)))
	}
	again := func() (VariableTracker, error) { return t.plainAttr(tx, name) }
	v, ok, err := dispatchTorch(tx, tx.World().GetAttrBuiltin, []VariableTracker{t, StrConst(tx, name)}, nil, again)
	if err == nil && !ok {
		err = unsupported(exc.TensorSubclass, "%s of a %s", name, py.TypeName(t.class(tx)))
	}
	return v, err
}

// overriddenOperator runs an operator whose special method is overridden by a tensor operand's class. It calls only
// the left operand's method; other cases break the graph.
func overriddenOperator(tx Translator, name string, inplace bool,
	operands []VariableTracker) (VariableTracker, bool, error) {
	special := "__" + name + "__"
	if name[len(name)-1] == '_' { // and_, or_
		special = "__" + name + "_"
	}
	names := []string{special, "__r" + special[2:]}
	if inplace {
		names = append(names, "__i"+special[2:])
	}
	for i, v := range operands {
		t, ok := v.(*TensorVariable)
		if !ok || t.Class.IsNull() || t.Class == tx.World().ParameterType {
			continue
		}
		for j, n := range names {
			own, ok := tx.Scope().TypeLookup(t.Class, n)
			theirs, _ := tx.Scope().TypeLookup(tx.World().TensorType, n)
			if !ok || own == theirs {
				continue
			}
			if i == 0 && j == 0 && !inplace && own.Kind() == py.Function &&
				(len(operands) == 1 || !IsTensor(operands[1])) {
				m, err := bindClassAttr(tx, t, t.Class, n, own, guards.NewTypeAttrSource(classSource(tx, t.Class), n))
				if err != nil {
					return nil, true, err
				}
				v, err := Call(tx, m, operands[1:], nil)
				if err == nil {
					v, err = Realize(tx, v)
				}
				if err != nil {
					return nil, true, err
				}
				if c, ok := AsConstant(tx, v); !ok || c.Kind() != py.NotImplemented {
					return v, true, nil
				}
			}
			return nil, true, unsupported(exc.TensorSubclass, "%s of a %s", n, py.TypeName(t.Class))
		}
	}
	return nil, false, nil
}
