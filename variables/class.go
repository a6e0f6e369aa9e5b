package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ClassVariable is a class that the user or a library defines. Classes with a builtin handler are BuiltinVariables
// instead.
type ClassVariable struct {
	Base
	Class py.Object
	maker *madeClass // how the frame makes the class, or nil
}

// NewClass returns the tracker of a class. If src is set, the caller has guarded the class's identity.
func NewClass(class py.Object, src guards.Source) *ClassVariable {
	return &ClassVariable{Base: Base{Src: src}, Class: class}
}

// Kind implements VariableTracker.
func (*ClassVariable) Kind() string { return "UserDefinedClassVariable" }

// AsConstant implements Constant.
func (c *ClassVariable) AsConstant(tx Translator) (py.Object, bool) {
	return c.Class, tx.World().MadeClass(c.Class) == nil
}

// PythonType implements Typed.
func (c *ClassVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().Metaclass(tx, c.Class), nil
}

// Truth implements Truther.
func (c *ClassVariable) Truth(tx Translator) (bool, error) {
	for _, name := range []string{"__bool__", "__len__"} {
		m, err := c.metaMethod(tx, name)
		if err != nil {
			return false, err
		}
		if m == nil {
			continue
		}
		if name == "__len__" {
			n, err := c.Len(tx)
			return n > 0, err
		}
		r, err := Call(tx, m, nil, nil)
		if err != nil {
			return false, err
		}
		return boolResult(tx, r)
	}
	if err := tx.World().computable(tx, []py.Object{c.Class}); err != nil {
		return false, err
	}
	return tx.Scope().Truth(c.Class)
}

// Reconstruct implements Reconstructer.
func (c *ClassVariable) Reconstruct(e Emitter) error {
	if c.maker != nil {
		return c.maker.reconstruct(e)
	}
	e.LoadConst(c.Class)
	return nil
}

// classFacts are attributes that every class has. CPython reads them while translating. metaData guards those that a
// program can assign.
var classFacts = map[string]bool{
	"__name__": true, "__qualname__": true, "__module__": true, "__doc__": true, "__mro__": true, "__bases__": true,
	"__base__": true,
}

// GetAttr implements AttrGetter. It calls lookup and, if that raises AttributeError, the metaclass's __getattr__.
func (c *ClassVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	v, err := c.lookup(tx, name)
	// a descriptor raised the error, or the attribute is missing
	if e, ok := err.(*exc.Observed); ok && raises(tx, e, "AttributeError") {
		meta := c.Class.Type()
		hook, has := tx.Scope().TypeLookup(meta, "__getattr__")
		if has && hook.Kind() == py.Function && !tx.World().IsEnumClass(tx.Scope(), c.Class) {
			fn := tx.Build(hook, guards.NewTypeAttrSource(classSource(tx, meta), "__getattr__"))
			return Call(tx, fn, []VariableTracker{c, StrConst(tx, name)}, nil)
		}
	}
	return v, err
}

// lookup implements type.__getattribute__.
func (c *ClassVariable) lookup(tx Translator, name string) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	meta := tx.World().Metaclass(tx, c.Class)
	if name == "__class__" {
		return NewClass(meta, nil), nil
	}
	if v, ok := c.foreignConstant(tx, name); ok {
		return v, nil
	}
	own, _ := s.TypeLookup(w.TypeType, "__getattribute__")
	if g, ok := s.TypeLookup(meta, "__getattribute__"); !ok || g != own {
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s: its metaclass reads attributes", name,
			py.TypeName(c.Class))
	}
	if v, ok := storedClassAttr(tx, c.Class, name); ok {
		return bindStored(tx, nil, v)
	}
	if _, ok := s.TypeLookup(c.Class, "__get__"); ok && w.IsEnumClass(s, c.Class) {
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s, whose members are descriptors", name,
			py.TypeName(c.Class))
	}
	if v, ok := c.enumMember(tx, name); ok {
		return v, nil
	}
	m, inMeta := s.TypeLookup(meta, name)
	if inMeta {
		if _, data := isDescriptor(tx, m); data {
			return c.metaData(tx, name, m)
		}
	}
	d, ok := s.TypeLookup(c.Class, name)
	if ok {
		v, err := c.ownAttr(tx, name, d)
		if e, observed := err.(*exc.Observed); observed && raises(tx, e, "AttributeError") {
			if _, hook := s.TypeLookup(meta, "__getattr__"); hook { // CPython calls this __getattr__ next
				return nil, unsupported(exc.AttrUnsupported, "%s of class %s", name, py.TypeName(c.Class))
			}
		}
		return v, err
	}
	if inMeta {
		return c.bindMeta(tx, name, m)
	}
	tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, c.Class), name, false))
	hook, hooked := s.TypeLookup(meta, "__getattr__")
	if hooked && !w.IsEnumClass(s, c.Class) && hook.Kind() != py.Function {
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s: its metaclass reads attributes", name,
			py.TypeName(c.Class))
	}
	if hooked && w.IsEnumClass(s, c.Class) { // in 3.12 members are attributes of the class, and EnumType has no hook
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") { // EnumType's __getattr__ skips dunder names
			return nil, &exc.Observed{TypeName: "AttributeError", Text: name}
		}
		return c.fromMembers(tx, name)
	}
	text := "type object '" + typeName(tx, c.Class) + "' has no attribute '" + name + "'"
	return nil, &exc.Observed{TypeName: "AttributeError", Text: text}
}

