package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ClassVariable is a class: a user's, or a library's that no builtin handler covers.
type ClassVariable struct {
	Base
	Class py.Object
}

// NewClass returns the tracker of a class; with a source the caller has guarded its identity.
func NewClass(class py.Object, src guards.Source) *ClassVariable {
	return &ClassVariable{Base: Base{Src: src}, Class: class}
}

// Kind implements VariableTracker.
func (*ClassVariable) Kind() string { return "UserDefinedClassVariable" }

// AsConstant implements Constant.
func (c *ClassVariable) AsConstant(Translator) (py.Object, bool) { return c.Class, true }

// PythonType implements Typed.
func (c *ClassVariable) PythonType(Translator) (py.Object, error) { return c.Class.Type(), nil }

// Truth implements Truther.
func (c *ClassVariable) Truth(tx Translator) (bool, error) {
	if c.Class.Kind() == py.TypeKind {
		return true, nil
	}
	return tx.Scope().Truth(c.Class)
}

// Reconstruct implements Reconstructer.
func (c *ClassVariable) Reconstruct(e Emitter) error {
	e.LoadConst(c.Class)
	return nil
}

// GetAttr implements AttrGetter: type.__getattribute__ on classes whose metaclass does not override it.
func (c *ClassVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	s := tx.Scope()
	switch name {
	case "__name__", "__qualname__", "__module__", "__doc__":
		v, err := s.GetAttr(c.Class, name)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, v)
	case "__class__":
		return NewClass(c.Class.Type(), nil), nil
	}
	if c.Class.Type() == tx.World().EnumMeta {
		if v, ok := c.enumMember(tx, name); ok {
			return v, nil
		}
	} else if !py.Is(c.Class, py.PlainMetaGetAttr) {
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s: its metaclass reads attributes", name, py.TypeName(c.Class))
	}
	if m, ok := s.TypeLookup(c.Class.Type(), name); ok {
		if _, data := py.Descriptor(m); data || c.Class.Kind() != py.TypeKind {
			if _, own := s.TypeLookup(c.Class, name); !own || data {
				return nil, unsupported(exc.AttrUnsupported, "%s of class %s", name, py.TypeName(c.Class))
			}
		}
	}
	d, ok := s.TypeLookup(c.Class, name)
	if !ok {
		tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, c.Class), name, false))
		return nil, &exc.Observed{TypeName: "AttributeError", Text: "type object '" + py.TypeName(c.Class) + "' has no attribute '" + name + "'"}
	}
	if tx.World().IsEnum(s, d) {
		return tx.Build(d, guards.NewTypeAttrSource(classSource(tx, c.Class), name)), nil
	}
	src := guards.NewTypeAttrSource(classSource(tx, c.Class), name)
	switch d.Kind() {
	case py.Function:
		return tx.Build(d, src), nil
	case py.StaticMethod, py.ClassMethod:
		fn, err := s.WrappedCallable(d)
		if err != nil {
			return nil, observed(err)
		}
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
		inner := tx.Build(fn, guards.NewConstSource(tx.Output().Const(fn), "___function_"+name))
		if d.Kind() == py.StaticMethod {
			return inner, nil
		}
		return NewMethod(inner, c, nil), nil
	case py.MethodDescr, py.WrapperDescr:
		return &UnboundMethod{class: c, name: name, descr: d}, nil
	case py.ClassMethodDescr: // a C class method, bound
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
		bound, err := s.GetAttr(c.Class, name)
		if err != nil {
			return nil, observed(err)
		}
		return wrapKnown(tx, bound), nil
	}
	if get, _ := py.Descriptor(d); get && d.Kind() != py.Property {
		if k := d.Kind(); k != py.TypeKind && k != py.TypeSub {
			return nil, unsupported(exc.AttrUnsupported, "%s of class %s: descriptor", name, py.TypeName(c.Class))
		}
	}
	return tx.Build(d, src), nil
}

