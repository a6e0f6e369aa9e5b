package variables

import (
	"cmp"
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ObjectVariable represents an instance of a Python class, such as an nn.Module. It existed before the frame ran, or
// the program makes it. Attribute reads follow object.__getattribute__. An attribute that the program stored hides the
// real object's attribute.
type ObjectVariable struct {
	Base
	Obj    py.Object // zero if the program makes the instance
	Class  py.Object
	made   *ClassVariable             // the class that the program called, if it was read from a slot of the frame
	attrs  map[string]VariableTracker // stored by the program; nil means deleted
	order  []string
	known  map[string]VariableTracker // read from the real object earlier
	exc    *exceptionState            // the state of an exception that the program makes
	value  VariableTracker            // the contents of an instance of a subclass of list, dict, tuple, int, ...
	native py.Object                  // the builtin type of value, a base of Class
	// dict is the instance's __dict__, once the program has read it. From then on, dict holds the instance attributes.
	dict *DictVariable
	gone map[string]bool // deleted by the program at some point
}

// NewObject returns the tracker of an existing instance whose type the caller has guarded.
func NewObject(obj py.Object, src guards.Source) *ObjectVariable {
	return &ObjectVariable{Base: Base{Src: src}, Obj: obj, Class: obj.Type()}
}

// NewInstance returns the tracker of an instance that the program makes. The caller stores its attributes later.
func NewInstance(class py.Object) *ObjectVariable { return &ObjectVariable{Class: class} }

// Kind implements VariableTracker.
func (o *ObjectVariable) Kind() string { return "UserDefinedObjectVariable" }

// Children implements Container.
func (o *ObjectVariable) Children() []VariableTracker {
	var out []VariableTracker
	for _, n := range o.order {
		if v := o.attrs[n]; v != nil {
			out = append(out, v)
		}
	}
	if o.exc != nil {
		out = append(out, o.exc.args...)
	}
	if o.value != nil {
		out = append(out, o.value)
	}
	if o.dict != nil {
		out = append(out, o.dict.values...)
	}
	return out
}

// StillReads reports whether v was read from the real object's attribute, and the program has not stored to it since.
func (o *ObjectVariable) StillReads(name string, v VariableTracker) bool {
	return o.dict == nil && v != nil && Chosen(o.known[name]) == v
}

// PythonType implements Typed.
func (o *ObjectVariable) PythonType(Translator) (py.Object, error) { return o.Class, nil }

// Stored returns the attributes that the program stored on an instance that it made, in order.
func (o *ObjectVariable) Stored() []Kw {
	var out []Kw
	if o.dict != nil && allNames(o.dict.keys) {
		for i, k := range o.dict.keys {
			if name, ok := constantText(k); ok {
				out = append(out, Kw{name, o.dict.values[i]})
			}
		}
	}
	return append(out, o.storedByName()...)
}

// storedByName returns the attributes that the program stored by name, not through the instance's __dict__.
func (o *ObjectVariable) storedByName() []Kw {
	var out []Kw
	for _, n := range o.order {
		if v := o.attrs[n]; v != nil {
			out = append(out, Kw{n, v})
		}
	}
	return out
}

// classSource returns a source that reads a class from the entry's constants. The caller has guarded the class
// (TYPE_MATCH).
func classSource(tx Translator, class py.Object) guards.Source {
	if polyfillMark(tx, class) != "" {
		return guards.NewPolyfillSource(tx.Output().Const(class))
	}
	return guards.NewConstSource(tx.Output().Const(class), "___type_"+py.TypeName(class))
}

// IsModule reports whether o is an nn.Module.
func (o *ObjectVariable) IsModule(tx Translator) bool {
	return py.IsSubtype(o.Class, tx.World().NNModule)
}

// inside returns the source from which the instance's attributes are read. Sources inside an nn.Module are a family of
// their own: their guards are omitted unless config.guard_nn_modules is set.
func (o *ObjectVariable) inside(tx Translator) guards.Source {
	if o.Src == nil || !o.IsModule(tx) {
		return o.Src
	}
	return guards.NewNNModuleSource(o.Src)
}

// plainGetAttr reports whether a class reads attributes with object.__getattribute__, with or without a Python
// __getattr__.
func plainGetAttr(tx Translator, class py.Object) bool {
	g, ok := tx.Scope().TypeLookup(class, "__getattribute__")
	return ok && (g == tx.World().ObjectGetAttribute || py.Is(class, py.GenericGetAttr))
}

// readsItself returns the class's __getattribute__ if it is written in Python. Such a method is inlined. The results of
// its calls of object.__getattribute__ are guarded and loaded directly.
func readsItself(s *py.Scope, class py.Object) (hook py.Object, ok bool) {
	hook, _ = s.TypeLookup(class, "__getattribute__")
	return hook, hook.Kind() == py.Function
}

// loadPlainAttr emits a read with object.__getattribute__, so that the class's own __getattribute__ does not run
// again.
func loadPlainAttr(e Emitter, o VariableTracker, name string) error {
	if i, ok := o.(*ObjectVariable); ok {
		s := py.OpenScope()
		_, own := readsItself(s, i.Class)
		s.Close()
		if own {
			e.PushNull()
			e.LoadConst(plainGetAttribute)
			if err := e.Load(o); err != nil {
				return err
			}
			e.LoadStr(name)
			e.Call(2, nil)
			return nil
		}
	}
	if err := e.Load(o); err != nil {
		return err
	}
	e.LoadAttr(name)
	return nil
}

var plainGetAttribute py.Object // object.__getattribute__; set by loadFacts, never freed

func remember(o *ObjectVariable, name string, v VariableTracker) VariableTracker {
	if o.known == nil {
		o.known = map[string]VariableTracker{}
	}
	o.known[name] = v
	return v
}

// GetAttr implements AttrGetter. It follows slot_tp_getattr_hook, and inlines __getattribute__ and __getattr__ written
// in Python.
func (o *ObjectVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if hook, ok := readsItself(tx.Scope(), o.Class); ok {
		fn := tx.Build(hook, guards.NewTypeAttrSource(classSource(tx, o.Class), "__getattribute__"))
		v, err := Call(tx, fn, []VariableTracker{o, StrConst(tx, name)}, nil)
		return o.orMissing(tx, name, v, err)
	}
	v, err := o.lookup(tx, name)
	if err == nil && v == nil {
		return o.missingAttr(tx, name)
	}
	return o.orMissing(tx, name, v, err)
}

// orMissing calls __getattr__ if err is an AttributeError, raised by a property, a descriptor or __getattribute__.
// Otherwise it returns v and err.
func (o *ObjectVariable) orMissing(tx Translator, name string, v VariableTracker, err error) (VariableTracker, error) {
	if e, ok := err.(*exc.Observed); ok && raises(tx, e, "AttributeError") {
		if _, has := tx.Scope().TypeLookup(o.Class, "__getattr__"); has {
			return o.missingAttr(tx, name)
		}
	}
	return v, err
}

// lookup returns an attribute, or nil if the instance and its class do not have it.
func (o *ObjectVariable) lookup(tx Translator, name string) (VariableTracker, error) {
	if tx.World().drew && tx.World().isRandom(o.Class) && (name == "gauss_next" || name == "__dict__") {
		return nil, unsupported(exc.AttrUnsupported, "%s of a generator whose numbers were drawn", name)
	}
	if v, ok := o.attrs[name]; ok && v != nil {
		return v, nil
	}
	if v, ok := o.known[name]; ok {
		return v, nil
	}
	if !plainGetAttr(tx, o.Class) {
		if _, ok := readsItself(tx.Scope(), o.Class); !ok && !py.Is(o.Class, py.WrapsGenericGetAttr) {
			return nil, unsupported(exc.AttrUnsupported, "%s of a %s: __getattribute__ is overridden", name,
				py.TypeName(o.Class))
		}
	}
	stored, isStored := storedClassAttr(tx, o.Class, name)
	d, inClass := heldByClass(tx, o.Class, name)
	var data bool
	if inClass && !isStored {
		_, data = isDescriptor(tx, d)
	}
	if data {
		return o.dataDescriptor(tx, name, d)
	}
	if v, err := o.instanceAttr(tx, name, d, inClass); err != nil || v != nil {
		return v, err
	}
	if !inClass && !isStored {
		return nil, nil
	}
	o.guardNotOwn(tx, name)
	if isStored {
		return bindStored(tx, o, stored)
	}
	return bindClassAttr(tx, o, o.Class, name, d, guards.NewTypeAttrSource(classSource(tx, o.Class), name))
}

// instanceAttr returns the instance's own attribute, or nil if it has none with this name.
func (o *ObjectVariable) instanceAttr(tx Translator, name string, d py.Object, inClass bool) (VariableTracker, error) {
	if o.dict != nil {
		v, ok, err := o.dict.get(tx, StrConst(tx, name))
		if err != nil || !ok {
			return nil, err
		}
		return v, nil
	}
	if _, deleted := o.attrs[name]; o.Obj.IsNull() || deleted {
		return nil, nil
	}
	if py.OddAttributes(o.Obj) {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s with keys that are not identifiers", name,
			py.TypeName(o.Class))
	}
	v, ok := tx.Scope().InstanceAttr(o.Obj, name)
	if !ok {
		return nil, nil
	}
	// A data descriptor that is added to the class later would take precedence. All instances of a class share this
	// guard: a guard program compares the class's version once for all of them.
	class := classSource(tx, o.Class)
	if o.IsModule(tx) && !tx.World().GuardNNModules {
		// the user disabled guards inside modules
	} else if inClass {
		tx.Output().AddGuards(guards.IDMatch(guards.NewTypeAttrSource(class, name), tx.Output().Const(d),
			guards.KeepWeak))
	} else {
		tx.Output().AddGuards(guards.TypeHasAttr(class, name, false))
	}
	src := guards.NewAttrSource(o.inside(tx), name)
	if _, own := readsItself(tx.Scope(), o.Class); own || inClass {
		src = guards.NewShadowingAttrSource(o.inside(tx), name)
	}
	return remember(o, name, tx.Build(v, src)), nil
}

