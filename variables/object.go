package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ObjectVariable is an instance of a Python class, nn.Modules included: one that exists, or one the program made.
// Attributes follow object.__getattribute__; what the program stored is seen before what the real object holds.
type ObjectVariable struct {
	Base
	Obj   py.Object // zero: made by the program
	Class py.Object
	attrs map[string]VariableTracker // stored by the program; nil: deleted
	order []string
	known map[string]VariableTracker // read before
	exc   *exceptionState            // of an exception the program made
}

// NewObject returns the tracker of an existing instance whose type the caller has guarded.
func NewObject(obj py.Object, src guards.Source) *ObjectVariable {
	return &ObjectVariable{Base: Base{Src: src}, Obj: obj, Class: obj.Type()}
}

// NewInstance returns the tracker of an instance the program makes; its attributes are stored afterwards.
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
	return out
}

// PythonType implements Typed.
func (o *ObjectVariable) PythonType(Translator) (py.Object, error) { return o.Class, nil }

// Stored lists what the program stored on an instance of its own making, in order.
func (o *ObjectVariable) Stored() []Kw {
	var out []Kw
	for _, n := range o.order {
		if v := o.attrs[n]; v != nil {
			out = append(out, Kw{n, v})
		}
	}
	return out
}

// classSource reaches a class that has been guarded (TYPE_MATCH) through the entry's constants.
func classSource(tx Translator, class py.Object) guards.Source {
	if polyfillMark(tx, class) != "" {
		return guards.NewPolyfillSource(tx.Output().Const(class))
	}
	return guards.NewConstSource(tx.Output().Const(class), "___type_"+py.TypeName(class))
}

func (o *ObjectVariable) isModule(tx Translator) bool {
	return py.IsSubtype(o.Class, tx.World().NNModule)
}

// inside is the place the instance's own attributes are read from. What is inside an nn.Module is a family of its own:
// config.guard_nn_modules leaves its guards out.
func (o *ObjectVariable) inside(tx Translator) guards.Source {
	if o.Src == nil || !o.isModule(tx) {
		return o.Src
	}
	return guards.NewNNModuleSource(o.Src)
}

// plainGetAttr tells types whose attribute reads are object.__getattribute__'s, with or without a Python __getattr__.
func plainGetAttr(tx Translator, class py.Object) bool {
	g, ok := tx.Scope().TypeLookup(class, "__getattribute__")
	return ok && (g == tx.World().ObjectGetAttribute || py.Is(class, py.GenericGetAttr))
}

// noAttribute is CPython's AttributeError of a missing attribute.
func noAttribute(class py.Object, name string) error {
	return &exc.Observed{TypeName: "AttributeError", Text: "'" + py.TypeName(class) + "' object has no attribute '" + name + "'"}
}

func remember(o *ObjectVariable, name string, v VariableTracker) VariableTracker {
	if o.known == nil {
		o.known = map[string]VariableTracker{}
	}
	o.known[name] = v
	return v
}

// GetAttr implements AttrGetter.
func (o *ObjectVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	v, err := o.lookup(tx, name)
	if err != nil || v != nil {
		return v, err
	}
	return o.missingAttr(tx, name)
}

// lookup returns nil when neither the instance nor its class has the attribute.
func (o *ObjectVariable) lookup(tx Translator, name string) (VariableTracker, error) {
	if v, ok := o.attrs[name]; ok && v != nil {
		return v, nil
	}
	if v, ok := o.known[name]; ok {
		return v, nil
	}
	if !plainGetAttr(tx, o.Class) {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s: __getattribute__ is overridden", name, py.TypeName(o.Class))
	}
	s := tx.Scope()
	d, inClass := s.TypeLookup(o.Class, name)
	var data bool
	if inClass {
		_, data = py.Descriptor(d)
	}
	if data {
		return o.dataDescriptor(tx, name, d)
	}
	_, deleted := o.attrs[name]
	if !o.Obj.IsNull() && !deleted {
		if v, ok := s.InstanceAttr(o.Obj, name); ok {
			// A data descriptor that the class gets later would come first. All instances of a class share the guard, and the
			// memo of a guard program compares one class version for all of them.
			class := classSource(tx, o.Class)
			if o.isModule(tx) && !tx.World().GuardNNModules {
				// the user asked for no guards inside of modules
			} else if inClass {
				tx.Output().AddGuards(guards.IDMatch(guards.NewTypeAttrSource(class, name), tx.Output().Const(d), guards.KeepWeak))
			} else {
				tx.Output().AddGuards(guards.TypeHasAttr(class, name, false))
			}
			src := guards.NewAttrSource(o.inside(tx), name)
			if inClass {
				src = guards.NewShadowingAttrSource(o.inside(tx), name)
			}
			return remember(o, name, tx.Build(v, src)), nil
		}
	}
	if !inClass {
		return nil, nil
	}
	if !o.Obj.IsNull() && !deleted && py.HasInstanceStorage(o.Obj) {
		tx.Output().AddGuards(guards.HasAttr(o.inside(tx), name, false))
	}
	return o.bindClassAttr(tx, name, d, guards.NewTypeAttrSource(classSource(tx, o.Class), name))
}