// enumMember is a member read from its class: EnumType lets nobody bind the name again.
func (c *ClassVariable) enumMember(tx Translator, name string) (VariableTracker, bool) {
	s := tx.Scope()
	members, ok := s.TypeLookup(c.Class, "_member_map_")
	if !ok || members.Kind() != py.Dict {
		return nil, false
	}
	m, ok := s.DictGetName(members, name)
	if !ok || !tx.World().IsEnum(s, m) {
		return nil, false
	}
	return NewConstant(m, nil), true
}

// Call implements Caller: making an instance.
func (c *ClassVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	if r, ok, err := callStandIn(tx, c.Class, args, kwargs); ok || err != nil {
		return r, err
	}
	if py.IsSubtype(c.Class, w.BaseException) {
		return newException(tx, c.Class, args, kwargs)
	}
	if w.IsTorchConstant(c.Class) || w.IsEnumClass(s, c.Class) {
		if c.Class == w.SizeType && len(args) == 1 && len(kwargs) == 0 {
			items, err := Unpack(tx, args[0])
			if err != nil {
				return nil, err
			}
			return NewTupleOf(items, c.Class, nil), nil
		}
		if pure, err := w.IsPure(s, c.Class); err != nil || !pure && !w.IsEnumClass(s, c.Class) {
			return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
		}
		return foldCall(tx, c.Class, args, kwargs)
	}
	if py.IsSubtype(c.Class, w.PartialType) && len(args) > 0 {
		fn, err := Realize(tx, args[0])
		return &PartialVariable{Fn: fn, Args: args[1:], Kwargs: kwargs}, err
	}
	if c.Class.Type() != w.TypeType && c.Class.Type() != w.ABCMeta {
		return nil, unsupported(exc.CallUnsupported, "class %s: its metaclass makes instances", py.TypeName(c.Class))
	}
	if _, ok := w.NamedTupleFields(s, c.Class); ok {
		return c.newNamedTuple(tx, args, kwargs)
	}
	return c.instantiate(tx, args, kwargs)
}

// instantiate makes an instance of a plain Python class: object.__new__, then __init__ inlined.
func (c *ClassVariable) instantiate(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	plain := func(name string) bool {
		d, ok := s.TypeLookup(c.Class, name)
		return ok && w.IsObjectMethod(s, name, d)
	}
	// no_grad and enable_grad have a __new__ for their use as a decorator without parentheses.
	made := plain("__new__") || w.IsStateContext(c.Class) && len(args)+len(kwargs) == 0
	if !made || !plain("__setattr__") || py.IsSubtype(c.Class, w.NNModule) || !w.PlainLayout(s, c.Class) {
		return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
	}
	if _, ok := s.TypeLookup(c.Class, "__del__"); ok {
		return nil, unsupported(exc.CallUnsupported, "instance of class %s with __del__", py.TypeName(c.Class))
	}
	obj := NewInstance(c.Class)
	init, ok := s.TypeLookup(c.Class, "__init__")
	switch {
	case ok && init.Kind() == py.Function:
		fn := tx.Build(init, guards.NewTypeAttrSource(classSource(tx, c.Class), "__init__"))
		r, err := Call(tx, fn, append([]VariableTracker{obj}, args...), kwargs)
		if err != nil {
			return nil, err
		}
		if r, err = Realize(tx, r); err != nil {
			return nil, err
		}
		if o, ok := AsConstant(tx, r); !ok || o != py.None() {
			return nil, &exc.Observed{TypeName: "TypeError", Text: "__init__() should return None"}
		}
	case ok && w.IsObjectMethod(s, "__init__", init) && len(args)+len(kwargs) == 0:
	default:
		return nil, unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
	}
	if polyfillMark(tx, c.Class) != "" {
		return newStandIn(tx, obj)
	}
	return obj, nil
}

// UnboundMethod is a C method read from its class (list.append, object.__init__, Tensor.add).
type UnboundMethod struct {
	Base
	class *ClassVariable
	name  string
	descr py.Object
}

// Kind implements VariableTracker.
func (*UnboundMethod) Kind() string { return "MethodDescriptorVariable" }

// AsConstant implements Constant.
func (u *UnboundMethod) AsConstant(Translator) (py.Object, bool) { return u.descr, true }

// Reconstruct implements Reconstructer.
func (u *UnboundMethod) Reconstruct(e Emitter) error {
	e.LoadConst(u.descr)
	return nil
}