// enumMember returns the member with this name of an enum class. The name always refers to this member, since EnumType
// forbids rebinding it.
func (c *ClassVariable) enumMember(tx Translator, name string) (VariableTracker, bool) {
	s := tx.Scope()
	if tx.World().Metaclass(tx, c.Class) != tx.World().EnumMeta {
		return nil, false
	}
	members, ok := s.TypeLookup(c.Class, "_member_map_")
	if !ok || members.Kind() != py.Dict {
		return nil, false
	}
	m, ok := s.DictGetName(members, name)
	if !ok || !tx.World().IsEnum(s, m) {
		return nil, false
	}
	if d, own := s.TypeLookup(c.Class, name); !own || d != m { // the name is missing or has another value
		return nil, false
	}
	return NewConstant(m, nil), true
}

// guardMembers guards the contents of `_member_map_`, an enum class's table of members.
func guardMembers(tx Translator, class py.Object) error {
	members, ok := tx.Scope().TypeLookup(class, "_member_map_")
	if !ok {
		return nil
	}
	table, err := Realize(tx, tx.Build(members, guards.NewTypeAttrSource(classSource(tx, class), "_member_map_")))
	if err != nil {
		return err
	}
	d, ok := table.(*DictVariable)
	if !ok {
		return unsupported(exc.AttrUnsupported, "the table of members of class %s", py.TypeName(class))
	}
	for _, v := range d.values {
		if _, err := Realize(tx, v); err != nil {
			return err
		}
	}
	return nil
}

// fromMembers reads a name from `_member_map_`, an enum class's table of members, as EnumType or the member's
// descriptor does. It guards the table's contents.
func (c *ClassVariable) fromMembers(tx Translator, name string) (VariableTracker, error) {
	members, ok := tx.Scope().TypeLookup(c.Class, "_member_map_")
	if !ok || tx.World().Metaclass(tx, c.Class) != tx.World().EnumMeta {
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s", name, py.TypeName(c.Class))
	}
	table, err := Realize(tx, tx.Build(members, guards.NewTypeAttrSource(classSource(tx, c.Class), "_member_map_")))
	if err != nil {
		return nil, err
	}
	d, ok := table.(*DictVariable)
	if !ok {
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s", name, py.TypeName(c.Class))
	}
	v, found, err := d.get(tx, StrConst(tx, name))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, &exc.Observed{TypeName: "AttributeError", Text: name}
	}
	return Realize(tx, v)
}