// bindClassAttr is what reading a class attribute through an instance gives.
func (o *ObjectVariable) bindClassAttr(tx Translator, name string, d py.Object, src guards.Source) (VariableTracker, error) {
	switch d.Kind() {
	case py.Function:
		return NewMethod(tx.Build(d, src), o, nil), nil
	case py.StaticMethod, py.ClassMethod:
		fn, err := tx.Scope().WrappedCallable(d)
		if err != nil {
			return nil, observed(err)
		}
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
		inner := tx.Build(fn, guards.NewConstSource(tx.Output().Const(fn), "___function_"+name))
		if d.Kind() == py.StaticMethod {
			return inner, nil
		}
		return NewMethod(inner, NewClass(o.Class, nil), nil), nil
	case py.Builtin, py.TypeKind, py.TypeSub:
		return tx.Build(d, src), nil
	case py.MethodDescr, py.WrapperDescr, py.ClassMethodDescr:
		return &BoundBuiltin{obj: o, name: name}, nil
	}
	if fn := tx.World().CallableFunction(d); !fn.IsNull() { // one of our callables used as a method
		return NewMethod(tx.Build(fn, guards.NewConstSource(tx.Output().Const(fn), "___function_"+name)), o, nil), nil
	}
	if get, _ := py.Descriptor(d); get {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s: descriptor %s", name, py.TypeName(o.Class), py.TypeName(d.Type()))
	}
	return tx.Build(d, src), nil
}

func (o *ObjectVariable) dataDescriptor(tx Translator, name string, d py.Object) (VariableTracker, error) {
	if o.exc != nil && d.Kind() != py.Property {
		return o.exceptionField(tx, name)
	}
	s := tx.Scope()
	src := guards.NewTypeAttrSource(classSource(tx, o.Class), name)
	switch d.Kind() {
	case py.Property:
		get, _, err := s.PropertyParts(d)
		if err != nil {
			return nil, observed(err)
		}
		if get.Kind() != py.Function {
			break
		}
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
		return tx.Inline(NewFunction(get, guards.NewConstSource(tx.Output().Const(get), "___property_"+name)), []VariableTracker{o}, nil)
	case py.Member:
		if o.Obj.IsNull() {
			break
		}
		if _, deleted := o.attrs[name]; deleted {
			return nil, nil
		}
		if v, off, ok := s.MemberValue(d, o.Obj); ok {
			return remember(o, name, tx.Build(v, guards.NewSlotSource(o.inside(tx), name, off))), nil
		}
	case py.GetSet:
		if name == "__dict__" && !o.Obj.IsNull() && len(o.attrs) == 0 {
			if dict, ok := s.InstanceDict(o.Obj); ok {
				v, err := Realize(tx, tx.Build(dict, guards.NewInstanceDictSource(o.inside(tx))))
				if err != nil {
					return nil, err
				}
				if d, ok := v.(*DictVariable); ok {
					d.view = true
				}
				return remember(o, name, v), nil
			}
		}
		if name == "__class__" {
			return NewClass(o.Class, nil), nil
		}
	}
	if name == "__class__" {
		return NewClass(o.Class, nil), nil
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of a %s: %s", name, py.TypeName(o.Class), py.TypeName(d.Type()))
}

// missingAttr calls __getattr__ where the class has one. nn.Module's own is modelled: parameters, buffers and submodules are read
// straight from its three dicts, in its order.
func (o *ObjectVariable) missingAttr(tx Translator, name string) (VariableTracker, error) {
	hook, ok := tx.Scope().TypeLookup(o.Class, "__getattr__")
	_, deleted := o.attrs[name]
	if !ok {
		if !o.Obj.IsNull() && o.Src != nil && !deleted && py.HasInstanceStorage(o.Obj) {
			tx.Output().AddGuards(guards.HasAttr(o.inside(tx), name, false))
		}
		tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, o.Class), name, false))
		return nil, noAttribute(o.Class, name)
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
				return v, nil
			}
		}
		tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, o.Class), name, false))
		return nil, noAttribute(o.Class, name)
	}
	if hook.Kind() != py.Function {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s: __getattr__", name, py.TypeName(o.Class))
	}
	if !o.Obj.IsNull() && o.Src != nil && !deleted && py.HasInstanceStorage(o.Obj) {
		tx.Output().AddGuards(guards.HasAttr(o.inside(tx), name, false))
	}
	tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, o.Class), name, false))
	fn := tx.Build(hook, guards.NewTypeAttrSource(classSource(tx, o.Class), "__getattr__"))
	return Call(tx, fn, []VariableTracker{o, StrConst(tx, name)}, nil)
}