// bindClassAttr returns the result of reading a class attribute through an instance.
func bindClassAttr(tx Translator, self VariableTracker, class py.Object, name string, d py.Object,
	src guards.Source) (VariableTracker, error) {
	switch d.Kind() {
	case py.Function:
		return NewMethod(tx.Build(d, src), self, nil), nil
	case py.StaticMethod, py.ClassMethod:
		if err := chained(tx, name, d); err != nil {
			return nil, err
		}
		inner, err := unwrapped(tx, d, src, "__func__")
		if err != nil || inner == nil || d.Kind() == py.StaticMethod {
			return inner, err
		}
		return NewMethod(inner, NewClass(class, nil), nil), nil
	case py.Builtin, py.TypeKind:
		return tx.Build(d, src), nil
	case py.ClassMethodDescr:
		if !py.IsNative(class, name, d) {
			return nil, unsupported(exc.AttrUnsupported, "%s of a %s, a C method of another class", name,
				py.TypeName(class))
		}
		return &BoundBuiltin{obj: self, name: name}, nil
	case py.MethodDescr, py.WrapperDescr:
		return bindNative(tx, self, class, name, d, src), nil
	case py.Property:
		if v, ok, err := getProperty(tx, self, d, src); ok || err != nil {
			return v, err
		}
	}
	if fn := tx.World().CallableFunction(d); !fn.IsNull() { // a godynamo callable used as a method
		wraps := tx.Build(fn, guards.NewConstSource(tx.Output().Const(fn), "___function_"+name))
		return NewMethod(&OptimizedVariable{Obj: d, wraps: wraps}, self, nil), nil
	}
	if d.Type() == tx.World().cacheWrapper { // its __get__ makes a method
		return NewMethod(tx.Build(d, src), self, nil), nil
	}
	if get, _ := isDescriptor(tx, d); get {
		return userDescriptor(tx, self, class, name, d, src)
	}
	return tx.Build(d, src), nil
}