// metaData reads a data descriptor of the metaclass: a property that the user wrote, or one of classFacts.
func (c *ClassVariable) metaData(tx Translator, name string, m py.Object) (VariableTracker, error) {
	meta := tx.World().Metaclass(tx, c.Class)
	if classFacts[name] {
		if mro, ok := tx.Scope().TypeLookup(meta, "mro"); ok && mro.Kind() != py.MethodDescr {
			return nil, unsupported(exc.AttrUnsupported, "%s of class %s, which orders its bases itself", name,
				py.TypeName(c.Class))
		}
		tx.World().RestsOnBases(tx, c.Class)
		v, err := tx.Scope().GetAttr(c.Class, name)
		if err != nil {
			return nil, observed(err)
		}
		switch name {
		case "__name__":
			if py.Is(c.Class, py.Mutable) {
				tx.Output().AddGuards(guards.NameMatch(classSource(tx, c.Class), py.GoString(v)))
			}
		case "__module__", "__qualname__", "__doc__":
			if err := tx.World().fact(tx, c.Class, name, v); err != nil {
				return nil, err
			}
		}
		if name == "__mro__" && tx.World().MadeClass(c.Class) != nil {
			return nil, unsupported(exc.AttrUnsupported, "%s of class %s, which the frame makes", name,
				py.TypeName(c.Class))
		}
		if v.Kind() == py.Tuple {
			var items []VariableTracker
			for _, k := range tx.Scope().Items(v) {
				items = append(items, wrapKnown(tx, k))
			}
			return NewKnownTuple(items, v), nil
		}
		if k := v.Kind(); k == py.TypeKind || k == py.TypeSub {
			return wrapKnown(tx, v), nil
		}
		return immutableResult(tx, v)
	}
	if name == "__members__" && tx.World().IsEnumClass(tx.Scope(), c.Class) {
		members, err := tx.Scope().GetAttr(c.Class, "_member_map_")
		proxy, err2 := tx.Scope().GetAttr(c.Class, name)
		if err2 != nil {
			return nil, observed(err2)
		}
		if err != nil {
			return nil, observed(err)
		}
		// The keys are guarded, since this dict is still growing while the enum class is being created.
		if _, err := Realize(tx, tx.Build(members,
			guards.NewTypeAttrSource(classSource(tx, c.Class), "_member_map_"))); err != nil {
			return nil, err
		}
		return newMappingProxy(tx, proxy)
	}
	if m.Kind() != py.Property && m.Kind() != py.Other {
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s", name, py.TypeName(c.Class))
	}
	if v, err := c.foreignProperty(tx, name, m); v != nil || err != nil {
		return v, err
	}
	return bindClassAttr(tx, c, meta, name, m, guards.NewTypeAttrSource(classSource(tx, meta), name))
}

// bindMeta returns m, the attribute `name` of the metaclass, bound to the class.
func (c *ClassVariable) bindMeta(tx Translator, name string, m py.Object) (VariableTracker, error) {
	meta := tx.World().Metaclass(tx, c.Class)
	switch m.Kind() {
	case py.MethodDescr, py.WrapperDescr, py.ClassMethodDescr:
		if v := c.boundSubclasses(tx, name, m); v != nil {
			return v, nil
		}
		return nil, unsupported(exc.AttrUnsupported, "%s of class %s", name, py.TypeName(c.Class))
	}
	tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, c.Class), name, false))
	return bindClassAttr(tx, c, meta, name, m, guards.NewTypeAttrSource(classSource(tx, meta), name))
}

// ownAttr returns an attribute of the class itself or of its bases.
func (c *ClassVariable) ownAttr(tx Translator, name string, d py.Object) (VariableTracker, error) {
	s := tx.Scope()
	src := guards.NewTypeAttrSource(classSource(tx, c.Class), name)
	if tx.World().IsEnum(s, d) {
		return tx.Build(d, src), nil
	}
	switch d.Kind() {
	case py.Function, py.Property:
		return tx.Build(d, src), nil
	case py.StaticMethod, py.ClassMethod:
		if err := chained(tx, name, d); err != nil {
			return nil, err
		}
		inner, err := unwrapped(tx, d, src, "__func__")
		if err != nil || inner == nil || d.Kind() == py.StaticMethod {
			return inner, err
		}
		return NewMethod(inner, c, nil), nil
	case py.MethodDescr, py.WrapperDescr:
		return &UnboundMethod{class: c, name: name, descr: d}, nil
	case py.GetSet, py.Member: // __get__(None, class) of such a descriptor returns the descriptor itself
		return NewConstant(d, nil), nil
	case py.ClassMethodDescr: // a class method written in C is bound to the class
		if name == "fromkeys" && py.IsNative(c.Class, name, d) {
			return &boundClassMethod{class: c, name: name}, nil
		}
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
		bound, err := s.GetAttr(c.Class, name)
		if err != nil {
			return nil, observed(err)
		}
		return wrapKnown(tx, bound), nil
	}
	if get, _ := isDescriptor(tx, d); get && d.Type() != tx.World().cacheWrapper { // whose __get__ returns it itself
		return userDescriptor(tx, nil, c.Class, name, d, src)
	}
	return tx.Build(d, src), nil
}

