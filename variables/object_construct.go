package variables

import (
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// classCalls handle special cases of calling a class. They are tried in this order before construct. Each returns
// false for classes that it does not handle.
var classCalls []func(c *ClassVariable, tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker,
	bool, error)

func init() { // set here, since the functions refer to Call, which reads classCalls
	classCalls = []func(c *ClassVariable, tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker,
		bool, error){
		(*ClassVariable).callStandIn,
		(*ClassVariable).newException,
		(*ClassVariable).newConstant,
		(*ClassVariable).newPartial,
		(*ClassVariable).newRandom,
		(*ClassVariable).newBuiltinObject,
		(*ClassVariable).newShadow,
		(*ClassVariable).callMetaclass,
	}
}

// Call implements Caller. It calls the metaclass's __call__ if that is written in Python, else it makes an instance.
func (c *ClassVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	for _, call := range classCalls {
		if r, ok, err := call(c, tx, args, kwargs); ok || err != nil {
			return r, err
		}
	}
	return c.construct(tx, args, kwargs)
}

func (c *ClassVariable) callStandIn(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	return callStandIn(tx, c.Class, args, kwargs)
}

func (c *ClassVariable) newException(tx Translator, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	if !py.IsSubtype(c.Class, tx.World().BaseException) {
		return nil, false, nil
	}
	r, err := newException(tx, c.Class, args, kwargs)
	return r, true, err
}

// newConstant makes an instance of a class whose instances are constants: classes of torch, NumPy's scalars, enums. It
// also makes a torch.Generator.
func (c *ClassVariable) newConstant(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	w, s := tx.World(), tx.Scope()
	if dtype, err := numpyDtype(tx, c.Class, args, kwargs); dtype != nil || err != nil {
		return dtype, true, err
	}
	if g, err := c.newGenerator(tx, args, kwargs); g != nil || err != nil {
		return g, true, err
	}
	if !w.IsTorchConstant(c.Class) && !w.IsEnumClass(s, c.Class) {
		return nil, false, nil
	}
	if c.Class == w.SizeType && len(args) == 1 && len(kwargs) == 0 {
		items, err := UnpackTuple(tx, args[0])
		if err != nil {
			return nil, true, err
		}
		return NewTupleOf(items, c.Class, nil), true, nil
	}
	if dictHasType(w.numpyScalars, c.Class) {
		if anyArray(tx, args...) && len(kwargs) == 0 {
			call := &arrayCall{fn: c.Class, name: py.TypeName(c.Class), args: args, data: 1}
			r, err := call.run(tx)
			return r, true, err
		}
		r, err := foldCall(tx, c.Class, args, kwargs)
		return r, true, err
	}
	if w.IsEnumClass(s, c.Class) {
		if member, err := c.memberOfValue(tx, args, kwargs); member != nil || err != nil {
			return member, true, err
		}
	}
	if pure, err := w.IsPure(s, c.Class); err != nil || !pure && !w.IsEnumClass(s, c.Class) &&
		!w.foreignConstantType(c.Class) {
		return nil, true, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
	}
	r, err := foldCall(tx, c.Class, args, kwargs)
	if _, raised := err.(*exc.Observed); raised { // the error message names the class
		if err := w.readsText(tx, c.Class); err != nil {
			return nil, true, err
		}
	}
	return r, true, err
}

// memberOfValue returns the enum member for a value, as Enum.__new__ finds it. It returns nil if CPython must look the
// member up.
func (c *ClassVariable) memberOfValue(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	if len(args) != 1 || len(kwargs) > 0 { // the call creates a new class
		return nil, unsupported(exc.CallUnsupported, "class %s called with %d arguments", py.TypeName(c.Class),
			len(args)+len(kwargs))
	}
	if call, _ := s.TypeLookup(w.Metaclass(tx, c.Class), "__call__"); call.Kind() != py.Function || !byEnum(tx, call) {
		return nil, unsupported(exc.CallUnsupported, "class %s: its metaclass makes instances", py.TypeName(c.Class))
	}
	for _, name := range []string{"__new__", "_missing_"} {
		d, ok := s.TypeLookup(c.Class, name)
		if ok && d.Kind() == py.ClassMethod {
			var err error
			if d, err = s.GetAttr(d, "__func__"); err != nil {
				return nil, observed(err)
			}
		}
		if !ok || d.Kind() != py.Function || !byEnum(tx, d) {
			return nil, unsupported(exc.CallUnsupported, "class %s with its own %s", py.TypeName(c.Class), name)
		}
	}
	return findsMember(tx, c.Class, args[0])
}

func (c *ClassVariable) newPartial(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	if !py.IsSubtype(c.Class, tx.World().PartialType) || len(args) == 0 {
		return nil, false, nil
	}
	fn, err := Realize(tx, args[0])
	if err == nil && !callable(tx, fn) { // the TypeError would otherwise come when a graph break rebuilds the partial
		return nil, true, unsupported(exc.CallUnsupported, "partial of %s", Describe(tx, fn))
	}
	return &PartialVariable{Fn: fn, Args: args[1:], Kwargs: kwargs}, true, err
}

func (c *ClassVariable) newRandom(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	if !tx.World().isRandom(c.Class) {
		return nil, false, nil
	}
	r, err := newRandom(tx, c.Class, args, kwargs)
	return r, true, err
}

// newBuiltinObject makes a bound method, a deque, an OrderedDict or a defaultdict.
func (c *ClassVariable) newBuiltinObject(tx Translator, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	w := tx.World()
	switch c.Class {
	case w.MethodType:
		if len(args) == 2 && len(kwargs) == 0 {
			fn, self := MustRealize(tx, args[0]), MustRealize(tx, args[1])
			if _, ok := fn.(Caller); ok && self.Kind() != "ConstantVariable" {
				return NewMethod(fn, self, nil), true, nil
			}
		}
	case w.DequeType:
		r, err := newDeque(tx, args, kwargs)
		return r, true, err
	case w.OrderedDictType, w.DefaultDictType:
		r, err := newDictOf(tx, c.Class, args, kwargs)
		return r, true, err
	}
	return nil, false, nil
}

func (c *ClassVariable) newShadow(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	if !tx.World().isShadowType(c.Class) {
		return nil, false, nil
	}
	r, err := newShadow(tx, c.Class, args, kwargs)
	return r, true, err
}

// callMetaclass calls the metaclass's __call__. It returns false if the metaclass uses type.__call__.
func (c *ClassVariable) callMetaclass(tx Translator, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	w, s := tx.World(), tx.Scope()
	m, err := c.metaMethod(tx, "__call__")
	if err != nil {
		return nil, true, err
	}
	if m != nil {
		r, err := Call(tx, m, args, kwargs)
		return r, true, err
	}
	call, _ := s.TypeLookup(w.Metaclass(tx, c.Class), "__call__")
	if own, _ := s.TypeLookup(w.TypeType, "__call__"); call == own {
		return nil, false, nil
	}
	if k := call.Kind(); k == py.TypeKind || k == py.TypeSub { // the metaclass of TypedDict calls dict
		meta := tx.World().Metaclass(tx, c.Class)
		r, err := Call(tx, tx.Build(call, guards.NewTypeAttrSource(classSource(tx, meta), "__call__")), args, kwargs)
		return r, true, err
	}
	return nil, true, unsupported(exc.CallUnsupported, "class %s: its metaclass makes instances", py.TypeName(c.Class))
}

// callable reports whether callable(v) is known to be True.
func callable(tx Translator, v VariableTracker) bool {
	if o, ok := v.(*ObjectVariable); ok {
		_, has := tx.Scope().TypeLookup(o.Class, "__call__")
		return has
	}
	if o, ok := AsConstant(tx, v); ok {
		return tx.World().truth(tx.Scope(), tx.World().Builtin("callable"), o)
	}
	_, caller := v.(Caller)
	return caller
}

// newDictOf makes an OrderedDict or defaultdict.
func newDictOf(tx Translator, class py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	d := NewDict(nil)
	d.class = class
	return d, fillDict(tx, d, args, kwargs)
}

// fillDict runs __init__ of dict, OrderedDict and defaultdict.
func fillDict(tx Translator, d *DictVariable, args []VariableTracker, kwargs []Kw) error {
	if !d.class.IsNull() && py.IsSubtype(d.class, tx.World().DefaultDictType) && len(args) > 0 {
		f, err := Realize(tx, args[0])
		if err != nil {
			return err
		}
		if c, ok := AsConstant(tx, f); !ok || c != pyNone {
			if !callable(tx, f) {
				return &exc.Observed{TypeName: "TypeError", Text: "first argument must be callable or None"}
			}
			d.factory = f
		}
		args = args[1:]
	}
	if len(args) > 1 {
		return unsupported(exc.CallUnsupported, "a dict of %d arguments", len(args))
	}
	return d.update(tx, args, kwargs)
}

// construct does what type.__call__ does: it calls __new__, then __init__ of the new instance.
func (c *ClassVariable) construct(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	s := tx.Scope()
	if _, ok := s.TypeLookup(c.Class, "__del__"); ok {
		return nil, unsupported(exc.CallUnsupported, "instance of class %s with __del__", py.TypeName(c.Class))
	}
	if err := notAbstract(tx, c.Class); err != nil {
		return nil, err
	}
	d, ok := s.TypeLookup(c.Class, "__new__")
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
	}
	init, _ := s.TypeLookup(c.Class, "__init__")
	var obj VariableTracker
	var err error
	switch d.Kind() {
	case py.StaticMethod, py.Function:
		fn, err2 := c.ownAttr(tx, "__new__", d)
		if err2 != nil {
			return nil, err2
		}
		obj, err = Call(tx, fn, append([]VariableTracker{c}, args...), kwargs)
	case py.Builtin:
		base, ok := newOwner(tx, d)
		if !ok {
			return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
		}
		obj, err = newInstance(tx, base, c.Class, args, kwargs)
		if o, ok := obj.(*ObjectVariable); ok {
			if _, local := c.Src.(*guards.LocalSource); local {
				o.made = c
			}
		}
	default:
		err = unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
	}
	if err != nil {
		return nil, err
	}
	if obj, err = Realize(tx, obj); err != nil {
		return nil, err
	}
	t, err := PythonType(tx, obj)
	if err != nil {
		return nil, err
	}
	if !py.IsSubtype(t, c.Class) {
		return obj, nil
	}
	if t != c.Class {
		init, _ = s.TypeLookup(t, "__init__")
	}
	if err := initialize(tx, obj, t, init, args, kwargs); err != nil {
		return nil, err
	}
	if o, ok := obj.(*ObjectVariable); ok && polyfillMark(tx, c.Class) != "" {
		return newStandIn(tx, o)
	}
	return obj, nil
}

