package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// An operation of torch calls the handlers (__torch_function__) of its arguments' types. torch itself determines which
// handlers to call, with which arguments and in what order: the translator calls the operation with stand-ins for the
// arguments and records the calls of handlers (torch_question.go). Then the user's handlers are inlined.

// overriding returns the classes whose handlers an operation on these values would call now. Each class is listed once,
// in order of appearance.
func overriding(tx Translator, vs []VariableTracker) ([]py.Object, error) {
	if tx.World().handlersAside > 0 {
		return nil, nil
	}
	var found []py.Object
	err := eachArgument(tx, vs, func(v VariableTracker) error {
		class, err := handlerClass(tx, v)
		if err != nil || class.IsNull() {
			return err
		}
		for _, c := range found {
			if c == class {
				return nil
			}
		}
		found = append(found, class)
		return nil
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	tx.Output().AddGuards(guards.GlobalState())
	on, err := tx.Scope().Call(tx.World().handlersEnabled)
	if err != nil || on != py.True() {
		return nil, err
	}
	return found, nil
}

// eachArgument calls visit for each value, and for the items of lists and tuples among them. Values that have not been
// read and cannot have a handler stay lazy.
func eachArgument(tx Translator, vs []VariableTracker, visit func(v VariableTracker) error) error {
	return eachWithin(tx, vs, map[VariableTracker]bool{}, visit)
}

// eachWithin does the same as eachArgument. A list may contain itself, so `inside` holds the lists and tuples being
// visited.
func eachWithin(tx Translator, vs []VariableTracker, inside map[VariableTracker]bool,
	visit func(v VariableTracker) error) error {
	for _, v := range vs {
		if l, ok := v.(*LazyVariable); ok {
			if l.real == nil && !mayOverride(tx, l.obj) {
				continue
			}
			var err error
			if v, err = Realize(tx, l); err != nil {
				return err
			}
		}
		var items []VariableTracker
		switch x := v.(type) {
		case *ListVariable:
			items = x.items
		case *TupleVariable:
			items = x.items
		default:
			if err := visit(v); err != nil {
				return err
			}
			continue
		}
		if inside[v] {
			return unsupported(exc.CallUnsupported, "a list that holds itself as an argument")
		}
		inside[v] = true
		if err := eachWithin(tx, items, inside, visit); err != nil {
			return err
		}
		delete(inside, v)
	}
	return nil
}

// mayOverride reports whether obj is a container, or an object on which torch would look for a handler.
func mayOverride(tx Translator, obj py.Object) bool {
	switch obj.Kind() {
	case py.List, py.Tuple, py.TupleSub:
		return true
	}
	if tx.World().IsTensor(obj) {
		return true
	}
	_, has := tx.Scope().TypeLookup(obj.Type(), "__torch_function__")
	return has || py.HasInstanceStorage(obj) && answersReads(tx, obj.Type())
}

// answersReads reports whether Python code of the class runs when torch reads `__torch_function__` of an instance. It
// returns false for modules, since their __getattr__ finds no such attribute.
func answersReads(tx Translator, class py.Object) bool {
	s := tx.Scope()
	if py.IsSubtype(class, tx.World().NNModule) {
		return false
	}
	_, fallback := s.TypeLookup(class, "__getattr__")
	hook, own := s.TypeLookup(class, "__getattribute__")
	return fallback || own && !py.IsNative(class, "__getattribute__", hook)
}

// mayHandle reports whether torch may find a handler when it reads `__torch_function__` of an instance.
func mayHandle(tx Translator, class py.Object) bool {
	_, handler := tx.Scope().TypeLookup(class, "__torch_function__")
	return handler || answersReads(tx, class)
}

// handlerClass returns the value's class if it has a handler, else the zero Object.
func handlerClass(tx Translator, v VariableTracker) (py.Object, error) {
	s, w := tx.Scope(), tx.World()
	switch x := v.(type) {
	case *TensorVariable:
		if x.Class.IsNull() || x.Class == w.ParameterType {
			return py.Object{}, nil
		}
		if w.truth(s, w.hasHandler, x.Class) {
			return x.Class, nil
		}
		if d, ok := s.TypeLookup(x.Class, "__torch_function__"); ok {
			src := guards.NewTypeAttrSource(classSource(tx, x.Class), "__torch_function__")
			tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepStrong))
		}
	case *TensorSequence:
		if !x.Class.IsNull() && w.truth(s, w.hasHandler, x.Class) {
			return x.Class, nil
		}
	case *ObjectVariable:
		if x.exc == nil {
			if answersReads(tx, x.Class) {
				return py.Object{}, unsupported(exc.TensorSubclass, "a %s with its own __torch_function__ lookup",
					py.TypeName(x.Class))
			}
		}
		if _, ok := s.TypeLookup(x.Class, "__torch_function__"); !ok {
			if _, own := x.attrs["__torch_function__"]; own {
				return py.Object{}, unsupported(exc.TensorSubclass, "a %s with its own handler", py.TypeName(x.Class))
			}
			if !x.Obj.IsNull() && py.HasInstanceStorage(x.Obj) {
				_, real := s.InstanceAttr(x.Obj, "__torch_function__")
				tx.Output().AddGuards(guards.HasAttr(x.inside(tx), "__torch_function__", real))
				if real {
					return py.Object{}, unsupported(exc.TensorSubclass, "a %s with its own handler",
						py.TypeName(x.Class))
				}
			}
			return py.Object{}, nil
		}
		if meta := x.Class.Type(); meta != w.TypeType && meta != w.ABCMeta {
			return py.Object{}, unsupported(exc.TensorSubclass, "a %s, whose metaclass may override __instancecheck__",
				py.TypeName(x.Class))
		}
		_, own := x.attrs["__torch_function__"]
		if !x.Obj.IsNull() && py.HasInstanceStorage(x.Obj) {
			_, real := s.InstanceAttr(x.Obj, "__torch_function__")
			tx.Output().AddGuards(guards.HasAttr(x.inside(tx), "__torch_function__", real))
			own = own || real
		}
		if own || x.dict != nil {
			return py.Object{}, unsupported(exc.TensorSubclass, "a %s with its own handler", py.TypeName(x.Class))
		}
		return x.Class, nil
	}
	return py.Object{}, nil
}