// metaMethod returns a special method of a metaclass written in Python, bound to the class. It returns nil if there is
// no such method. It also returns nil for an enum class: enum classes are constants, so CPython calls EnumType's
// methods.
func (c *ClassVariable) metaMethod(tx Translator, name string) (VariableTracker, error) {
	if c.Class.Kind() == py.TypeKind && tx.World().Metaclass(tx, c.Class) == tx.World().TypeType ||
		tx.World().IsEnumClass(tx.Scope(), c.Class) {
		return nil, nil
	}
	meta := tx.World().Metaclass(tx, c.Class)
	d, ok := tx.Scope().TypeLookup(meta, name)
	if !ok || d.Kind() != py.Function || meta == tx.World().ABCMeta {
		return nil, nil
	}
	return bindClassAttr(tx, c, meta, name, d, guards.NewTypeAttrSource(classSource(tx, meta), name))
}

// Len implements Lener by calling the metaclass's __len__.
func (c *ClassVariable) Len(tx Translator) (int, error) {
	m, err := c.metaMethod(tx, "__len__")
	if err != nil {
		return 0, err
	}
	if m != nil {
		r, err := Call(tx, m, nil, nil)
		if err != nil {
			return 0, err
		}
		if n, ok := ConstInt(tx, MustRealize(tx, r)); ok && n >= 0 {
			return n, nil
		}
		return 0, unsupported(exc.CallUnsupported, "len of class %s", py.TypeName(c.Class))
	}
	if err := tx.World().computable(tx, []py.Object{c.Class}); err != nil {
		return 0, err
	}
	n, err := tx.Scope().Len(c.Class)
	return n, observed(err)
}

// SetAttr implements AttrSetter. It records the store on the class as an effect in program order.
func (c *ClassVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	s, w := tx.Scope(), tx.World()
	if w.MadeClass(c.Class) != nil {
		return unsupported(exc.StoreUnsupported, "attribute %s of class %s", name, py.TypeName(c.Class))
	}
	meta := tx.World().Metaclass(tx, c.Class)
	for _, hook := range []string{"__setattr__", "__delattr__"} {
		d, _ := s.TypeLookup(meta, hook)
		own, _ := s.TypeLookup(w.TypeType, hook)
		if d != own {
			return unsupported(exc.StoreUnsupported, "attribute %s of class %s", name, py.TypeName(c.Class))
		}
	}
	_, inMeta := s.TypeLookup(meta, name)
	if !py.Is(c.Class, py.Mutable) || inMeta || len(name) > 4 && name[:2] == "__" && name[len(name)-2:] == "__" {
		return unsupported(exc.StoreUnsupported, "attribute %s of class %s", name, py.TypeName(c.Class))
	}
	if d, ok := heldByClass(tx, c.Class, name); ok {
		get, data := isDescriptor(tx, d)
		if get || data || !EndsAlone(d) && !w.IsTensor(d) {
			return unsupported(exc.StoreUnsupported, "attribute %s of class %s, which is a %s", name,
				py.TypeName(c.Class), py.TypeName(d.Type()))
		}
	}
	stored := w.classAttrs[c.Class]
	if value == nil {
		if _, ours := stored[name]; !ours {
			return unsupported(exc.StoreUnsupported, "del of attribute %s of class %s", name, py.TypeName(c.Class))
		}
		if _, held := heldByClass(tx, c.Class, name); held {
			return unsupported(exc.StoreUnsupported, "del of attribute %s of class %s", name, py.TypeName(c.Class))
		}
		delete(stored, name)
		return tx.Output().Effect(tx, []VariableTracker{c}, func(e Emitter) error {
			if err := e.Load(c); err != nil {
				return err
			}
			e.DeleteAttr(name)
			return nil
		})
	}
	if stored == nil {
		stored = map[string]VariableTracker{}
		w.classAttrs[c.Class] = stored
	}
	stored[name] = value
	w.Stored(value)
	return tx.Output().Effect(tx, []VariableTracker{value, c}, func(e Emitter) error {
		if err := e.Load(value); err != nil {
			return err
		}
		if err := e.Load(c); err != nil {
			return err
		}
		e.StoreAttr(name)
		return nil
	})
}

