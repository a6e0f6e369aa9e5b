package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// SuperVariable is the super object that super(cls, self) returns.
type SuperVariable struct {
	Base
	cls, self VariableTracker
}

// newSuper implements super(cls, self), as super_init_impl and supercheck of CPython 3.11 do (Objects/typeobject.c).
func newSuper(tx Translator, cls, self VariableTracker) (VariableTracker, error) {
	cls, err := Realize(tx, cls)
	if err != nil {
		return nil, err
	}
	if self, err = Realize(tx, self); err != nil {
		return nil, err
	}
	c, ok := AsConstant(tx, cls)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "super(%s, ...)", Describe(tx, cls))
	}
	if !py.IsSubtype(c.Type(), tx.World().TypeType) {
		return nil, typeError(tx, "super() argument 1 must be a type, not \x00", cls)
	}
	if k, ok := self.(*ClassVariable); ok && py.IsSubtype(k.Class, c) {
		return &SuperVariable{cls: cls, self: self}, nil
	}
	class, err := PythonType(tx, self)
	if err != nil {
		return nil, err
	}
	tx.World().RestsOnBases(tx, class)
	if py.IsSubtype(class, c) {
		return &SuperVariable{cls: cls, self: self}, nil
	}
	claims, err := saysItIs(tx, self, class, c)
	if err != nil {
		return nil, err
	}
	if yes, _ := Truth(tx, claims); yes || class == py.None().Type() { // super(cls, None) is an unbound super object
		return nil, unsupported(exc.CallUnsupported, "super(%s, %s)", Describe(tx, cls), Describe(tx, self))
	}
	return nil, notSuper(tx, c, self, class)
}

// notSuper returns the TypeError of super(cls, self), where self is of another class.
func notSuper(tx Translator, cls py.Object, self VariableTracker, class py.Object) error {
	k, isClass := self.(*ClassVariable)
	if isClass {
		class = k.Class
	}
	return raiseWords(tx, "TypeError", tx.World().notSuper, cls, class, py.Bool(isClass))
}

// Kind implements VariableTracker.
func (*SuperVariable) Kind() string { return "SuperVariable" }

// Children implements Container.
func (s *SuperVariable) Children() []VariableTracker { return []VariableTracker{s.cls, s.self} }

// GetAttr implements AttrGetter. It returns the next definition of the name along type(self).__mro__ after cls.
func (s *SuperVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	from, err := s.origin(tx)
	if err != nil {
		return nil, err
	}
	sc, w := tx.Scope(), tx.World()
	mro, err := sc.GetAttr(from.class, "__mro__")
	if err != nil {
		return nil, observed(err)
	}
	if mro.Kind() != py.Tuple {
		return nil, unsupported(exc.AttrUnsupported, "%s of super() of a class under construction", name)
	}
	w.RestsOnBases(tx, from.class)
	after := false
	for i, k := range sc.Items(mro) {
		if !after {
			after = k == from.behind
			continue
		}
		if _, ok := w.classAttrs[k][name]; ok {
			return nil, unsupported(exc.AttrUnsupported, "%s of super(), which was just stored on class %s", name,
				py.TypeName(k))
		}
		dict, err := sc.GetAttr(k, "__dict__")
		if err != nil {
			return nil, observed(err)
		}
		d, err := sc.CallMethod(dict, "get", sc.Name(name), w.Missing)
		if err != nil {
			return nil, observed(err)
		}
		if d == w.Missing {
			w.lacks(tx, k, name)
			continue
		}
		return from.bind(tx, i, k, name, d)
	}
	if _, own := sc.TypeLookup(w.Builtin("super"), name); own {
		return nil, unsupported(exc.AttrUnsupported, "%s of the super object itself", name)
	}
	return nil, &exc.Observed{TypeName: "AttributeError", Text: "'super' object has no attribute '" + name + "'"}
}

// superOrigin says where a super object looks up names: in the classes of class.__mro__ that follow `behind`.
type superOrigin struct {
	self    VariableTracker
	class   py.Object
	behind  py.Object
	ofClass bool // whether self is the class itself, not an instance
}