// notAbstract breaks the graph for a class with abstract methods, which object.__new__ cannot instantiate. For other
// classes, it adds a guard that they have none.
func notAbstract(tx Translator, class py.Object) error {
	if !py.Is(class, py.Mutable) {
		return nil
	}
	if names, ok := tx.Scope().TypeLookup(class, "__abstractmethods__"); ok {
		src := guards.NewTypeAttrSource(classSource(tx, class), "__abstractmethods__")
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(names), guards.KeepStrong))
	}
	if py.Is(class, py.IsAbstract) {
		return unsupported(exc.CallUnsupported, "instance of abstract class %s", py.TypeName(class))
	}
	return nil
}

// objectTakesNone returns the TypeError of object.__new__ or object.__init__ for extra arguments (object_new and
// object_init of CPython 3.11, Objects/typeobject.c). If the class overrides only the other one of the two methods,
// that method takes the arguments, and the result is nil.
func objectTakesNone(tx Translator, class py.Object, method string) error {
	what, own, other, text := "the type to instantiate", py.ObjectNew, py.ObjectInit,
		typeName(tx, class)+"() takes no arguments"
	if method == "__init__" {
		what, own, other = "the instance to initialize", py.ObjectInit, py.ObjectNew
		text = typeName(tx, class) + ".__init__() takes exactly one argument (" + what + ")"
	}
	switch {
	case !py.Is(class, own):
		return RaiseText(tx, "TypeError", "object."+method+"() takes exactly one argument ("+what+")")
	case py.Is(class, other):
		return RaiseText(tx, "TypeError", text)
	}
	return nil
}