// bindNative binds a C method that was read through an instance. The method may belong to another class than the
// instance's builtin type.
func bindNative(tx Translator, self VariableTracker, class py.Object, name string, d py.Object,
	src guards.Source) *BoundBuiltin {
	if py.IsNative(class, name, d) {
		return &BoundBuiltin{obj: self, name: name}
	}
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
	return &BoundBuiltin{obj: self, name: name, elsewhere: d}
}

func (o *ObjectVariable) dataDescriptor(tx Translator, name string, d py.Object) (VariableTracker, error) {
	if k := d.Kind(); (k == py.Member || k == py.GetSet) && !py.IsOwnField(o.Class, name, d) {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s, from another class", name, py.TypeName(o.Class))
	}
	if o.exc != nil && d.Kind() != py.Property {
		return o.exceptionField(tx, name)
	}
	// types.SimpleNamespace has a member __dict__
	if name == "__dict__" && (d.Kind() == py.GetSet || d.Kind() == py.Member) {
		return o.dictAttr(tx)
	}
	if v, ok, err := o.realExceptionField(tx, name, d); ok || err != nil {
		return v, err
	}
	s := tx.Scope()
	src := guards.NewTypeAttrSource(classSource(tx, o.Class), name)
	switch d.Kind() {
	case py.Property:
		if v, ok, err := getProperty(tx, o, d, src); ok || err != nil {
			return v, err
		}
	case py.Member:
		if _, deleted := o.attrs[name]; deleted || o.Obj.IsNull() {
			return nil, absentSlot(tx, o.Class, name)
		}
		if v, off, ok := s.MemberValue(d, o.Obj); ok {
			src := guards.NewSlotSource(o.inside(tx), name, off)
			if _, own := readsItself(tx.Scope(), o.Class); own {
				src = guards.NewRawSlotSource(o.inside(tx), name, off)
			}
			return remember(o, name, tx.Build(v, src)), nil
		}
	}
	if name == "__class__" {
		return NewClass(o.Class, nil), nil
	}
	if v, err := o.tupleField(tx, d, src); v != nil || err != nil {
		return v, err
	}
	if o.value != nil {
		if theirs, _ := s.TypeLookup(o.native, name); theirs == d { // d belongs to the builtin type
			if v, err := GetAttr(tx, o.value, name); err == nil || IsObserved(err) {
				return v, err
			}
		}
	}
	return userDescriptor(tx, o, o.Class, name, d, src)
}