// handled reports whether operations on the tensor call a handler now. The handler may be that of a mode.
func (t *TensorVariable) handled(tx Translator) (bool, error) {
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return true, err
	}
	if t.Class.IsNull() {
		return false, nil
	}
	classes, err := overriding(tx, []VariableTracker{t})
	return len(classes) > 0, err
}

// dispatchTorch runs fn(*args, **kwargs) if a mode is active or an argument's class has a handler. It inlines the
// handlers that torch would call. ok is false if there is no handler, or if handlers are disabled. For classes that
// inherit torch.Tensor's handler, `again` runs the operation itself. If `again` is nil, that handler is inlined like
// any other.
func dispatchTorch(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw,
	again func() (VariableTracker, error)) (VariableTracker, bool, error) {
	all := append(append([]VariableTracker(nil), args...), KwValues(kwargs)...)
	classes, err := overriding(tx, all)
	if err != nil {
		return nil, true, err
	}
	mode, err := activeMode(tx)
	if err != nil || len(classes) == 0 && mode == nil {
		return nil, err != nil, err
	}
	if mode == nil && again != nil && len(classes) == 1 && defaultHandler(tx, classes[0]) {
		v, err := withDefaultHandler(tx, classes[0], all, again)
		return v, true, err
	}
	calls, err := askTorch(tx, classes, mode != nil, fn, args, kwargs)
	if err != nil {
		return nil, true, err
	}
	if len(calls) == 0 {
		return nil, true, unsupported(exc.TensorSubclass, "%s, which calls no handler", tx.Scope().Repr(fn))
	}
	// a function called by fn calls the handlers, so fn is inlined
	if calls[0].fn != fn && fn.Kind() == py.Function && fn != tx.World().handleTorchFunction {
		v, err := tx.Inline(NewFunction(fn, constSource(tx, fn, "___function")), args, kwargs)
		return v, true, err
	}
	for _, c := range calls {
		var v VariableTracker
		if c.class.IsNull() {
			v, err = c.runMode(tx, mode)
		} else {
			v, err = c.run(tx)
		}
		if err != nil {
			return nil, true, err
		}
		if c, ok := AsConstant(tx, v); !ok || c.Kind() != py.NotImplemented {
			return v, true, nil
		}
	}
	return nil, true, unsupported(exc.TensorSubclass, "%s, which all handlers reject", tx.Scope().Repr(fn))
}

// defaultHandler reports whether the class inherits torch.Tensor's handler.
func defaultHandler(tx Translator, class py.Object) bool {
	if !tx.World().isTensorClass(class) {
		return false
	}
	own, _ := tx.Scope().TypeLookup(class, "__torch_function__")
	theirs, _ := tx.Scope().TypeLookup(tx.World().TensorType, "__torch_function__")
	if own != theirs {
		return false
	}
	src := guards.NewTypeAttrSource(classSource(tx, class), "__torch_function__")
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(own), guards.KeepStrong))
	return true
}