// newOwner returns the type whose __new__ is the builtin function fn.
func newOwner(tx Translator, fn py.Object) (py.Object, bool) {
	self, ok := py.Answered(tx.Scope().GetAttr(fn, "__self__"))
	if !ok {
		return py.Object{}, false
	}
	k := self.Kind()
	return self, k == py.TypeKind || k == py.TypeSub
}

// initialize calls __init__. Python code is inlined; the __init__ of dict, list and set fills the instance.
func initialize(tx Translator, obj VariableTracker, class, init py.Object, args []VariableTracker, kwargs []Kw) error {
	w, s := tx.World(), tx.Scope()
	switch {
	case init.Kind() == py.Function:
		fn := tx.Build(init, guards.NewTypeAttrSource(classSource(tx, class), "__init__"))
		if py.IsSubtype(class, w.DistributionType) && !tx.Output().WholeGraph() {
			return initializeInFrame(tx, fn, obj, args, kwargs)
		}
		r, err := Call(tx, fn, append([]VariableTracker{obj}, args...), kwargs)
		if err != nil {
			return err
		}
		if r, err = Realize(tx, r); err != nil {
			return err
		}
		if o, ok := AsConstant(tx, r); !ok || o != py.None() {
			return typeError(tx, "__init__() should return None, not '\x00'", r)
		}
		return nil
	case w.IsObjectMethod(s, "__init__", init):
		return nil
	case init.Kind() == py.NoneKind:
		return RaiseText(tx, "TypeError", "'NoneType' object is not callable")
	}
	o, ok := obj.(*ObjectVariable)
	// a class may set __init__ = list.__init__ without extending list; list.__init__ rejects its instances
	if !py.IsNative(class, "__init__", init) {
		ok = false
	}
	if ok && o.value != nil && init.Kind() == py.WrapperDescr {
		_, err := o.builtinMethod(tx, "__init__", args, kwargs)
		return err
	}
	if ok && init.Kind() == py.WrapperDescr {
		if _, known, err := callStandIn(tx, init, append([]VariableTracker{obj}, args...), kwargs); known ||
			err != nil {
			return err
		}
	}
	return unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(class))
}

