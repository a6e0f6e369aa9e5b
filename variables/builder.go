package variables

import (
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

var pyNone = py.None()

// noAlias returns the guard that checks that two places hold different objects.
func noAlias(a, b guards.Source) guards.Guard { return guards.NoAlias(a, b) }

// maxPlace is the longest name of a place, in bytes, at which an object is tracked. The names of a list's items begin
// with the list's name, so the memory for them grows with the square of the depth.
const maxPlace = 8192

// wrap is VariableBuilder._wrap: it returns the tracker of an object read through src and installs the guards on which
// the tracker depends. An object reached by two paths has one tracker.
func wrap(tx Translator, obj py.Object, src guards.Source) (VariableTracker, error) {
	if v, ok := tx.World().seen(tx, obj, src); ok {
		return v, nil
	}
	if len(src.Name()) > maxPlace {
		return nil, unsupported(exc.TooLarge, "a value in too many others")
	}
	v, gs, err := wrapKind(tx, obj, src)
	if err != nil {
		return nil, err
	}
	if len(gs) > 0 {
		tx.Output().AddGuards(gs...)
		v.base().set = v.base().set.Own(gs)
	}
	tx.World().remember(obj, v)
	if u := tx.World().unseen[obj]; u != nil {
		delete(tx.World().unseen, obj)
		return v, u.lookAt(tx, v, src)
	}
	return v, nil
}

// wrapKnown wraps an object that needs no guard of its own because existing guards determine it.
func wrapKnown(tx Translator, obj py.Object) VariableTracker {
	switch k := obj.Kind(); k {
	case py.TypeKind, py.TypeSub:
		if name, ok := tx.World().BuiltinName(tx.Scope(), obj); ok {
			return NewBuiltin(obj, name, nil)
		}
		return NewClass(obj, nil)
	case py.Function:
		return NewFunction(obj, constSource(tx, obj, "___function"))
	case py.Builtin, py.MethodDescr, py.WrapperDescr, py.MethodWrapper:
		name, _ := tx.World().BuiltinName(tx.Scope(), obj)
		return NewBuiltin(obj, name, nil)
	}
	if obj.Kind() == py.Method {
		fn, self := tx.Scope().MethodParts(obj)
		return NewMethod(wrapKnown(tx, fn), wrapKnown(tx, self), nil)
	}
	return NewConstant(obj, nil)
}

func wrapKind(tx Translator, obj py.Object, src guards.Source) (VariableTracker, []guards.Guard, error) {
	typ := tx.Output().Const(obj.Type())
	w := &wrapping{tx: tx, obj: obj, src: src, typ: typ}
	if py.Is(obj.Type(), py.Mutable) && opaqueClass(tx, obj.Type()) {
		return nil, nil, w.refused("%s of type %s, whose metaclass decides", py.TypeName(obj.Type()))
	}
	if wrap, ok := wrapByKind[obj.Kind()]; ok {
		if v, gs, err := wrap(w); v != nil || err != nil {
			return v, gs, err
		}
	}
	for _, wrap := range wrapByClass {
		if v, gs, err := wrap(w); v != nil || err != nil {
			return v, gs, err
		}
	}
	return nil, nil, w.refused("%s of type %s", py.TypeName(obj.Type()))
}

func wrapTupleSubclass(tx Translator, obj py.Object, src guards.Source,
	ofType []guards.Guard) (VariableTracker, []guards.Guard, error) {
	w := tx.World()
	_, named := w.NamedTupleFields(tx.Scope(), obj.Type())
	if obj.Type() != w.SizeType && !named {
		v, gs, ok, err := wrapSubclass(tx, obj, src, ofType)
		if !ok && err == nil {
			err = unsupported(exc.UntrackedObject, "tuple subclass %s", py.TypeName(obj.Type()))
		}
		return v, gs, err
	}
	items := tx.Scope().Items(obj)
	vs := make([]VariableTracker, len(items))
	for i, it := range items {
		vs[i] = tx.Build(it, guards.NewIndexSource(src, i))
	}
	if !named { // for a torch.Size, the class does not determine the length
		ofType = append(ofType, guards.ListLength(src, tx.Output().Const(obj.Type()), len(items)))
	}
	t := NewTupleOf(vs, obj.Type(), src)
	if py.HasInstanceStorage(obj) {
		t.obj = obj
	}
	return t, ofType, nil
}

// dictItems returns the dict's keys and values in iteration order. An OrderedDict stores its iteration order separately
// from its hash table, and move_to_end changes only the iteration order.
func dictItems(tx Translator, obj py.Object) (keys, values []py.Object, err error) {
	s := tx.Scope()
	w := tx.World()
	// A subclass may override __iter__, so the contents are read from the hash table.
	if !py.IsSubtype(obj.Type(), w.OrderedDictType) {
		keys, values = s.DictItems(obj)
		return keys, values, nil
	}
	it, err := s.CallMethod(w.OrderedDictType, "__iter__", obj)
	if err != nil {
		return nil, nil, err
	}
	l, ok := py.Answered(s.Call(w.ListType, it))
	if !ok { // methods of dict itself have changed the OrderedDict
		return nil, nil, unsupported(exc.UntrackedObject, "dict whose keys differ from its storage's")
	}
	keys = s.Items(l)
	if all, _ := s.DictItems(obj); len(all) != len(keys) {
		return nil, nil, unsupported(exc.UntrackedObject, "dict whose keys differ from its storage's")
	}
	for _, k := range keys {
		v, ok := s.DictGet(obj, k)
		if !ok {
			return nil, nil, unsupported(exc.UntrackedObject, "dict whose keys differ from its storage's")
		}
		values = append(values, v)
	}
	return keys, values, nil
}

func wrapDict(tx Translator, obj py.Object, src guards.Source) (VariableTracker, []guards.Guard, error) {
	out, s := tx.Output(), tx.Scope()
	if err := bounded(obj, py.DictLen(obj)); err != nil {
		return nil, nil, err
	}
	keys, values, err := dictItems(tx, obj)
	if err != nil {
		return nil, nil, err
	}
	d := NewDict(src)
	typ := out.Const(obj.Type())
	var gs []guards.Guard
	if obj.Kind() == py.DictSub {
		d.class = obj.Type()
		if d.class == tx.World().OrderedDictType {
			d.ordered = obj
		}
		if py.IsSubtype(d.class, tx.World().DefaultDictType) {
			f, err := s.Call(tx.World().defaultFactory, obj)
			if err != nil {
				return nil, nil, observed(err)
			}
			same, err := s.Call(tx.World().factoryIs, f)
			if err != nil {
				return nil, nil, err
			}
			gs = append(gs, guards.PyCheck(src, out.Const(same), "has default_factory "+out.Const(f).Text))
			if f != py.None() {
				d.factory = tx.Build(f, guards.NewConstSource(out.Const(f), "___default_factory"))
			}
		}
	}
	g := guards.TypeMatch(src, typ)
	if len(keys) == 0 || slices.ContainsFunc(keys, func(k py.Object) bool { return !isKeyConstant(tx, k) }) {
		return d, append([]guards.Guard{g, guards.DictLength(src, len(keys))}, gs...), d.readKeys(tx, keys, values)
	}
	for i, k := range keys {
		v := tx.Build(values[i], guards.NewDictGetItemSource(src, out.Const(k)))
		if err := d.put(tx, keyConstant(tx, k), v); err != nil {
			return nil, nil, err
		}
	}
	d.version = 0
	return d, append([]guards.Guard{g, guards.DictKeys(src, typ, out.Const(s.Tuple(keys...)), len(keys))}, gs...), nil
}

// isKeyConstant reports whether a guard compares the key with a constant: plain values by value, functions, classes and
// the like by identity. A constant keeps its object alive, so other keys are read by position.
func isKeyConstant(tx Translator, k py.Object) bool {
	return isImmutable(tx, k) || isFunctionKey(tx, k) || isTupleOfKeys(tx, k)
}

// keyConstant returns the tracker of such a key.
func keyConstant(tx Translator, k py.Object) VariableTracker {
	if isImmutable(tx, k) {
		return NewConstant(k, nil)
	}
	return wrapKnown(tx, k)
}

// keyAt returns the tracker of the i-th key or member of the container at src, and guards the key.
func keyAt(tx Translator, src guards.Source, i int, k py.Object) (VariableTracker, error) {
	at, out := guards.NewDictKeySource(src, i), tx.Output()
	if isKeyConstant(tx, k) {
		out.AddGuards(guards.EqualsMatch(at, out.Const(k.Type()), out.Const(k))...)
		return keyConstant(tx, k), nil
	}
	return wrap(tx, k, at)
}

// readKeys fills the tracker of a dict that existed before the frame ran. It guards each key on its own.
func (d *DictVariable) readKeys(tx Translator, keys, values []py.Object) error {
	d.reading = d
	defer func() { d.reading, d.version = nil, 0 }()
	for i, k := range keys {
		key, err := keyAt(tx, d.Src, i, k)
		if err != nil {
			return err
		}
		n := len(d.keys)
		if err := d.put(tx, key, tx.Build(values[i], guards.NewDictValueSource(d.Src, i))); err != nil {
			return err
		}
		if len(d.keys) == n { // a key has changed since it was stored
			return unsupported(exc.UntrackedObject, "dict with equal keys")
		}
	}
	return nil
}

// wrapFrozenSet wraps a frozenset of constants. It also guards the order of iteration, since results that CPython
// computes from the frozenset depend on that order.
func wrapFrozenSet(tx Translator, obj py.Object, src guards.Source,
	gs []guards.Guard) (VariableTracker, []guards.Guard, error) {
	items, err := listOf(tx, obj)
	if err != nil || len(items) < 2 {
		return NewConstant(obj, src), gs, err
	}
	s := tx.Scope()
	same, err := s.Call(tx.World().sameOrder, s.Tuple(items...))
	if err != nil {
		return nil, nil, err
	}
	return NewConstant(obj, src), append(gs,
		guards.PyCheck(src, tx.Output().Const(same), "in the order "+s.Repr(s.Tuple(items...)))), nil
}

// frozenFunctions returns the tracker of a frozenset of functions and constants. It returns nil if the frozenset has
// other members, or if a set made from the frozenset iterates in another order.
func frozenFunctions(tx Translator, obj py.Object, src guards.Source) (VariableTracker, error) {
	real, err := tx.Scope().Call(tx.World().SetType, obj)
	if err != nil {
		return nil, observed(err)
	}
	v := &SetVariable{Base: Base{Src: src}, real: real, frozen: true}
	if v.history, err = listOf(tx, real); err != nil {
		return nil, err
	}
	order, err := listOf(tx, obj)
	if err != nil || !slices.Equal(order, v.history) || !v.holdsFunctions(tx) {
		return nil, err
	}
	return v, nil
}

// holdsFunctions reports whether each object in s.history is a constant or a function. It adds the trackers of the
// functions to s.members.
func (s *SetVariable) holdsFunctions(tx Translator) bool {
	for _, o := range s.history {
		if isImmutable(tx, o) {
			continue
		}
		if !isFunctionKey(tx, o) {
			return false
		}
		if s.members == nil {
			s.members = map[py.Object]VariableTracker{}
		}
		s.members[o] = wrapKnown(tx, o)
	}
	return true
}

// isFunctionKey reports whether o is a function, a C method, a class that compares by identity, or a method-wrapper of
// a descriptor (Tensor.shape.__get__). Two such method-wrappers are equal if their descriptors are.
func isFunctionKey(tx Translator, o py.Object) bool {
	switch o.Kind() {
	case py.Builtin, py.MethodDescr, py.WrapperDescr, py.ClassMethodDescr, py.Function:
		return true
	case py.TypeKind, py.TypeSub:
		return py.Is(o.Type(), py.IdentityHash)
	case py.MethodWrapper:
		self, ok := tx.World().BoundSelf(tx.Scope(), o)
		return ok && (self.Kind() == py.GetSet || self.Kind() == py.Property)
	}
	return false
}

// isTupleOfKeys reports whether o is a tuple of plain values, functions and classes, such as a key of a dispatch table
// for several types.
func isTupleOfKeys(tx Translator, o py.Object) bool {
	return o.Kind() == py.Tuple && !slices.ContainsFunc(tx.Scope().Items(o), func(it py.Object) bool {
		return !isImmutable(tx, it) && !isFunctionKey(tx, it) && !isTupleOfKeys(tx, it)
	})
}

func wrapSet(tx Translator, obj py.Object, src guards.Source) (VariableTracker, []guards.Guard, error) {
	out, s := tx.Output(), tx.Scope()
	v, err := newSetObject(tx, obj, src)
	if err == nil {
		err = bounded(obj, len(v.history))
	}
	if err != nil {
		return nil, nil, err
	}
	if !v.holdsFunctions(tx) {
		return readMembers(tx, obj, src, v.history)
	}
	// the guard hashes and compares the members
	if err := tx.World().computable(tx, v.history, "__hash__", "__eq__"); err != nil {
		return nil, nil, err
	}
	frozen, err := s.Call(tx.World().FrozenSetType, v.real)
	if err != nil {
		return nil, nil, err
	}
	same, ok := py.Answered(s.Call(tx.World().setIs, frozen))
	if !ok { // an enum member whose name was deleted has no hash
		return nil, nil, unsupported(exc.UntrackedObject, "a set of members that cannot be compared")
	}
	typ := guards.TypeMatch(src, out.Const(obj.Type()))
	return v, []guards.Guard{typ, guards.PyCheck(src, out.Const(same), "== "+s.Repr(frozen))}, nil
}

// readMembers returns the tracker of a set with members that guards cannot compare with constants. It guards each
// member on its own, in the order of iteration.
func readMembers(tx Translator, obj py.Object, src guards.Source, items []py.Object) (VariableTracker, []guards.Guard,
	error) {
	v, err := NewSet(tx, nil, obj.Kind() == py.FrozenSet, src)
	if err != nil {
		return nil, nil, err
	}
	v.origin, v.reading = obj, v
	typ := tx.Output().Const(obj.Type())
	for i, o := range items {
		m, err := keyAt(tx, src, i, o)
		if err == nil {
			err = v.add(tx, m)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if len(v.history) != len(items) { // a member has changed since it was added
		return nil, nil, unsupported(exc.UntrackedObject, "set with equal members")
	}
	v.reading, v.version, v.ordered = nil, 0, true
	return v, []guards.Guard{guards.TypeMatch(src, typ), guards.ListLength(src, typ, len(items))}, nil
}

// wrapFunction returns the tracker of a function that the user wrote. The guard compares the function's code object,
// not the function's identity. So a new closure over the same code reuses the translation. A function whose __code__
// was replaced does not. Defaults and cells are guarded where they are read.
func wrapFunction(tx Translator, obj py.Object, src guards.Source,
	ofType []guards.Guard) (VariableTracker, []guards.Guard, error) {
	s, w := tx.Scope(), tx.World()
	class, err := w.classified(s, obj)
	if err != nil {
		return nil, nil, err
	}
	if !class.own() && class.kind != kindInline {
		return newTorch(obj, class, src), []guards.Guard{guards.FunctionMatch(src, tx.Output().Const(obj))}, nil
	}
	code, _ := s.FunctionField(obj, py.FuncCode)
	g := guards.IDMatch(guards.NewFunctionFieldSource(src, guards.FuncCode), tx.Output().Const(code), guards.KeepWeak)
	return NewFunction(obj, src), append(ofType, g), nil
}

func wrapCallable(tx Translator, obj py.Object, src guards.Source) (VariableTracker, []guards.Guard, error) {
	w, s, out := tx.World(), tx.Scope(), tx.Output()
	class, err := w.classified(s, obj)
	if err != nil {
		return nil, nil, err
	}
	if !class.own() {
		return newTorch(obj, class, src), []guards.Guard{guards.FunctionMatch(src, out.Const(obj))}, nil
	}
	name, _ := w.BuiltinName(s, obj)
	if self, ok := w.BoundSelf(s, obj); ok && obj.Kind() == py.MethodWrapper &&
		(self.Kind() == py.GetSet || self.Kind() == py.Property) {
		// Each read of such an attribute (Tensor.shape.__get__) returns a new object, so the guard compares by
		// equality.
		return NewBuiltin(obj, "", src), []guards.Guard{guards.PyCheck(src, out.Const(w.EqualTo(s, obj)),
			"== "+s.Repr(obj))}, nil
	} else if ok { // a C method bound to an existing object, for example items.append stored in a variable
		if v, gs := wrapBoundMethod(tx, obj, self, src); v != nil {
			return v, gs, nil
		}
		called, err := s.GetAttr(obj, "__name__")
		if err != nil {
			return nil, nil, observed(err)
		}
		return nil, nil, unsupported(exc.UntrackedObject, "bound method %s.%s", py.TypeName(self.Type()),
			py.GoString(called))
	}
	return NewBuiltin(obj, name, src), []guards.Guard{guards.BuiltinMatch(src, out.Const(obj))}, nil
}

func wrapPartial(tx Translator, obj py.Object, src guards.Source,
	ofType []guards.Guard) (VariableTracker, []guards.Guard, error) {
	s, out := tx.Scope(), tx.Output()
	fn, err := unwrapped(tx, obj, src, "func")
	if err != nil {
		return nil, nil, err
	}
	args, from, err := unwrap(tx, obj, src, "args")
	if err != nil {
		return nil, nil, err
	}
	kws, kwsFrom, err := unwrap(tx, obj, src, "keywords")
	if err != nil {
		return nil, nil, err
	}
	if fn == nil || args.Kind() != py.Tuple || kws.Kind() != py.Dict {
		return nil, nil, unsupported(exc.UntrackedObject, "%s, an incomplete partial", src.Name())
	}
	p := &PartialVariable{Base: Base{Src: src}, Fn: fn, obj: obj}
	items := s.Items(args)
	for i, a := range items {
		p.Args = append(p.Args, tx.Build(a, guards.NewIndexSource(from, i)))
	}
	keys, values := s.DictItems(kws)
	for i, k := range keys {
		if k.Kind() != py.Str {
			return nil, nil, unsupported(exc.UntrackedObject, "%s, a partial with a keyword that is not an identifier",
				src.Name())
		}
		p.Kwargs = append(p.Kwargs, Kw{py.GoString(k),
			tx.Build(values[i], guards.NewDictGetItemSource(kwsFrom, out.Const(k)))})
	}
	out.AddGuards(guards.ListLength(from, out.Const(args.Type()), len(items)))
	out.AddGuards(guards.DictKeys(kwsFrom, out.Const(kws.Type()), out.Const(s.Tuple(keys...)), len(keys)))
	return p, ofType, nil
}