// UnboundMethod is a method written in C that was read from its class (list.append, object.__init__, Tensor.add).
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
	if added, err := u.addsUnseen(tx, args, kwargs); added || err != nil {
		return NoneConst(), err
	}
	if len(args) == 0 {
		return nil, unsupported(exc.CallUnsupported, "unbound %s", u.name)
	}
	self, err := Realize(tx, args[0])
	if err != nil {
		return nil, err
	}
	owner, err := tx.Scope().GetAttr(u.descr, "__objclass__")
	if err != nil {
		return nil, observed(err)
	}
	// CPython's error contains the owner's name
	if t, err := PythonType(tx, self); err != nil || !py.IsSubtype(t, owner) {
		return nil, unsupported(exc.CallUnsupported, "%s of %s", u.name, Describe(tx, self))
	}
	if r, ok, err := callStandIn(tx, u.descr, args, kwargs); ok || err != nil {
		return r, err
	}
	name, err := tx.Scope().GetAttr(u.descr, "__name__") // the class may store the method under another name
	if err != nil {
		return nil, observed(err)
	}
	return ownersMethod(tx, self, owner, py.GoString(name), args[1:], kwargs)
}

// dictReads are methods of dict that neither change an OrderedDict nor depend on its order.
var dictReads = map[string]bool{"__getitem__": true, "__contains__": true, "__len__": true, "get": true,
	"__init__": true}

// ownersMethod calls, on self, a C method of the class `owner`, even if self's class overrides it.
func ownersMethod(tx Translator, self VariableTracker, owner py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if d, ok := valueOf(self).(*DictVariable); ok && owner == tx.World().DictType && d.isOrdered(tx) &&
		!dictReads[name] {
		return nil, unsupported(exc.CallUnsupported, "dict.%s of an OrderedDict", name) // would corrupt its order
	}
	t, err := PythonType(tx, self)
	if err != nil {
		return nil, err
	}
	if !py.IsSubtype(t, owner) {
		return nil, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, self))
	}
	switch o := self.(type) {
	case *ObjectVariable:
		if owner == tx.World().ObjectType && (o.value != nil || o.exc != nil) {
			switch name {
			case "__init__", "__setattr__", "__delattr__", "__getattribute__", "__init_subclass__":
			default: // the builtin type has its own method of that name
				return nil, unsupported(exc.CallUnsupported, "object.%s of %s", name, Describe(tx, self))
			}
		}
		if owner != tx.World().ObjectType && o.value != nil && o.exc == nil {
			return o.builtinMethod(tx, name, args, kwargs)
		}
		if owner != tx.World().ObjectType && o.value == nil && o.exc == nil {
			if d, ok := tx.Scope().TypeLookup(owner, name); ok {
				if r, ok, err := callStandIn(tx, d, append([]VariableTracker{o}, args...), kwargs); ok || err != nil {
					return r, err
				}
				if !tx.World().IsObjectMethod(tx.Scope(), name, d) { // for example weakref.ref.__ne__
					return nil, unsupported(exc.CallUnsupported, "%s.%s", py.TypeName(owner), name)
				}
			}
		}
		return objectMethod(tx, o, name, args, kwargs)
	case *TensorVariable:
		if owner == tx.World().ObjectType && name == "__init__" && len(args)+len(kwargs) == 0 {
			return NoneConst(), nil
		}
		if !py.IsSubtype(o.class(tx), owner) || owner == tx.World().ObjectType {
			return nil, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, self))
		}
		return o.torchMethod(tx, name, args, kwargs)
	case *ClassVariable:
		if owner == tx.World().TypeType && name == "__call__" {
			return o.construct(tx, args, kwargs)
		}
		return nil, unsupported(exc.CallUnsupported, "%s of class %s", name, py.TypeName(o.Class))
	}
	theirs, _ := tx.Scope().TypeLookup(owner, name)
	if own, _ := tx.Scope().TypeLookup(t, name); own != theirs { // for example object.__repr__(range(3))
		return nil, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, self))
	}
	r, err := CallMethod(tx, self, name, args, kwargs)
	// the error's text may name the class that owns the method
	if e, ok := err.(*exc.Observed); ok && e.TypeName == "TypeError" {
		return nil, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, self))
	}
	return r, err
}