// initializeInFrame calls __init__ from a frame that returns the instance: an exit of a frame that the call inlines
// needs frames that return the results of their calls.
func initializeInFrame(tx Translator, init, obj VariableTracker, args []VariableTracker, kwargs []Kw) error {
	names := make([]VariableTracker, len(kwargs))
	for i, kw := range kwargs {
		names[i] = StrConst(tx, kw.Name)
	}
	named, err := NewDictOf(tx, names, KwValues(kwargs))
	if err != nil {
		return err
	}
	_, err = callPolyfill(tx, "distributions.initialized", init, obj, NewTuple(args, nil), named)
	return err
}

// builtinBase returns the builtin type that the class extends. It returns the zero Object if no tracker models such a
// type.
func builtinBase(tx Translator, class py.Object) py.Object {
	w := tx.World()
	for _, t := range []py.Object{w.OrderedDictType, w.DefaultDictType, w.DictType, w.ListType, w.SetType, w.TupleType,
		w.Builtin("int"), w.Builtin("str"), w.Builtin("float"), w.Builtin("bytes"), w.Builtin("complex")} {
		if py.IsSubtype(class, t) {
			return t
		}
	}
	return py.Object{}
}

// newInstance runs base.__new__(class, *args).
func newInstance(tx Translator, base, class py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	if !py.IsSubtype(class, base) {
		return nil, unsupported(exc.CallUnsupported, "%s.__new__(%s)", py.TypeName(base), py.TypeName(class))
	}
	if err := notAbstract(tx, class); err != nil {
		return nil, err
	}
	if base == w.ObjectType && !s.MadeOfObject(class) { // object.__new__ rejects the class
		return nil, unsupported(exc.CallUnsupported, "object.__new__(%s)", py.TypeName(class))
	}
	if base == w.ObjectType || w.PlainLayout(s, base) {
		if base == w.ObjectType && len(args)+len(kwargs) > 0 {
			if err := objectTakesNone(tx, class, "__new__"); err != nil {
				return nil, err
			}
		}
		if !w.PlainLayout(s, class) {
			return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(class))
		}
		o := NewInstance(class)
		if base != w.ObjectType {
			o.native = base
		}
		return o, nil
	}
	if w.isTensorClass(class) {
		return madeSubclass(tx, newTensor, append([]VariableTracker{NewConstant(class, nil)}, args...), kwargs)
	}
	own := builtinBase(tx, class)
	if own.IsNull() || !py.IsSubtype(own, base) || !py.Is(class, py.Mutable) {
		return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(class))
	}
	if _, named := w.NamedTupleFields(s, class); named || class == w.SizeType {
		if len(args) != 1 || len(kwargs) > 0 {
			return nil, unsupported(exc.CallUnsupported, "tuple of class %s", py.TypeName(class))
		}
		items, err := UnpackTuple(tx, args[0])
		return NewTupleOf(items, class, nil), err
	}
	o := NewInstance(class)
	switch own {
	case w.OrderedDictType, w.DefaultDictType:
		d := NewDict(nil)
		d.class = own
		o.hold(d, own)
	case w.DictType:
		o.hold(NewDict(nil), own)
	case w.ListType:
		o.hold(NewList(nil, nil), own)
	case w.SetType:
		set, err := NewSet(tx, nil, false, nil)
		if err != nil {
			return nil, err
		}
		o.hold(set, own)
	case w.TupleType:
		if len(args) > 1 || len(kwargs) > 0 {
			return nil, unsupported(exc.CallUnsupported, "tuple of class %s", py.TypeName(class))
		}
		var items []VariableTracker
		if len(args) == 1 {
			var err error
			if items, err = UnpackTuple(tx, args[0]); err != nil {
				return nil, err
			}
		}
		o.hold(NewTuple(items, nil), own)
	default:
		v, err := callBuiltinType(tx, own, args, kwargs)
		if err != nil {
			return nil, err
		}
		o.hold(v, own)
	}
	return o, nil
}