// moduleDictItem reads one key of a module's dict by itself, so that the guard is on that key and not on all of them.
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
	return l.item(tx, name, v), true, nil
}

// item builds the value under a text key of a dict nobody has looked at whole, one tracker a key.
func (l *LazyVariable) item(tx Translator, name string, v py.Object) VariableTracker {
	src := guards.NewDictGetItemSource(l.Src, tx.Output().Const(tx.Scope().Name(name)))
	tx.Output().Reads(src)
	return tx.Build(v, src)
}

// lookupSpecial finds a special method on the class and binds it; nil when there is none of Python's own making.
func (o *ObjectVariable) lookupSpecial(tx Translator, name string) (VariableTracker, error) {
	d, ok := tx.Scope().TypeLookup(o.Class, name)
	if !ok {
		return nil, nil
	}
	switch d.Kind() {
	case py.Function:
		return o.bindClassAttr(tx, name, d, guards.NewTypeAttrSource(classSource(tx, o.Class), name))
	case py.NoneKind:
		return nil, nil
	}
	if tx.World().IsObjectMethod(tx.Scope(), name, d) {
		return nil, nil
	}
	if o.exc != nil {
		return &BoundBuiltin{obj: o, name: name}, nil
	}
	return nil, unsupported(exc.OperatorUnsupported, "%s of a %s", name, py.TypeName(o.Class))
}

// CallMethod implements MethodCaller.
func (o *ObjectVariable) CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	fn, err := o.GetAttr(tx, name)
	if err != nil {
		return nil, err
	}
	if b, ok := fn.(*BoundBuiltin); ok && b.obj == VariableTracker(o) {
		if o.exc != nil {
			return exceptionMethod(tx, o, name, args, kwargs)
		}
		return nil, unsupported(exc.CallUnsupported, "%s.%s", py.TypeName(o.Class), name)
	}
	return Call(tx, fn, args, kwargs)
}

// Call implements Caller: type(obj).__call__.
func (o *ObjectVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	m, err := o.lookupSpecial(tx, "__call__")
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, &exc.Observed{TypeName: "TypeError", Text: "'" + py.TypeName(o.Class) + "' object is not callable"}
	}
	return Call(tx, m, args, kwargs)
}

// Truth implements Truther: __bool__, which must give a bool, or __len__ > 0.
func (o *ObjectVariable) Truth(tx Translator) (bool, error) {
	m, err := o.lookupSpecial(tx, "__bool__")
	if err != nil {
		return false, err
	}
	if m == nil {
		if m, err = o.lookupSpecial(tx, "__len__"); err != nil || m == nil {
			return true, err
		}
		n, err := o.Len(tx)
		return n > 0, err
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return false, err
	}
	if r, err = Realize(tx, r); err != nil {
		return false, err
	}
	v, ok := AsConstant(tx, r)
	if !ok {
		return false, unsupported(exc.OperatorUnsupported, "__bool__ of a %s gives %s", py.TypeName(o.Class), Describe(tx, r))
	}
	if v.Kind() != py.BoolKind {
		return false, &exc.Observed{TypeName: "TypeError", Text: "__bool__ should return bool, returned " + py.TypeName(v.Type())}
	}
	return v == py.True(), nil
}

// Len implements Lener.
func (o *ObjectVariable) Len(tx Translator) (int, error) {
	m, err := o.lookupSpecial(tx, "__len__")
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, &exc.Observed{TypeName: "TypeError", Text: "object of type '" + py.TypeName(o.Class) + "' has no len()"}
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return 0, err
	}
	if r, err = Index(tx, r); err != nil {
		return 0, err
	}
	n, ok := ConstInt(tx, r)
	if !ok {
		return 0, unsupported(exc.CallUnsupported, "len of a %s", py.TypeName(o.Class))
	}
	if n < 0 {
		return 0, &exc.Observed{TypeName: "ValueError", Text: "__len__() should return >= 0"}
	}
	return n, nil
}

// GetItem implements ItemGetter.
func (o *ObjectVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	m, err := o.lookupSpecial(tx, "__getitem__")
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, unsupported(exc.SubscriptUnsupported, "a %s", py.TypeName(o.Class))
	}
	return Call(tx, m, []VariableTracker{key}, nil)
}

// SetItem implements ItemSetter.
func (o *ObjectVariable) SetItem(tx Translator, key, value VariableTracker) error {
	name, args := "__setitem__", []VariableTracker{key, value}
	if value == nil {
		name, args = "__delitem__", args[:1]
	}
	m, err := o.lookupSpecial(tx, name)
	if err != nil {
		return err
	}
	if m == nil {
		return unsupported(exc.StoreUnsupported, "item of a %s", py.TypeName(o.Class))
	}
	_, err = Call(tx, m, args, nil)
	return err
}