// objectMethod calls a method of `object` on an instance of a Python class (super().__init__(), object.__setattr__).
func objectMethod(tx Translator, o *ObjectVariable, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if o.exc != nil {
		return exceptionMethod(tx, o, name, args, kwargs)
	}
	switch name {
	case "__init__":
		if len(args)+len(kwargs) > 0 {
			if err := objectTakesNone(tx, o.Class, name); err != nil {
				return nil, err
			}
		}
		return NoneConst(), nil
	case "__init_subclass__":
		if len(args)+len(kwargs) == 0 {
			return NoneConst(), nil
		}
	case "__getattribute__":
		if n, ok := ConstStr(tx, MustRealize(tx, arg(args, 0))); ok && len(args) == 1 {
			return o.plainAttr(tx, n)
		}
	}
	if len(kwargs) == 0 {
		if v, ok, err := o.objectSlot(tx, name, args); ok || err != nil {
			return v, err
		}
	}
	return nil, unsupported(exc.CallUnsupported, "object.%s", name)
}

// plainAttr implements object.__getattribute__(o, name).
func (o *ObjectVariable) plainAttr(tx Translator, name string) (VariableTracker, error) {
	v, err := o.lookup(tx, name)
	if err == nil && v == nil {
		o.guardMissing(tx, name)
		err = noAttribute(tx, o.Class, name)
	}
	return v, err
}

// objectSlot calls a special method that `object` defines. It returns false if it does not implement `name`.
func (o *ObjectVariable) objectSlot(tx Translator, name string, args []VariableTracker) (VariableTracker, bool, error) {
	attr, _ := ConstStr(tx, MustRealize(tx, arg(args, 0)))
	switch {
	case name == "__setattr__" && len(args) == 2 && attr != "":
		return NoneConst(), true, o.setGeneric(tx, attr, args[1], false)
	case name == "__delattr__" && len(args) == 1 && attr != "":
		return NoneConst(), true, o.setGeneric(tx, attr, nil, false)
	case (name == "__eq__" || name == "__ne__") && len(args) == 1:
		same, err := Is(tx, o, args[0])
		if err != nil {
			return nil, true, err
		}
		if name == "__eq__" && !same || name == "__ne__" && !same {
			return notImplemented(tx), true, nil
		}
		return BoolConst(name == "__eq__"), true, nil
	case name == "__str__" && len(args) == 0:
		text, err := reprText(tx, o)
		return NewConstant(tx.Scope().Str(text), nil), true, err
	case name == "__format__" && len(args) == 1:
		text, err := strText(tx, o)
		return NewConstant(tx.Scope().Str(text), nil), true, err
	}
	return nil, false, nil
}

// ModuleVariable is a Python module.
type ModuleVariable struct {
	Base
	Module py.Object
}

// NewModule returns the tracker of a module that the caller has guarded by identity.
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

// dynamicAttr returns an attribute that the module computes, by a module-level __getattr__ (PEP 562) or by a descriptor
// of its class. It reads only modules of torch. It guards attributes that can change, such as flags; all others are
// taken to be constant.
func (m *ModuleVariable) dynamicAttr(tx Translator, name string) (VariableTracker, error) {
	s := tx.Scope()
	module, _ := s.InstanceAttr(m.Module, "__name__")
	if n := py.GoString(module); n != "torch" && !strings.HasPrefix(n, "torch.") {
		return nil, unsupported(exc.AttrUnsupported, "%s of module %s", name, n)
	}
	r, err := s.Call(tx.World().computedAttribute, m.Module, s.Name(name))
	if err != nil {
		return nil, observed(err)
	}
	v, holds := s.Items(r)[0], s.Items(r)[1]
	if holds != pyNone {
		src := guards.NewConstSource(tx.Output().Const(m.Module), "___module")
		tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(holds), name+" is "+s.Repr(v)))
		return NewConstant(v, nil), nil
	}
	return tx.Build(v, guards.NewConstSource(tx.Output().Const(v), "___"+name)), nil
}

// SetAttr implements AttrSetter.
func (m *ModuleVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	return unsupported(exc.StoreUnsupported, "attribute of a module")
}