// callBuiltinType makes an int, str, float, ... from known values.
func callBuiltinType(tx Translator, t py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	name, _ := tx.World().BuiltinName(tx.Scope(), t)
	v, err := NewBuiltin(t, name, nil).Call(tx, args, kwargs)
	if err != nil {
		return nil, err
	}
	if v, err = Realize(tx, v); err != nil {
		return nil, err
	}
	c, ok := AsConstant(tx, v)
	if !ok || c.Type() != t {
		return nil, unsupported(exc.CallUnsupported, "%s of unknown values", name)
	}
	return NewConstant(c, nil), nil
}

// hold sets the contents of an instance whose class extends a builtin type. In CPython they are in the C struct.
func (o *ObjectVariable) hold(v VariableTracker, base py.Object) {
	b := v.base()
	b.Src, b.slot, b.through, b.holder = o.Src, o.slot, base, o
	o.value, o.native = v, base
}

// builtinMethod calls a method of the builtin type that the instance's class extends.
func (o *ObjectVariable) builtinMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if o.value == nil {
		return o.standInMethod(tx, name, args, kwargs)
	}
	if r, ok, err := o.specialOfHeld(tx, name, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := o.methodOfHeld(tx, name, args, kwargs); ok || err != nil {
		return r, err
	}
	r, err := onHeld(o, func() (VariableTracker, error) { return CallMethod(tx, o.value, name, args, kwargs) })
	if err == nil && r == o.value { // x.__iadd__(y) returns x
		return o, nil
	}
	return r, err
}