// Call implements Caller.
func (u *UnboundMethod) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if r, ok, err := callStandIn(tx, u.descr, args, kwargs); ok || err != nil {
		return r, err
	}
	if len(args) == 0 {
		return nil, unsupported(exc.CallUnsupported, "unbound %s", u.name)
	}
	self, err := Realize(tx, args[0])
	if err != nil {
		return nil, err
	}
	if o, ok := self.(*ObjectVariable); ok {
		return objectMethod(tx, o, u.name, args[1:], kwargs)
	}
	return CallMethod(tx, self, u.name, args[1:], kwargs)
}

// objectMethod is object's own methods called on an instance of a Python class (super().__init__(), object.__setattr__).
func objectMethod(tx Translator, o *ObjectVariable, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if o.exc != nil {
		return exceptionMethod(tx, o, name, args, kwargs)
	}
	switch name {
	case "__init__", "__init_subclass__":
		if len(args)+len(kwargs) == 0 {
			return NoneConst(), nil
		}
	case "__getattribute__":
		if n, ok := ConstStr(tx, arg(args, 0)); ok {
			v, err := o.lookup(tx, n)
			if err == nil && v == nil {
				err = noAttribute(o.Class, n)
			}
			return v, err
		}
	}
	return nil, unsupported(exc.CallUnsupported, "object.%s", name)
}

// SuperVariable is super(cls, self).
type SuperVariable struct {
	Base
	cls, self VariableTracker
}

// NewSuper returns super(cls, self).
func NewSuper(cls, self VariableTracker) *SuperVariable { return &SuperVariable{cls: cls, self: self} }

// Kind implements VariableTracker.
func (*SuperVariable) Kind() string { return "SuperVariable" }

// Children implements Container.
func (s *SuperVariable) Children() []VariableTracker { return []VariableTracker{s.cls, s.self} }

// GetAttr implements AttrGetter: the next definition along type(self).__mro__ after cls.
func (s *SuperVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	cls, err := Realize(tx, s.cls)
	if err != nil {
		return nil, err
	}
	self, err := Realize(tx, s.self)
	if err != nil {
		return nil, err
	}
	c, ok := cls.(*ClassVariable)
	if of, isClass := self.(*ClassVariable); ok && isClass {
		return c.superOfClass(tx, of, name)
	}
	o, ok2 := self.(*ObjectVariable)
	if !ok || !ok2 {
		return nil, unsupported(exc.AttrUnsupported, "super() of %s", Describe(tx, self))
	}
	sc := tx.Scope()
	mro, err := sc.GetAttr(o.Class, "__mro__")
	if err != nil {
		return nil, observed(err)
	}
	after := false
	for i, k := range sc.Items(mro) {
		if !after {
			after = k == c.Class
			continue
		}
		dict, err := sc.GetAttr(k, "__dict__")
		if err != nil {
			return nil, observed(err)
		}
		d, err := sc.CallMethod(dict, "get", sc.Name(name), tx.World().Missing)
		if err != nil {
			return nil, observed(err)
		}
		if d == tx.World().Missing {
			continue
		}
		if d.Kind() == py.WrapperDescr || d.Kind() == py.MethodDescr {
			return &boundDescriptor{o: o, name: name}, nil
		}
		src := guards.NewMroSource(classSource(tx, o.Class), i, name)
		if d.Kind() == py.Property {
			if get, _, err := sc.PropertyParts(d); err == nil && get.Kind() == py.Function {
				tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
				return tx.Inline(NewFunction(get, guards.NewConstSource(tx.Output().Const(get), "___property_"+name)), []VariableTracker{o}, nil)
			}
		}
		return o.bindClassAttr(tx, name, d, src)
	}
	return nil, &exc.Observed{TypeName: "AttributeError", Text: "'super' object has no attribute '" + name + "'"}
}