// guardMissing guards that neither the instance nor its class has the attribute. It adds no guard if one of them has
// it: then the AttributeError came from a descriptor, a property or __getattribute__, which has its own guard.
func (o *ObjectVariable) guardMissing(tx Translator, name string) {
	s := tx.Scope()
	if _, has := s.TypeLookup(o.Class, name); has {
		return
	}
	if o.guardsOwn(name) {
		if _, has := s.InstanceAttr(o.Obj, name); has {
			return
		}
	}
	o.guardNotOwn(tx, name)
	tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, o.Class), name, false))
}

// guardNotOwn guards that the instance has no attribute of its own with this name.
func (o *ObjectVariable) guardNotOwn(tx Translator, name string) {
	if o.guardsOwn(name) {
		tx.Output().AddGuards(guards.HasAttr(o.inside(tx), name, false))
	}
}

// guardsOwn reports whether the instance's own attribute of this name is the frame's to decide. It is not if captured
// code made the instance or deleted the attribute, or if a tracked dict holds the attributes.
func (o *ObjectVariable) guardsOwn(name string) bool {
	_, deleted := o.attrs[name]
	return !o.Obj.IsNull() && o.Src != nil && !deleted && o.dict == nil && py.HasInstanceStorage(o.Obj)
}

// missingAttr calls the class's __getattr__. For an existing module, it does what nn.Module's __getattr__ does: it
// reads the module's three dicts of parameters, buffers and submodules, in that order.
func (o *ObjectVariable) missingAttr(tx Translator, name string) (VariableTracker, error) {
	hook, ok := tx.Scope().TypeLookup(o.Class, "__getattr__")
	if !ok {
		o.guardMissing(tx, name)
		return nil, noAttribute(tx, o.Class, name)
	}
	if hook == tx.World().ModuleGetAttr && !o.Obj.IsNull() {
		for _, part := range []string{"_parameters", "_buffers", "_modules"} {
			dv, err := o.lookup(tx, part)
			if err != nil {
				return nil, err
			}
			if dv == nil {
				continue
			}
			v, found, err := moduleDictItem(tx, dv, name)
			if err != nil {
				return nil, err
			}
			if found {
				o.guardMissing(tx, name) // the instance's __dict__ and the class take precedence
				return v, nil
			}
		}
		o.guardMissing(tx, name)
		return nil, noAttribute(tx, o.Class, name)
	}
	// the class sets __getattr__ = dict.__getitem__
	if _, ok := o.value.(*DictVariable); ok && (hook.Kind() == py.MethodDescr || hook.Kind() == py.WrapperDescr) {
		return (&UnboundMethod{name: "__getattr__", descr: hook}).Call(tx, []VariableTracker{o, StrConst(tx, name)},
			nil)
	}
	if hook.Kind() != py.Function {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s: __getattr__", name, py.TypeName(o.Class))
	}
	o.guardMissing(tx, name)
	fn := tx.Build(hook, guards.NewTypeAttrSource(classSource(tx, o.Class), "__getattr__"))
	return Call(tx, fn, []VariableTracker{o, StrConst(tx, name)}, nil)
}