// standInMethod calls a method of an instance whose contents are not tracked. It requires a polyfill, Python code that
// is inlined instead of the C method.
func (o *ObjectVariable) standInMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if d, ok := tx.Scope().TypeLookup(o.Class, name); ok {
		if r, ok, err := callStandIn(tx, d, append([]VariableTracker{o}, args...), kwargs); ok || err != nil {
			return r, err
		}
	}
	return nil, o.noMethod(name)
}

func (o *ObjectVariable) noMethod(name string) error {
	return unsupported(exc.CallUnsupported, "%s.%s", py.TypeName(o.Class), name)
}

// specialOfHeld handles special methods that depend on the instance as well as on its contents. It returns false for
// other methods.
func (o *ObjectVariable) specialOfHeld(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	if name == "__hash__" && o.unhashed(tx) {
		return nil, true, unsupported(exc.CallUnsupported, "hash of %s", Describe(tx, o))
	}
	if name == "__repr__" && len(args)+len(kwargs) == 0 {
		text, err := o.valueText(tx, name)
		if err != nil {
			return nil, true, err
		}
		return StrConst(tx, text), true, nil
	}
	if d, ok := tx.Scope().TypeLookup(o.native, name); ok && tx.World().IsObjectMethod(tx.Scope(), name, d) &&
		name != "__init__" {
		if r, ok, err := o.objectSlot(tx, name, args); ok && len(kwargs) == 0 || err != nil {
			return r, true, err
		}
		return nil, true, o.noMethod(name)
	}
	switch {
	case name == "__getattribute__" && len(args) == 1 && len(kwargs) == 0 && py.Is(o.native, py.WrapsGenericGetAttr):
		attr, known := ConstStr(tx, MustRealize(tx, args[0]))
		if !known {
			return nil, true, unsupported(exc.AttrUnsupported, "attribute %s of a %s", Describe(tx, args[0]),
				py.TypeName(o.Class))
		}
		r, err := o.plainAttr(tx, attr)
		return r, true, err
	case name == "__sizeof__": // the size depends on the instance and its dict
		return nil, true, o.noMethod(name)
	case name == "__format__" && o.overrides(tx, "__str__", "__repr__"):
		return nil, true, unsupported(exc.CallUnsupported, "format of a %s", py.TypeName(o.Class))
	}
	return nil, false, nil
}

// methodOfHeld handles methods of a builtin type that behave differently for instances of subclasses. It returns false
// for other methods.
func (o *ObjectVariable) methodOfHeld(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	switch v := o.value.(type) {
	case *DictVariable:
		return o.methodOfDict(tx, v, name, args, kwargs)
	case *ListVariable:
		if name == "__init__" && len(args) < 2 && len(kwargs) == 0 {
			r, err := initList(tx, v, args)
			return r, true, err
		}
	case *SetVariable:
		if name == "__init__" && len(args) < 2 && len(kwargs) == 0 && len(v.history) == 0 {
			r, err := v.CallMethod(tx, "update", args, nil)
			return r, true, err
		}
		if setMethods[name].result == "set" { // set's methods return an instance of the subclass
			return nil, true, o.noMethod(name)
		}
	case *ConstantVariable:
		if name == "__init__" {
			return NoneConst(), true, nil
		}
		if itself, err := o.returnsItself(tx, name, args, kwargs); itself || err != nil {
			if err == nil {
				err = unsupported(exc.CallUnsupported, "%s.%s, which returns the instance", py.TypeName(o.Class), name)
			}
			return nil, true, err
		}
	case *TupleVariable:
		if name == "__init__" {
			return NoneConst(), true, nil
		}
	}
	return nil, false, nil
}