// SetAttr implements AttrSetter.
func (o *ObjectVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	s := tx.Scope()
	hook := "__setattr__"
	if value == nil {
		hook = "__delattr__"
	}
	d, _ := s.TypeLookup(o.Class, hook)
	module := d == tx.World().ModuleSetAttr
	if !module && !tx.World().IsObjectMethod(s, hook, d) && !py.Is(o.Class, py.GenericSetAttr) {
		return unsupported(exc.StoreUnsupported, "%s of a %s: %s is overridden", name, py.TypeName(o.Class), hook)
	}
	if _, read := o.known["__dict__"]; read {
		return unsupported(exc.StoreUnsupported, "%s of a %s whose __dict__ was read", name, py.TypeName(o.Class))
	}
	if c, ok := s.TypeLookup(o.Class, name); ok {
		if _, data := py.Descriptor(c); data {
			return o.setDescriptor(tx, name, c, value)
		}
	}
	if module {
		if err := o.setModuleAttr(tx, name, value); err != nil {
			return err
		}
	}
	if value == nil {
		if v, err := o.lookup(tx, name); err != nil || v == nil {
			if err == nil {
				err = noAttribute(o.Class, name)
			}
			return err
		}
	}
	o.store(name, value)
	return o.storeEffect(tx, name, value)
}

func (o *ObjectVariable) store(name string, value VariableTracker) {
	if o.attrs == nil {
		o.attrs = map[string]VariableTracker{}
	}
	if _, ok := o.attrs[name]; !ok {
		o.order = append(o.order, name)
	}
	o.attrs[name] = value
	delete(o.known, name)
}

func (o *ObjectVariable) storeEffect(tx Translator, name string, value VariableTracker) error {
	if value == nil {
		return writeThrough(tx, o, nil, func(e Emitter, _ []VariableTracker) error {
			if err := e.Load(o); err != nil {
				return err
			}
			e.DeleteAttr(name)
			return nil
		})
	}
	return writeThrough(tx, o, []VariableTracker{value}, func(e Emitter, vs []VariableTracker) error {
		if err := loadAll(e, []VariableTracker{vs[0], o}); err != nil {
			return err
		}
		e.StoreAttr(name)
		return nil
	})
}

// StoreThrough writes an attribute of a materialized instance at this place of the program.
func (o *ObjectVariable) StoreThrough(tx Translator, name string, value VariableTracker) error {
	return o.storeEffect(tx, name, value)
}

// setModuleAttr decides whether nn.Module.__setattr__ does nothing but a plain store here: plain values under names that no
// parameter, buffer or submodule has; a tensor under a buffer's name, which stays visible in _buffers.
func (o *ObjectVariable) setModuleAttr(tx Translator, name string, value VariableTracker) error {
	if value == nil {
		return unsupported(exc.StoreUnsupported, "del of a module's attribute")
	}
	v, err := Realize(tx, value)
	if err != nil {
		return err
	}
	if obj, ok := v.(*ObjectVariable); ok && obj.isModule(tx) {
		return unsupported(exc.StoreUnsupported, "a module stored in a module")
	}
	t, tensor := v.(*TensorVariable)
	if tensor && !t.Class.IsNull() {
		return unsupported(exc.StoreUnsupported, "a parameter stored in a module")
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
	if o.exc != nil && d.Kind() != py.Property {
		if tb, ok := value.(*TracebackVariable); ok && name == "__traceback__" && tb.of == o {
			return nil
		}
		return unsupported(exc.StoreUnsupported, "%s of an exception", name)
	}
	switch d.Kind() {
	case py.Member:
		o.store(name, value)
		return o.storeEffect(tx, name, value)
	case py.Property:
		_, set, err := tx.Scope().PropertyParts(d)
		if err != nil {
			return observed(err)
		}
		if set.Kind() == py.Function && value != nil {
			src := guards.NewTypeAttrSource(classSource(tx, o.Class), name)
			tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
			_, err := tx.Inline(NewFunction(set, guards.NewConstSource(tx.Output().Const(set), "___property_set_"+name)), []VariableTracker{o, value}, nil)
			return err
		}
	}
	return unsupported(exc.StoreUnsupported, "%s of a %s: %s", name, py.TypeName(o.Class), py.TypeName(d.Type()))
}

// ReconstructEmpty emits the bare instance; attributes are stored by the caller.
func (o *ObjectVariable) ReconstructEmpty(e Emitter) error {
	if o.exc != nil {
		return o.reconstructException(e)
	}
	e.PushNull()
	e.LoadConst(objectType)
	e.LoadAttr("__new__")
	e.LoadConst(o.Class)
	e.Call(1, nil)
	return nil
}

var objectType py.Object // set with the World; immortal