func (s *SuperVariable) origin(tx Translator) (*superOrigin, error) {
	cls, err := Realize(tx, s.cls)
	if err != nil {
		return nil, err
	}
	self, err := Realize(tx, s.self)
	if err != nil {
		return nil, err
	}
	c, ok := AsConstant(tx, cls)
	if k := c.Kind(); !ok || (k != py.TypeKind && k != py.TypeSub) {
		return nil, unsupported(exc.AttrUnsupported, "super() of %s", Describe(tx, cls))
	}
	class, err := PythonType(tx, self)
	if err != nil {
		return nil, err
	}
	if k, ok := self.(*ClassVariable); ok && py.IsSubtype(k.Class, c) {
		return &superOrigin{self, k.Class, c, true}, nil
	}
	return &superOrigin{self, class, c, false}, nil
}

// bind binds d to self, as super() does. d is the attribute `name` of owner, the i-th class of the __mro__.
func (o *superOrigin) bind(tx Translator, i int, owner py.Object, name string, d py.Object) (VariableTracker, error) {
	switch d.Kind() {
	case py.WrapperDescr, py.MethodDescr:
		if !py.IsNative(owner, name, d) {
			return nil, unsupported(exc.AttrUnsupported, "%s of super(), a C method of another class", name)
		}
		if o.ofClass {
			return &UnboundMethod{class: NewClass(owner, nil), name: name, descr: d}, nil
		}
		return &boundDescriptor{self: o.self, owner: owner, name: name, descr: d}, nil
	case py.Builtin: // __new__ is the only method of this kind
		return wrapKnown(tx, d), nil
	case py.ClassMethodDescr:
		// the user's class overrides this class method
		if own, _ := tx.Scope().TypeLookup(o.class, name); own != d {
			return nil, unsupported(exc.AttrUnsupported, "%s of super()", name)
		}
		return &boundClassMethod{class: NewClass(o.class, nil), name: name}, nil
	}
	src := guards.NewMroSource(classSource(tx, o.class), i, name)
	if o.ofClass {
		if d.Kind() == py.Function {
			return tx.Build(d, src), nil
		}
		if d.Kind() != py.ClassMethod && d.Kind() != py.StaticMethod {
			return nil, unsupported(exc.AttrUnsupported, "%s of super() of a class", name)
		}
	}
	return bindClassAttr(tx, o.self, o.class, name, d, src)
}

// boundDescriptor is a C method of a base class, bound by super().
type boundDescriptor struct {
	Base
	self  VariableTracker
	owner py.Object
	name  string
	descr py.Object // the attribute of owner
}

// Kind implements VariableTracker.
func (*boundDescriptor) Kind() string { return "MethodWrapperVariable" }

// Children implements Container.
func (b *boundDescriptor) Children() []VariableTracker { return []VariableTracker{b.self} }

// Reconstruct implements Reconstructer. It binds the method again, as each access through super() does.
func (b *boundDescriptor) Reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(b.descr)
	e.LoadAttr("__get__")
	if err := e.Load(b.self); err != nil {
		return err
	}
	e.Call(1, nil)
	return nil
}

// Call implements Caller.
func (b *boundDescriptor) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return ownersMethod(tx, b.self, b.owner, b.name, args, kwargs)
}

// boundClassMethod is a class method written in C that is bound to a class (dict.fromkeys).
type boundClassMethod struct {
	Base
	class *ClassVariable
	name  string
}

// Kind implements VariableTracker.
func (*boundClassMethod) Kind() string { return "ClassMethodVariable" }

// Call implements Caller.
func (b *boundClassMethod) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w := tx.World()
	if b.name == "fromkeys" && len(kwargs) == 0 && (len(args) == 1 || len(args) == 2) {
		switch b.class.Class {
		case w.DictType:
			return fromKeys(tx, py.Object{}, args)
		case w.OrderedDictType, w.DefaultDictType:
			return fromKeys(tx, b.class.Class, args)
		}
	}
	m, err := tx.Scope().GetAttr(b.class.Class, b.name)
	if err != nil {
		return nil, observed(err)
	}
	pure, err := w.IsPure(tx.Scope(), m)
	if err != nil {
		return nil, err
	}
	if !pure {
		return nil, unsupported(exc.CallUnsupported, "%s.%s", py.TypeName(b.class.Class), b.name)
	}
	return foldCall(tx, m, args, kwargs)
}

// Reconstruct implements Reconstructer.
func (b *boundClassMethod) Reconstruct(e Emitter) error {
	e.LoadConst(b.class.Class)
	e.LoadAttr(b.name)
	return nil
}