// methodOfDict does the same as methodOfHeld, for an instance that holds d.
func (o *ObjectVariable) methodOfDict(tx Translator, d *DictVariable, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	switch name {
	case "__init__":
		return NoneConst(), true, o.initDict(tx, d, args, kwargs)
	case "__getitem__":
		if len(args) == 1 {
			r, err := o.valueItem(tx, args[0])
			return r, true, err
		}
	}
	if name == "fromkeys" {
		fn, err := NewClass(o.Class, nil).GetAttr(tx, name)
		if err != nil {
			return nil, true, err
		}
		r, err := Call(tx, fn, args, kwargs)
		return r, true, err
	}
	if d.isOrdered(tx) && o.overrides(tx, "__setitem__", "__getitem__", "__delitem__", "__iter__", "__contains__") {
		switch name { // OrderedDict's C methods call methods that the subclass overrides
		case "update", "setdefault", "pop", "popitem", "copy", "move_to_end", "fromkeys":
			return nil, true, o.noMethod(name)
		}
	}
	if name == "copy" && !d.class.IsNull() {
		return nil, true, o.noMethod(name)
	}
	return nil, false, nil
}

// initList runs list.__init__.
func initList(tx Translator, l *ListVariable, args []VariableTracker) (VariableTracker, error) {
	if len(l.items) > 0 {
		if _, err := l.CallMethod(tx, "clear", nil, nil); err != nil {
			return nil, err
		}
	}
	if len(args) == 0 {
		return NoneConst(), nil
	}
	return l.CallMethod(tx, "extend", args, nil)
}

func (o *ObjectVariable) initDict(tx Translator, d *DictVariable, args []VariableTracker, kwargs []Kw) error {
	if d.isOrdered(tx) && len(args) < 2 && o.overrides(tx, "__setitem__") && len(args)+len(kwargs) > 0 {
		pairs, err := dictPairs(tx, "OrderedDict", args, kwargs)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := o.SetItem(tx, p[0], p[1]); err != nil {
				return err
			}
		}
		return nil
	}
	if Materialized(o) && len(args) > 0 && py.IsSubtype(o.native, tx.World().DefaultDictType) {
		return unsupported(exc.CallUnsupported, "__init__ of a defaultdict")
	}
	return fillDict(tx, d, args, kwargs)
}

// overrides reports whether the instance's class overrides one of the builtin type's methods.
func (o *ObjectVariable) overrides(tx Translator, names ...string) bool {
	for _, n := range names {
		own, _ := tx.Scope().TypeLookup(o.Class, n)
		theirs, _ := tx.Scope().TypeLookup(o.native, n)
		if own != theirs {
			return true
		}
	}
	return false
}

// loadClass emits a load of the class. A class read from a slot of the frame is loaded from that slot. A constant would
// keep the class alive.
func (o *ObjectVariable) loadClass(e Emitter) error {
	if o.made != nil {
		return e.Load(o.made)
	}
	e.LoadConst(o.Class)
	return nil
}

// reconstructBare emits the construction of the instance without attributes. Fill adds the contents of a list, dict or
// set later.
func (o *ObjectVariable) reconstructBare(e Emitter) error {
	base := objectType
	if !o.native.IsNull() {
		base = o.native
	}
	e.PushNull()
	e.LoadConst(base)
	e.LoadAttr("__new__")
	if err := o.loadClass(e); err != nil {
		return err
	}
	n := 1
	switch v := o.value.(type) {
	case *TupleVariable:
		if err := LoadAll(e, v.items); err != nil {
			return err
		}
		e.BuildTuple(len(v.items))
		n++
	case *ConstantVariable:
		e.LoadConst(v.Value)
		n++
	}
	e.Call(n, nil)
	return nil
}

// Before freezes the values from which the bare instance is made.
func (o *ObjectVariable) Before(tx Translator) error {
	if t, ok := o.value.(*TupleVariable); ok {
		for _, it := range t.items {
			if err := tx.Output().Freeze(tx, it); err != nil {
				return err
			}
		}
	}
	if s, ok := o.value.(Settler); ok {
		return s.Settle(tx)
	}
	return nil
}

func allNames(keys []VariableTracker) bool {
	for _, k := range keys {
		if _, ok := constantText(k); !ok {
			return false
		}
	}
	return true
}