// moduleDictItem reads one key of a module's dict, and guards only that key.
func moduleDictItem(tx Translator, dv VariableTracker, name string) (VariableTracker, bool, error) {
	l, lazy := dv.(*LazyVariable)
	if !lazy || l.real != nil || l.Src == nil || l.obj.Kind() != py.Dict {
		dv, err := Realize(tx, dv)
		if err != nil {
			return nil, false, err
		}
		d, ok := dv.(*DictVariable)
		if !ok {
			return nil, false, unsupported(exc.AttrUnsupported, "%s of a module", name)
		}
		return d.get(tx, StrConst(tx, name))
	}
	key := tx.Output().Const(tx.Scope().Name(name))
	v, ok := tx.Scope().DictGetName(l.obj, name)
	if !ok {
		tx.Output().AddGuards(guards.DictContains(l.Src, key, false))
		return nil, false, nil
	}
	return l.item(tx, key, v), true, nil
}

// item returns the tracker of the value under a key of a dict that has not been realized. Every call for a key returns
// the same tracker.
func (l *LazyVariable) item(tx Translator, key guards.Const, v py.Object) VariableTracker {
	src := guards.NewDictGetItemSource(l.Src, key)
	tx.Output().Reads(src)
	return tx.Build(v, src)
}

// noneMeansNone lists the special methods that a class disables by setting them to None. If any other special method
// is None, CPython calls None and raises.
var noneMeansNone = []string{"__hash__", "__iter__", "__contains__", "__reversed__", "__length_hint__"}

// lookupSpecial finds a special method on the class and binds it. It returns nil if the method is missing or written
// in C.
func (o *ObjectVariable) lookupSpecial(tx Translator, name string) (VariableTracker, error) {
	d, ok := tx.Scope().TypeLookup(o.Class, name)
	if !ok {
		return nil, nil
	}
	switch d.Kind() {
	case py.Function:
		return bindClassAttr(tx, o, o.Class, name, d, guards.NewTypeAttrSource(classSource(tx, o.Class), name))
	case py.NoneKind:
		if slices.Contains(noneMeansNone, name) {
			return nil, nil
		}
		return nil, unsupported(exc.OperatorUnsupported, "%s of a %s is None", name, py.TypeName(o.Class))
	}
	if o.value != nil {
		if own, _ := tx.Scope().TypeLookup(builtinBase(tx, o.Class), name); own == d {
			return nil, nil // for a method of the builtin type, the caller uses the instance's contents
		}
		if k := d.Kind(); k == py.WrapperDescr || k == py.MethodDescr { // for example, __hash__ = object.__hash__
			return nil, unsupported(exc.OperatorUnsupported, "%s of a %s, another type's", name, py.TypeName(o.Class))
		}
	}
	if tx.World().IsObjectMethod(tx.Scope(), name, d) && (o.exc == nil || py.IsNative(o.Class, name, d)) {
		return nil, nil
	}
	if o.exc != nil && py.IsNative(o.Class, name, d) {
		return &BoundBuiltin{obj: o, name: name}, nil
	}
	if d.Kind() == py.WrapperDescr && py.IsNative(o.Class, name, d) {
		if sub, err := tx.World().standInFor(tx.Scope(), d); err != nil || !sub.fn.IsNull() {
			return NewMethod(&UnboundMethod{name: name, descr: d}, o, nil), err
		}
	}
	if get, _ := isDescriptor(tx, d); !get || d.Kind() == py.StaticMethod || d.Kind() == py.ClassMethod ||
		d.Kind() == py.Other {
		return bindClassAttr(tx, o, o.Class, name, d, guards.NewTypeAttrSource(classSource(tx, o.Class), name))
	}
	return nil, unsupported(exc.OperatorUnsupported, "%s of a %s", name, py.TypeName(o.Class))
}