// withDefaultHandler runs an operation that calls torch.Tensor's handler. The operation goes into the graph unchanged,
// and its results become tensors of the class.
func withDefaultHandler(tx Translator, class py.Object, args []VariableTracker,
	again func() (VariableTracker, error)) (VariableTracker, error) {
	tx.World().handlersAside++
	v, err := again()
	tx.World().handlersAside--
	if err != nil {
		return nil, err
	}
	if v, err = Realize(tx, v); err != nil {
		return nil, err
	}
	return v, ofClass(tx, v, class, args)
}

// become turns an operation's result into a tensor of the subclass `class`.
func (t *TensorVariable) become(tx Translator, class py.Object) {
	t.Class = class
	tx.World().Becomes(t.Node, class)
	tx.Output().OfClass(t.Node, class)
}

// become turns the items into tensors of the subclass `class`.
func (s *TensorSequence) become(tx Translator, class py.Object) {
	s.Class = class
	tx.Output().OfClass(s.Node, class)
}

// ofClass turns an operation's results into tensors of the class, as torch._tensor._convert does.
func ofClass(tx Translator, v VariableTracker, class py.Object, args []VariableTracker) error {
	switch x := v.(type) {
	case *TensorVariable:
		if x.Class == class {
			return nil
		}
		given := !x.Class.IsNull() || x.Src != nil
		err := eachArgument(tx, args, func(a VariableTracker) error {
			given = given || a == v
			return nil
		})
		if err != nil {
			return err
		}
		if given {
			return unsupported(exc.TensorSubclass, "an operation that makes a %s of an operand", py.TypeName(class))
		}
		x.become(tx, class)
		return nil
	case *TensorSequence:
		x.become(tx, class)
		for _, it := range x.items {
			if err := ofClass(tx, it, class, args); err != nil {
				return err
			}
		}
		return nil
	case *ListVariable:
		return allOfClass(tx, x.items, class, args)
	case *TupleVariable:
		return allOfClass(tx, x.items, class, args)
	}
	if _, ok := AsConstant(tx, v); ok {
		return nil
	}
	return unsupported(exc.TensorSubclass, "an operation on a %s that returns %s", py.TypeName(class), Describe(tx, v))
}

func allOfClass(tx Translator, items []VariableTracker, class py.Object, args []VariableTracker) error {
	for _, it := range items {
		it, err := Realize(tx, it)
		if err != nil {
			return err
		}
		if err := ofClass(tx, it, class, args); err != nil {
			return err
		}
	}
	return nil
}

// handleTorchFunction runs torch.overrides.handle_torch_function(public_api, relevant_args, *args, **kwargs).
func handleTorchFunction(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	v, ok, err := dispatchTorch(tx, tx.World().handleTorchFunction, args, kwargs, nil)
	if err == nil && !ok {
		err = unsupported(exc.TensorSubclass, "handle_torch_function without an argument that has a handler")
	}
	return v, err
}

