package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// descriptorOf returns the tracker of a descriptor whose class is written in Python. It returns false for C
// descriptors.
func descriptorOf(tx Translator, d py.Object, src guards.Source) (*ObjectVariable, bool, error) {
	v, err := Realize(tx, tx.Build(d, src))
	if err != nil {
		return nil, false, err
	}
	o, ok := v.(*ObjectVariable)
	return o, ok, nil
}

// userDescriptor reads an attribute through a descriptor whose __get__ is Python code.
func userDescriptor(tx Translator, self VariableTracker, class py.Object, name string, d py.Object,
	src guards.Source) (VariableTracker, error) {
	if d.Type() == tx.World().CachedPropertyType {
		if o, ok := self.(*ObjectVariable); ok {
			return cachedProperty(tx, o, name, d, src)
		}
	}
	if inheritsProperty(tx, d, "__get__") {
		if self == nil {
			return tx.Build(d, src), nil
		}
		if v, ok, err := getProperty(tx, self, d, src); ok || err != nil {
			return v, err
		}
	}
	get, ok := tx.Scope().TypeLookup(d.Type(), "__get__")
	if !ok || get.Kind() != py.Function {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s: descriptor %s", name, py.TypeName(class),
			py.TypeName(d.Type()))
	}
	o, ok, err := descriptorOf(tx, d, src)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s: descriptor %s", name, py.TypeName(class),
			py.TypeName(d.Type()))
	}
	m, err := o.lookupSpecial(tx, "__get__")
	if err != nil {
		return nil, err
	}
	if self == nil {
		self = NoneConst()
	}
	return Call(tx, m, []VariableTracker{self, NewClass(class, nil)}, nil)
}

// inheritsProperty reports whether d is of a subclass of property that does not override this method of a descriptor.
func inheritsProperty(tx Translator, d py.Object, method string) bool {
	property := tx.World().Builtin("property")
	return py.IsSubtype(d.Type(), property) && inherits(tx, d.Type(), property, method)
}

// cachedProperty runs functools.cached_property.__get__ for an instance without a cached value. It stores the
// function's result in the instance's dict.
func cachedProperty(tx Translator, o *ObjectVariable, name string, d py.Object,
	src guards.Source) (VariableTracker, error) {
	s := tx.Scope()
	fn, err := s.GetAttr(d, "func")
	if err != nil {
		return nil, observed(err)
	}
	attr, err := s.GetAttr(d, "attrname")
	if err != nil {
		return nil, observed(err)
	}
	if fn.Kind() != py.Function || attr.Kind() != py.Str || py.GoString(attr) != name || o.exc != nil {
		return nil, unsupported(exc.AttrUnsupported, "%s of a %s: cached_property", name, py.TypeName(o.Class))
	}
	out := tx.Output()
	out.AddGuards(guards.TypeMatch(src, out.Const(d.Type())))
	out.AddGuards(guards.EqualsMatch(guards.NewAttrSource(src, "attrname"), out.Const(attr.Type()), out.Const(attr))...)
	v, err := Call(tx, tx.Build(fn, guards.NewAttrSource(src, "func")), []VariableTracker{o}, nil)
	if err != nil {
		return nil, err
	}
	return v, o.setGeneric(tx, name, v, false)
}

// setProperty runs a property's setter or deleter.
func (o *ObjectVariable) setProperty(tx Translator, name string, d py.Object, value VariableTracker) error {
	part, args := "fset", []VariableTracker{o, value}
	if value == nil {
		part, args = "fdel", args[:1]
	}
	src := guards.NewTypeAttrSource(classSource(tx, o.Class), name)
	fn, from, err := unwrap(tx, d, src, part)
	if err != nil {
		return err
	}
	if fn.IsNull() || fn.Kind() == py.NoneKind {
		tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepWeak))
		return o.refusedBy(tx, d, value != nil)
	}
	if fn.Kind() != py.Function {
		return unsupported(exc.StoreUnsupported, "%s of a %s: property", name, py.TypeName(o.Class))
	}
	_, err = Call(tx, tx.Build(fn, from), args, nil)
	return err
}

