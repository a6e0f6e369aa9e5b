package guards

import "strconv"

// AttrSource is an attribute stored by an instance itself, in its inline values or its __dict__. Descriptors,
// properties and __getattr__ are ignored; the translator has guarded that the class has none.
type AttrSource struct {
	origin
	Attr    string
	shadows bool
}

// NewAttrSource returns the source of the instance attribute base.name.
func NewAttrSource(base Source, name string) *AttrSource { return newAttrSource(base, name, false) }

// NewShadowingAttrSource returns the source of the instance attribute base.name if the class has an attribute of that
// name as well. The text names the instance's storage explicitly: once the instance's attribute is deleted, base.name
// would find the class's.
func NewShadowingAttrSource(base Source, name string) *AttrSource {
	return newAttrSource(base, name, true)
}

func newAttrSource(base Source, name string, shadows bool) *AttrSource {
	s := &AttrSource{from(base), name, shadows}
	s.name = s.text(nil)
	return s
}

func (s *AttrSource) text(p *printer) string {
	if s.shadows {
		return instanceAttr(s.base, s.Attr, p)
	}
	return member(s.base, s.Attr, p)
}

// ModuleAttrSource is a variable of a Python module object.
type ModuleAttrSource struct {
	origin
	Attr string
}

// NewModuleAttrSource returns the source of base.name in the module's dict. A module's __getattr__ is not
// called.
func NewModuleAttrSource(base Source, name string) *ModuleAttrSource {
	s := &ModuleAttrSource{from(base), name}
	s.name = s.text(nil)
	return s
}

func (s *ModuleAttrSource) text(p *printer) string { return member(s.base, s.Attr, p) }

// SlotSource is a member defined by __slots__ or by C code.
type SlotSource struct {
	origin
	Attr   string
	Offset int // offset in bytes; checked against the class's member descriptor before each read
	raw    bool
}

// NewSlotSource returns the source of base.name, stored at the byte offset.
func NewSlotSource(base Source, name string, offset int) *SlotSource {
	return newSlotSource(base, name, offset, false)
}

// NewRawSlotSource does the same as NewSlotSource for a class with its own __getattribute__. The guard text
// does not call that method.
func NewRawSlotSource(base Source, name string, offset int) *SlotSource {
	return newSlotSource(base, name, offset, true)
}

func newSlotSource(base Source, name string, offset int, raw bool) *SlotSource {
	s := &SlotSource{from(base), name, offset, raw}
	s.name = s.text(nil)
	return s
}

func (s *SlotSource) text(p *printer) string {
	if s.raw {
		b := printed(s.base, p)
		return "___type_lookup(type(" + b + "), " + quote(s.Attr) + ").__get__(" + b + ")"
	}
	return member(s.base, s.Attr, p)
}

// InstanceDictSource is the __dict__ of an instance. Reading it creates the dict, as in CPython.
type InstanceDictSource struct{ origin }

// NewInstanceDictSource returns the source of base.__dict__.
func NewInstanceDictSource(base Source) *InstanceDictSource {
	s := &InstanceDictSource{from(base)}
	s.name = s.text(nil)
	return s
}

func (s *InstanceDictSource) text(p *printer) string {
	return "___instance_dict(" + printed(s.base, p) + ")"
}

// TypeSource is the type of a value.
type TypeSource struct{ origin }

// NewTypeSource returns the source of type(base).
func NewTypeSource(base Source) *TypeSource {
	s := &TypeSource{from(base)}
	s.name = s.text(nil)
	return s
}

func (s *TypeSource) text(p *printer) string { return "type(" + printed(s.base, p) + ")" }

// TypeAttrSource is the raw result of looking up a name in a type's MRO: functions are not bound, and
// descriptors are not called.
type TypeAttrSource struct {
	origin
	Attr string
}

// NewTypeAttrSource returns the source of the look-up of name in the type at base.
func NewTypeAttrSource(base Source, name string) *TypeAttrSource {
	s := &TypeAttrSource{from(base), name}
	s.name = s.text(nil)
	return s
}

func (s *TypeAttrSource) text(p *printer) string {
	return "___type_lookup(" + printed(s.base, p) + ", " + quote(s.Attr) + ")"
}

// MroSource is an item in the __dict__ of one class of a type's MRO.
type MroSource struct {
	origin
	Index int
	Attr  string
}

// NewMroSource returns the source of base.__mro__[i].__dict__[name].
func NewMroSource(base Source, i int, name string) *MroSource {
	s := &MroSource{from(base), i, name}
	s.name = s.text(nil)
	return s
}

func (s *MroSource) text(p *printer) string {
	return printed(s.base, p) + ".__mro__[" + strconv.Itoa(s.Index) + "].__dict__[" + quote(s.Attr) + "]"
}

// MroClassSource is a class of a type's MRO.
type MroClassSource struct {
	origin
	Index int
}

// NewMroClassSource returns the source of base.__mro__[i]. The metaclass is not consulted.
func NewMroClassSource(base Source, i int) *MroClassSource {
	s := &MroClassSource{from(base), i}
	s.name = s.text(nil)
	return s
}

func (s *MroClassSource) text(p *printer) string {
	return "___mro_class(" + printed(s.base, p) + ", " + strconv.Itoa(s.Index) + ")"
}

// FuncField is a field of a function, method or exception object: a row of kinds.table. If __defaults__,
// __kwdefaults__, __closure__, __doc__, __module__ or a field of an exception is missing, it reads as None.
type FuncField int

// String returns the attribute's name.
func (f FuncField) String() string {
	if f < 0 || f >= numFuncFields {
		return "unknown"
	}
	return funcFieldNames[f]
}

// FunctionFieldSource is a field of a function, bound method or exception, read from the object's struct.
type FunctionFieldSource struct {
	origin
	Field FuncField
}

// NewFunctionFieldSource returns the source of a field of the object at base.
func NewFunctionFieldSource(base Source, field FuncField) *FunctionFieldSource {
	s := &FunctionFieldSource{from(base), field}
	s.name = s.text(nil)
	return s
}

func (s *FunctionFieldSource) text(p *printer) string { return member(s.base, s.Field.String(), p) }