// converted runs torch._tensor._convert, or _translator/torch_function.converted.
func converted(tx Translator, result, class VariableTracker) (VariableTracker, error) {
	result, err := Realize(tx, result)
	if err != nil {
		return nil, err
	}
	if c, ok := AsConstant(tx, MustRealize(tx, class)); ok && c == tx.World().TensorType {
		return result, nil
	}
	all := func(items []VariableTracker) ([]VariableTracker, error) {
		out := make([]VariableTracker, len(items))
		for i, it := range items {
			if out[i], err = converted(tx, it, class); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch x := result.(type) {
	case *TensorVariable:
		return x.asSubclass(tx, tx.World().asSubclass, []VariableTracker{class})
	case *TensorSequence:
		c, ok := AsConstant(tx, MustRealize(tx, class))
		if !ok {
			return nil, unsupported(exc.TensorSubclass, "results of an unknown class")
		}
		if tx.Output().WholeGraph() {
			r := &TensorSequence{Node: x.Node, n: x.n}
			r.become(tx, c)
			return r, nil
		}
		node, err := tx.Output().CallFunction(tx, tx.World().convert, "converted",
			[]VariableTracker{x, NewConstant(c, nil)}, nil)
		return &TensorSequence{Node: node, n: x.n, Class: c}, err
	case *ListVariable:
		items, err := all(x.items)
		return NewList(items, nil), err
	case *TupleVariable:
		if x.class.IsNull() {
			items, err := all(x.items)
			return NewTuple(items, nil), err
		}
		if x.class != tx.World().SizeType {
			return nil, unsupported(exc.TensorSubclass, "a %s of results", py.TypeName(x.class))
		}
		return foldCall(tx, tx.World().convert, []VariableTracker{x, class}, nil)
	}
	return result, nil
}

// asSubclass runs Tensor.as_subclass without calling a handler. fn is a function that may return the tensor itself, or
// zero.
func (t *TensorVariable) asSubclass(tx Translator, fn py.Object, args []VariableTracker) (VariableTracker, error) {
	c, ok := AsConstant(tx, MustRealize(tx, arg(args, 0)))
	if !ok || len(args) != 1 || c != tx.World().TensorType && !tx.World().truth(tx.Scope(), tx.World().traceable, c) {
		return nil, unsupported(exc.TensorSubclass, "as_subclass")
	}
	if !fn.IsNull() && py.IsSubtype(t.class(tx), c) {
		return t, nil
	}
	operands := []VariableTracker{t, NewConstant(c, nil)}
	tx.World().handlersAside++
	defer func() { tx.World().handlersAside-- }()
	var node *fxgraph.Node
	var err error
	switch {
	// t may be an operand that fn returned, so its node is used, not an alias of it
	case tx.Output().WholeGraph() && !fn.IsNull() && len(t.classes(tx)) > 1:
		node = t.Node
	case tx.Output().WholeGraph():
		node, err = tx.Output().CallFunction(tx, tx.World().alias, "as_subclass", operands[:1], nil)
	case fn.IsNull():
		node, err = tx.Output().CallMethod(tx, "as_subclass", operands, nil)
	default:
		node, err = tx.Output().CallFunction(tx, fn, "as_subclass", operands, nil)
	}
	if err != nil {
		return nil, err
	}
	r := NewTensor(node)
	if c != tx.World().TensorType {
		r.become(tx, c)
	}
	if !fn.IsNull() {
		r.made = t
	}
	return r, nil
}

// makeSubclass and newTensor are the graph names of functions of _translator/torch_function that return new tensors of
// a subclass.
const (
	makeSubclass = "torch.Tensor._make_subclass"
	newTensor    = "torch.Tensor.__new__"
)

// GivesNew reports whether an operation's result is never one of its operands. This includes operations that make a
// tensor of a subclass.
func (w *World) GivesNew(s *py.Scope, target string) bool {
	return target == "as_subclass" || target == makeSubclass || target == newTensor || target == MakeWrapper ||
		w.MakesAnother(s, target)
}

// madeSubclass handles torch.Tensor._make_subclass(cls, data, require_grad=False) and torch.Tensor.__new__(cls, data).
// It calls no handler.
func madeSubclass(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w := tx.World()
	c, ok := AsConstant(tx, MustRealize(tx, arg(args, 0)))
	parameter := ok && c == w.ParameterType && name == makeSubclass
	if parameter && w.Transparent && w.optimized == 0 {
		// Where a whole program is served, most parameters are made for its models. Graphs of that would run once.
		return nil, &exc.SkipFrame{Code: exc.TensorSubclass, Reason: "a parameter of a model that is being built"}
	}
	parameter = parameter && !tx.Output().WholeGraph()
	if !ok || !parameter && !w.truth(tx.Scope(), w.traceable, c) || len(args) < 2 ||
		!IsTensor(MustRealize(tx, args[1])) {
		return nil, unsupported(exc.TensorSubclass, "%s", name)
	}
	fn := w.makeSubclass
	if name == newTensor {
		if fn = w.newTensor; len(args) != 2 || len(kwargs) > 0 {
			return nil, unsupported(exc.TensorSubclass, "%s", name)
		}
	}
	w.handlersAside++
	defer func() { w.handlersAside-- }()
	operands := append([]VariableTracker{NewConstant(c, nil)}, args[1:]...)
	if tx.Output().WholeGraph() {
		if len(operands)+len(kwargs) != 2 {
			return nil, unsupported(exc.TensorSubclass, "%s that requires a gradient", name)
		}
		if fn, operands = w.alias, operands[1:]; name == makeSubclass {
			fn = w.detach
		}
	}
	node, err := tx.Output().CallFunction(tx, fn, name, operands, kwargs)
	if err != nil {
		return nil, err
	}
	r := NewTensor(node)
	if parameter { // its operations are those of a torch.Tensor
		r.Class = c
		w.gathered = append(w.gathered, r)
		return r, nil
	}
	r.become(tx, c)
	return r, nil
}
