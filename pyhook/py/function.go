package py

// #include <stdlib.h>
// #include "helpers.h"
import "C"

import "unsafe"

// FunctionPart is a field of a function object.
type FunctionPart int

// The fields that FunctionField reads.
const (
	FuncCode       FunctionPart = C.GDPY_FUNC_CODE
	FuncGlobals    FunctionPart = C.GDPY_FUNC_GLOBALS
	FuncClosure    FunctionPart = C.GDPY_FUNC_CLOSURE
	FuncDefaults   FunctionPart = C.GDPY_FUNC_DEFAULTS
	FuncKwDefaults FunctionPart = C.GDPY_FUNC_KWDEFAULTS
	FuncModule     FunctionPart = C.GDPY_FUNC_MODULE
	FuncQualName   FunctionPart = C.GDPY_FUNC_QUALNAME
	FuncName       FunctionPart = C.GDPY_FUNC_NAME
)

// FunctionField reads a field of an exact function. It returns false if the field is NULL.
func (s *Scope) FunctionField(f Object, field FunctionPart) (Object, bool) {
	v := s.take(C.gdpy_function_field(f.c(), C.int(field)))
	return v, !v.IsNull()
}

// MethodParts returns __func__ and __self__ of a bound method.
func (s *Scope) MethodParts(m Object) (fn, self Object) {
	return s.take(C.gdpy_method_field(m.c(), C.GDPY_METHOD_FUNC)),
		s.take(C.gdpy_method_field(m.c(), C.GDPY_METHOD_SELF))
}

// NewFunction makes a function from code, globals and a dict of builtins; closure is a tuple of cells or
// the zero Object.
func (s *Scope) NewFunction(code, globals, builtins, closure Object, name, qualname string,
	module Object) (Object, error) {
	n, q := C.CString(name), C.CString(qualname)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(q))
	return s.result(C.gdpy_function(code.c(), globals.c(), builtins.c(), closure.c(), n, q, module.c()))
}

// NewCell makes a cell that holds v.
func (s *Scope) NewCell(v Object) Object { return s.made(wrapC(C.gdpy_cell(v.c()))) }

// CellContents returns the contents of a cell, or false if the cell is empty.
func (s *Scope) CellContents(c Object) (Object, bool) {
	v := s.take(C.gdpy_cell_get(c.c()))
	return v, !v.IsNull()
}

// MemberValue reads a member defined by __slots__ or C code, and returns its value and its byte offset. It
// returns false if the member is unset or holds no object.
func (s *Scope) MemberValue(descr, o Object) (v Object, offset int, ok bool) {
	var off C.Py_ssize_t
	v = s.take(C.gdpy_member_value(descr.c(), o.c(), &off))
	return v, int(off), !v.IsNull()
}

// MemberIsSlot reports whether a member was made by __slots__. Other members are defined in C; they may be
// read-only or hold no object.
func MemberIsSlot(descr Object) bool { return C.gdpy_member_is_slot(descr.c()) != 0 }

// Descriptor reports whether type(o) has __get__, and whether it has __set__ or __delete__ (a data descriptor).
func Descriptor(o Object) (get, data bool) {
	r := int(C.gdpy_is_descriptor(o.c()))
	return r&1 != 0, r&2 != 0
}

// IsNative reports whether descr is the C method, class method or slot that typ's own builtin base has under
// `name`. A C method copied from another class (C.__len__ = list.__len__) rejects typ's instances.
func IsNative(typ Object, name string, descr Object) bool {
	return C.gdpy_is_native(typ.c(), (*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.Py_ssize_t(len(name)),
		descr.c()) != 0
}

// IsOwnField does the same as IsNative for members and computed fields, such as the descriptors of slots, of
// __dict__ and of an exception's args. A descriptor copied from another class rejects typ's instances; a
// descriptor found under another name is an alias of the same field.
func IsOwnField(typ Object, name string, descr Object) bool {
	return C.gdpy_is_own_field(typ.c(), (*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.Py_ssize_t(len(name)),
		descr.c()) != 0
}

// IsGeneratorCode reports whether the code is that of a generator, coroutine or async generator.
func IsGeneratorCode(code Object) bool { return C.gdpy_is_coroutine_code(code.c()) != 0 }

// TypeFact is a property of a type object's slots.
type TypeFact int

// The facts that Is checks.
const (
	GenericGetAttr   TypeFact = C.GDPY_TYPE_GENERIC_GETATTR
	GenericSetAttr   TypeFact = C.GDPY_TYPE_GENERIC_SETATTR
	HeapType         TypeFact = C.GDPY_TYPE_HEAP
	HasIterNext      TypeFact = C.GDPY_TYPE_HAS_ITERNEXT
	HasCall          TypeFact = C.GDPY_TYPE_HAS_CALL
	HasIter          TypeFact = C.GDPY_TYPE_HAS_ITER
	IdentityHash     TypeFact = C.GDPY_TYPE_IDENTITY_HASH
	IdentityCompare  TypeFact = C.GDPY_TYPE_IDENTITY_COMPARE
	PlainMetaGetAttr TypeFact = C.GDPY_TYPE_PLAIN_META_GETATTR
	// MatchesSequence, MatchesMapping and MatchesSelf are the flags that match statements read: whether
	// sequence and mapping patterns match, and whether a single positional pattern matches the subject
	// itself.
	MatchesSequence TypeFact = C.GDPY_TYPE_MATCHES_SEQUENCE
	MatchesMapping  TypeFact = C.GDPY_TYPE_MATCHES_MAPPING
	MatchesSelf     TypeFact = C.GDPY_TYPE_MATCHES_SELF
	// ObjectNew and ObjectInit hold if the type uses the slot of object.__new__ or object.__init__.
	ObjectNew  TypeFact = C.GDPY_TYPE_OBJECT_NEW
	ObjectInit TypeFact = C.GDPY_TYPE_OBJECT_INIT
	// WrapsGenericGetAttr holds if __getattribute__ is object.__getattribute__ or a wrapper of the same C
	// function. It does not hold for threading.local.
	WrapsGenericGetAttr TypeFact = C.GDPY_TYPE_WRAPS_GENERIC_GETATTR
	// IsAbstract holds if object.__new__ refuses to create an instance of the class.
	IsAbstract TypeFact = C.GDPY_TYPE_IS_ABSTRACT
	// HasSubscript holds if the type has the slot mp_subscript, which PyMapping_Check tests.
	HasSubscript TypeFact = C.GDPY_TYPE_HAS_SUBSCRIPT
)

// Is reports whether a fact holds for a type.
func Is(typ Object, fact TypeFact) bool { return C.gdpy_type_is(typ.c(), C.int(fact)) != 0 }