// refusedBy returns the AttributeError of a property without a setter or deleter. CPython's message contains the name
// under which the property was made, and the qualified name of the class. To find the message, refusedBy lets CPython
// raise it for another object and replaces the name of that object's class.
func (o *ObjectVariable) refusedBy(tx Translator, d py.Object, set bool) error {
	s := tx.Scope()
	if opaqueClass(tx, o.Class) {
		return unsupported(exc.AttrUnsupported, "a property of %s, whose metaclass overrides this",
			py.TypeName(o.Class))
	}
	name, err := s.GetAttr(o.Class, "__qualname__")
	if err != nil {
		return observed(err)
	}
	if err := tx.World().fact(tx, o.Class, "__qualname__", name); err != nil {
		return err
	}
	method, args := "__set__", []py.Object{pyNone, pyNone}
	if !set {
		method, args = "__delete__", args[:1]
	}
	_, err = s.CallMethod(d, method, args...)
	e, ok := err.(*py.Error)
	if !ok || py.TypeName(e.Type) != "AttributeError" {
		return unsupported(exc.StoreUnsupported, "%s of a property that rejects it", method)
	}
	return RaiseText(tx, "AttributeError", strings.Replace(e.Text, "'NoneType' object", s.Repr(name)+" object", 1))
}

// setUserDescriptor calls __set__ or __delete__ of a descriptor written in Python.
func (o *ObjectVariable) setUserDescriptor(tx Translator, name string, d py.Object, value VariableTracker) error {
	method, args := "__set__", []VariableTracker{o, value}
	if value == nil {
		method, args = "__delete__", args[:1]
	}
	if inheritsProperty(tx, d, method) {
		return o.setProperty(tx, name, d, value)
	}
	fn, ok := tx.Scope().TypeLookup(d.Type(), method)
	if ok && fn.Kind() == py.Function {
		v, ok, err := descriptorOf(tx, d, guards.NewTypeAttrSource(classSource(tx, o.Class), name))
		if err != nil {
			return err
		}
		if ok {
			m, err := v.lookupSpecial(tx, method)
			if err != nil {
				return err
			}
			_, err = Call(tx, m, args, nil)
			return err
		}
	}
	return unsupported(exc.StoreUnsupported, "%s of a %s: %s", name, py.TypeName(o.Class), py.TypeName(d.Type()))
}

// storedClassAttr returns the attribute that the program stored on a class or on one of its bases. Such an attribute
// hides the real class's attribute.
func storedClassAttr(tx Translator, class py.Object, name string) (VariableTracker, bool) {
	stored := tx.World().classAttrs
	if len(stored) == 0 {
		return nil, false
	}
	s := tx.Scope()
	held := s.MroIndex(class, name)
	for i, k := range s.Mro(class) {
		if v, ok := stored[k][name]; ok {
			return v, true
		}
		if i == held {
			return nil, false
		}
	}
	return nil, false
}

// heldByClass looks up a name on a class. It does the same as TypeLookup, for a caller that also calls storedClassAttr.
func heldByClass(tx Translator, class py.Object, name string) (py.Object, bool) {
	w := tx.World()
	before := w.overlooked
	d, ok := tx.Scope().TypeLookup(class, name)
	w.overlooked = before
	return d, ok
}

// bindStored binds a class attribute that the program has stored.
func bindStored(tx Translator, self, v VariableTracker) (VariableTracker, error) {
	switch x := MustRealize(tx, v).(type) {
	case *FunctionVariable:
		if self != nil {
			return NewMethod(x, self, nil), nil
		}
		return x, nil
	case *ConstantVariable, *TensorVariable, *ListVariable, *TupleVariable, *DictVariable, *SetVariable, *DequeVariable,
		*ShadowVariable, *ClassVariable:
		return v, nil
	case *ObjectVariable:
		if _, ok := tx.Scope().TypeLookup(x.Class, "__get__"); !ok {
			return v, nil
		}
	}
	return nil, unsupported(exc.AttrUnsupported, "class attribute %s", Describe(tx, v))
}