// superOfClass is super(c, of).name in a classmethod: the next definition along of.__mro__, bound to of.
func (c *ClassVariable) superOfClass(tx Translator, of *ClassVariable, name string) (VariableTracker, error) {
	s := tx.Scope()
	mro, err := s.GetAttr(of.Class, "__mro__")
	if err != nil {
		return nil, observed(err)
	}
	after := false
	for i, k := range s.Items(mro) {
		if !after {
			after = k == c.Class
			continue
		}
		dict, err := s.GetAttr(k, "__dict__")
		if err != nil {
			return nil, observed(err)
		}
		d, err := s.CallMethod(dict, "get", s.Name(name), tx.World().Missing)
		if err != nil {
			return nil, observed(err)
		}
		if d == tx.World().Missing {
			continue
		}
		src := guards.NewMroSource(classSource(tx, of.Class), i, name)
		switch d.Kind() {
		case py.Function:
			return tx.Build(d, src), nil
		case py.StaticMethod, py.ClassMethod:
			fn, err := s.WrappedCallable(d)
			if err != nil {
				return nil, observed(err)
			}
			tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
			inner := tx.Build(fn, guards.NewConstSource(tx.Output().Const(fn), "___function_"+name))
			if d.Kind() == py.StaticMethod {
				return inner, nil
			}
			return NewMethod(inner, of, nil), nil
		}
		if get, _ := py.Descriptor(d); get {
			return nil, unsupported(exc.AttrUnsupported, "%s of super() in a classmethod", name)
		}
		return tx.Build(d, src), nil
	}
	return nil, &exc.Observed{TypeName: "AttributeError", Text: "'super' object has no attribute '" + name + "'"}
}

// boundDescriptor is a method of object's bound by super().
type boundDescriptor struct {
	Base
	o    *ObjectVariable
	name string
}

// Kind implements VariableTracker.
func (*boundDescriptor) Kind() string { return "MethodWrapperVariable" }

// Call implements Caller.
func (b *boundDescriptor) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return objectMethod(tx, b.o, b.name, args, kwargs)
}

// ModuleVariable is a Python module.
type ModuleVariable struct {
	Base
	Module py.Object
}

// NewModule returns the tracker of a module the caller has guarded by identity.
func NewModule(m py.Object, src guards.Source) *ModuleVariable {
	return &ModuleVariable{Base: Base{Src: src}, Module: m}
}

// Kind implements VariableTracker.
func (*ModuleVariable) Kind() string { return "PythonModuleVariable" }

// AsConstant implements Constant.
func (m *ModuleVariable) AsConstant(Translator) (py.Object, bool) { return m.Module, true }

// PythonType implements Typed.
func (m *ModuleVariable) PythonType(Translator) (py.Object, error) { return m.Module.Type(), nil }

// Reconstruct implements Reconstructer.
func (m *ModuleVariable) Reconstruct(e Emitter) error {
	e.LoadConst(m.Module)
	return nil
}

// GetAttr implements AttrGetter.
func (m *ModuleVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if d, ok := tx.Scope().InstanceDict(m.Module); ok && tx.StoredInto(d) {
		return nil, unsupported(exc.AttrUnsupported, "%s of the module whose globals were stored", name)
	}
	v, ok := tx.Scope().InstanceAttr(m.Module, name)
	if !ok {
		return m.dynamicAttr(tx, name)
	}
	src := m.Src
	if src == nil {
		src = guards.NewConstSource(tx.Output().Const(m.Module), "___module")
	}
	return tx.Build(v, guards.NewModuleAttrSource(src, name)), nil
}

// dynamicAttr is an attribute that the module computes (PEP 562). Only torch's own modules are asked: theirs give the same
// object every time.
func (m *ModuleVariable) dynamicAttr(tx Translator, name string) (VariableTracker, error) {
	s := tx.Scope()
	module, _ := s.InstanceAttr(m.Module, "__name__")
	if n := py.GoString(module); n != "torch" && !strings.HasPrefix(n, "torch.") {
		return nil, unsupported(exc.AttrUnsupported, "%s of module %s", name, n)
	}
	v, err := s.GetAttr(m.Module, name)
	if err != nil {
		return nil, observed(err)
	}
	return tx.Build(v, guards.NewConstSource(tx.Output().Const(v), "___"+name)), nil
}

// SetAttr implements AttrSetter.
func (m *ModuleVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	return unsupported(exc.StoreUnsupported, "attribute of a module")
}