// hidesKeys reports whether a key of the instance's dict is also the name of a data descriptor of the class. A store
// by attribute would then call the descriptor.
func (o *ObjectVariable) hidesKeys(tx Translator) bool {
	return slices.ContainsFunc(o.dict.keys, func(k VariableTracker) bool {
		name, _ := constantText(k)
		d, ok := tx.Scope().TypeLookup(o.Class, name)
		if !ok {
			return false
		}
		_, data := isDescriptor(tx, d)
		return data
	})
}

// Fill adds the contents and the attributes to an instance that has just been materialized.
func (o *ObjectVariable) Fill(tx Translator) error {
	if o.value != nil {
		o.value.base().slot = o.slot
	}
	switch v := o.value.(type) {
	case *ListVariable:
		if err := methodEffect(tx, v, "extend", []VariableTracker{NewTuple(v.items, nil)}); err != nil {
			return err
		}
	case *SetVariable:
		if err := methodEffect(tx, v, "update", []VariableTracker{NewTuple(v.inHistory(), nil)}); err != nil {
			return err
		}
	case *DictVariable:
		if v.factory != nil {
			if err := typeMethodEffect(tx, tx.World().DefaultDictType, v, "__init__",
				[]VariableTracker{v.factory}); err != nil {
				return err // a store would call the default_factory that the class defines
			}
		}
		for i := range v.keys {
			if err := itemEffect(tx, v, v.keys[i], v.values[i]); err != nil {
				return err
			}
		}
	}
	stored := o.Stored()
	// stores go to __dict__ itself, which also accepts keys that are not identifiers
	if o.dict != nil && (!allNames(o.dict.keys) || o.hidesKeys(tx)) {
		for i := range o.dict.keys {
			if err := itemEffect(tx, o.dict, o.dict.keys[i], o.dict.values[i]); err != nil {
				return err
			}
		}
		stored = o.storedByName()
	}
	for _, a := range stored {
		if err := o.storeEffect(tx, a.Name, a.Value); err != nil {
			return err
		}
	}
	return nil
}

// wrapSubclass returns the tracker of an instance of a subclass of a builtin type. Its contents are guarded like
// those of the builtin type.
func wrapSubclass(tx Translator, obj py.Object, src guards.Source,
	ofType []guards.Guard) (VariableTracker, []guards.Guard, bool, error) {
	out, s, w := tx.Output(), tx.Scope(), tx.World()
	base := builtinBase(tx, obj.Type())
	if base.IsNull() || !py.Is(obj.Type(), py.Mutable) {
		return nil, nil, false, nil
	}
	typ := out.Const(obj.Type())
	o := NewObject(obj, src)
	gs := ofType
	switch base {
	case w.ListType, w.TupleType:
		items := s.Items(obj)
		vs := make([]VariableTracker, len(items))
		for i, it := range items {
			vs[i] = tx.Build(it, guards.NewIndexSource(src, i))
		}
		gs = append(gs, guards.ListLength(src, typ, len(items)))
		if base == w.ListType {
			o.hold(NewList(vs, nil), base)
		} else {
			o.hold(NewTuple(vs, nil), base)
		}
	case w.DictType, w.OrderedDictType, w.DefaultDictType:
		v, more, err := wrapDict(tx, obj, src)
		if err != nil {
			return nil, nil, true, err
		}
		d := v.(*DictVariable)
		d.class = py.Object{}
		if base != w.DictType {
			d.class = base
		}
		gs = append(gs, more...)
		o.hold(d, base)
	case w.SetType:
		v, more, err := wrapSet(tx, obj, src)
		if err != nil {
			return nil, nil, true, err
		}
		gs = append(gs, more...)
		o.hold(v, base)
	default:
		plain, err := s.Call(w.plainValue, base, obj)
		if err != nil {
			return nil, nil, true, observed(err)
		}
		same, err := s.Call(w.valueIs, base, plain)
		if err != nil {
			return nil, nil, true, observed(err)
		}
		gs = append(gs, guards.PyCheck(src, out.Const(same), "holds "+s.Repr(plain)))
		o.hold(NewConstant(plain, nil), base)
		o.value.base().Src = nil
	}
	return o, gs, true, nil
}