// slotMethod does the same as lookupSpecial, for slots that call the attribute without a check. If the class sets the
// method to None, it returns the TypeError of calling None.
func (o *ObjectVariable) slotMethod(tx Translator, name string) (VariableTracker, error) {
	if d, ok := tx.Scope().TypeLookup(o.Class, name); ok && d.Kind() == py.NoneKind {
		if name == "__bool__" {
			return nil, raiseWords(tx, "TypeError", tx.World().notBool, o.Class)
		}
		return nil, RaiseText(tx, "TypeError", "'NoneType' object is not callable")
	}
	return o.lookupSpecial(tx, name)
}

// CallMethod implements MethodCaller.
func (o *ObjectVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	fn, err := o.GetAttr(tx, name)
	if err != nil {
		return nil, err
	}
	if b, ok := fn.(*BoundBuiltin); ok && b.obj == VariableTracker(o) {
		return o.callBound(tx, name, args, kwargs)
	}
	return Call(tx, fn, args, kwargs)
}

// callBound calls a C method that was read from the instance.
func (o *ObjectVariable) callBound(
	tx Translator, name string, args []VariableTracker, kwargs []Kw,
) (VariableTracker, error) {
	if tx.World().isRandom(o.Class) {
		method, _ := tx.Scope().TypeLookup(o.Class, name)
		if r, ok, err := drawn(tx, o, o.Class, method, name, args, kwargs); ok || err != nil {
			return r, err
		}
	}
	if o.exc != nil {
		return exceptionMethod(tx, o, name, args, kwargs)
	}
	return o.builtinMethod(tx, name, args, kwargs)
}

// Call implements Caller with type(obj).__call__.
func (o *ObjectVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if r, ok, err := cachedCall(tx, o, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := subclassReferent(tx, o, args, kwargs); ok || err != nil {
		return r, err
	}
	if module, err := o.moduleOfHandle(tx); module != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return Call(tx, module, args, kwargs)
	}
	if r, err := callScripted(tx, o, args, kwargs); r != nil || err != nil {
		return r, err
	}
	m, err := o.slotMethod(tx, "__call__")
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, &exc.Observed{TypeName: "TypeError", Text: "'" + typeName(tx, o.Class) + "' object is not callable"}
	}
	if o.Src != nil && !o.Obj.IsNull() && o.IsModule(tx) {
		return tx.Output().CallModule(tx, o, args, kwargs,
			func() (VariableTracker, error) { return Call(tx, m, args, kwargs) })
	}
	return Call(tx, m, args, kwargs)
}

// moduleOfHandle returns the module of a handle, the result of optimize(module). A call of the handle in captured code
// is a call of the module. It returns nil for other objects, and for the handles that disable() and run() return.
func (o *ObjectVariable) moduleOfHandle(tx Translator) (VariableTracker, error) {
	w := tx.World()
	call, ok := tx.Scope().TypeLookup(o.Class, "__call__")
	if !ok || call != w.HandleCall && call != w.ProxyCall {
		return nil, nil
	}
	own, err := o.GetAttr(tx, "_godynamo_call")
	if err != nil {
		return nil, err
	}
	if own, err = Realize(tx, own); err != nil {
		return nil, err
	}
	_, optimized := own.(*OptimizedVariable)
	if t, ok := own.(*TorchVariable); !optimized && (!ok || t.kind != kindWraps) {
		return nil, nil
	}
	return o.GetAttr(tx, "_godynamo_module")
}

func (o *ObjectVariable) store(name string, value VariableTracker) {
	if o.attrs == nil {
		o.attrs = map[string]VariableTracker{}
	}
	old, ok := o.attrs[name]
	if ok && old == nil && value != nil { // an attribute stored after a deletion moves to the end
		for i, n := range o.order {
			if n == name {
				o.order = append(append([]string(nil), o.order[:i]...), o.order[i+1:]...)
				break
			}
		}
		ok = false
	}
	if !ok {
		o.order = append(o.order, name)
	}
	o.attrs[name] = value
	delete(o.known, name)
	if value == nil {
		if o.gone == nil {
			o.gone = map[string]bool{}
		}
		o.gone[name] = true
	}
}

// StoreThrough records a store of an attribute on a materialized instance at this point of the program.
func (o *ObjectVariable) StoreThrough(tx Translator, name string, value VariableTracker) error {
	return o.storeEffect(tx, name, value)
}

// setModuleAttr handles an assignment to a module's attribute. It accepts a plain value under a name that is not a
// parameter, buffer or submodule. It accepts a tensor under the name of a buffer, and stores it in `_buffers` as well.
// It rejects all other stores, for which nn.Module.__setattr__ does more.
func (o *ObjectVariable) setModuleAttr(tx Translator, name string, value VariableTracker) error {
	if value == nil {
		return unsupported(exc.StoreUnsupported, "del of a module's attribute")
	}
	v, err := Argument(tx, value)
	if err != nil {
		return err
	}
	if obj, ok := v.(*ObjectVariable); ok && obj.IsModule(tx) {
		return unsupported(exc.StoreUnsupported, "a module stored in a module")
	}
	t, tensor := v.(*TensorVariable)
	if tensor && !t.Class.IsNull() {
		return unsupported(exc.StoreUnsupported, "a parameter stored in a module")
	}
	for _, mark := range []string{"_is_param", "_is_buffer"} {
		if !tensor {
			break
		}
		if is, err := t.hasMark(tx, mark); is || err != nil {
			return cmp.Or(err, unsupported(exc.StoreUnsupported, "a parameter or buffer stored in a module"))
		}
	}
	for _, part := range []string{"_parameters", "_modules", "_buffers"} {
		dv, err := o.lookup(tx, part)
		if err != nil || dv == nil {
			return unsupported(exc.StoreUnsupported, "%s of a module", name)
		}
		_, found, err := moduleDictItem(tx, dv, name)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if part != "_buffers" || !tensor {
			return unsupported(exc.StoreUnsupported, "%s in %s of a module", name, part)
		}
		real, err := Realize(tx, dv)
		if err != nil {
			return err
		}
		d, ok := real.(*DictVariable)
		if !ok {
			return unsupported(exc.StoreUnsupported, "%s of a module", name)
		}
		return d.put(tx, StrConst(tx, name), value)
	}
	return nil
}

func (o *ObjectVariable) setDescriptor(tx Translator, name string, d py.Object, value VariableTracker) error {
	if k := d.Kind(); (k == py.Member || k == py.GetSet) && !py.IsOwnField(o.Class, name, d) {
		return unsupported(exc.StoreUnsupported, "%s of a %s, from another class", name, py.TypeName(o.Class))
	}
	if o.exc != nil && d.Kind() != py.Property {
		if tb, ok := value.(*TracebackVariable); ok && name == "__traceback__" && tb.of == o {
			return nil
		}
		return unsupported(exc.StoreUnsupported, "%s of an exception", name)
	}
	switch d.Kind() {
	case py.Member:
		if !py.MemberIsSlot(d) {
			return unsupported(exc.StoreUnsupported, "%s of a %s", name, py.TypeName(o.Class))
		}
		if value == nil {
			if _, err := o.lookup(tx, name); err != nil {
				return err
			}
		}
		if err := o.emptying(tx, name, d); err != nil {
			return err
		}
		o.store(name, value)
		return o.storeEffect(tx, name, value)
	case py.Property:
		return o.setProperty(tx, name, d, value)
	case py.GetSet:
		if v, ok := o.value.(*DictVariable); ok && name == "default_factory" && value != nil {
			v.factory = MustRealize(tx, value)
			return o.storeEffect(tx, name, value)
		}
	}
	return o.setUserDescriptor(tx, name, d, value)
}

// emptying calls lettingGo for the value in the slot with descriptor d.
func (o *ObjectVariable) emptying(tx Translator, name string, d py.Object) error {
	if old := o.attrs[name]; old != nil {
		return lettingGo(tx, old)
	}
	if o.Obj.IsNull() || o.gone[name] {
		return nil
	}
	old, off, ok := tx.Scope().MemberValue(d, o.Obj)
	if o.Src != nil {
		tx.Output().AddGuards(guards.QuietSlot(o.inside(tx), name, off))
	}
	if !ok {
		return nil
	}
	return tx.World().Replaceable(tx.Scope(), old)
}

// ReconstructEmpty emits code that makes the bare instance. The caller stores the attributes.
func (o *ObjectVariable) ReconstructEmpty(e Emitter) error {
	if o.exc != nil {
		return o.reconstructException(e)
	}
	return o.reconstructBare(e)
}

var objectType py.Object // set by loadFacts; never freed
