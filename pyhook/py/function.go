package py

// #include <stdlib.h>
// #include "helpers.h"
import "C"

import "unsafe"

// Fields of a function object, in helpers.c's order.
const (
	FuncCode = iota
	FuncGlobals
	FuncClosure
	FuncDefaults
	FuncKwDefaults
	FuncModule
	FuncQualName
	FuncName
)

// FunctionField reads a field of an exact function; false when it is NULL.
func (s *Scope) FunctionField(f Object, field int) (Object, bool) {
	v := s.take(C.gdpy_function_field(f.c(), C.int(field)))
	return v, !v.IsNull()
}

// MethodParts returns __func__ and __self__ of a bound method.
func (s *Scope) MethodParts(m Object) (fn, self Object) {
	return s.take(C.gdpy_method_field(m.c(), 0)), s.take(C.gdpy_method_field(m.c(), 1))
}

// NewFunction makes a function over code, globals and a dict of builtins; closure is a tuple of cells or the zero Object.
func (s *Scope) NewFunction(code, globals, builtins, closure Object, name, qualname string, module Object) (Object, error) {
	n, q := C.CString(name), C.CString(qualname)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(q))
	return s.result(C.gdpy_function(code.c(), globals.c(), builtins.c(), closure.c(), n, q, module.c()))
}

// NewCell makes a cell that holds v.
func (s *Scope) NewCell(v Object) Object { return s.made(wrapC(C.gdpy_cell(v.c()))) }

// CellContents returns what a cell holds; false when it is empty.
func (s *Scope) CellContents(c Object) (Object, bool) {
	v := s.take(C.gdpy_cell_get(c.c()))
	return v, !v.IsNull()
}

// MemberValue reads a member that __slots__ or C has made: its value and byte offset; false when it is unset or no object.
func (s *Scope) MemberValue(descr, o Object) (v Object, offset int, ok bool) {
	var off C.Py_ssize_t
	v = s.take(C.gdpy_member_value(descr.c(), o.c(), &off))
	return v, int(off), !v.IsNull()
}

// MemberIsSlot tells a member that __slots__ makes from one of C's, which may be read-only or of another kind.
func MemberIsSlot(descr Object) bool { return C.gdpy_member_is_slot(descr.c()) != 0 }

// Descriptor tells whether type(o) has __get__, and whether it has __set__ or __delete__ (a data descriptor).
func Descriptor(o Object) (get, data bool) {
	r := int(C.gdpy_is_descriptor(o.c()))
	return r&1 != 0, r&2 != 0
}

// IsNative reports whether descr, which class typ has under a name, is the C method, class method or slot that typ's own builtin base
// has under it. A C method taken from another class (C.__len__ = list.__len__) refuses typ's instances.
func IsNative(typ Object, name string, descr Object) bool {
	return C.gdpy_is_native(typ.c(), (*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.Py_ssize_t(len(name)), descr.c()) != 0
}

// IsOwnField is IsNative for members and for what C computes (the descriptors of slots, __dict__, args): one from another class refuses
// typ's instances, and one under another name is a second name for the same place.
func IsOwnField(typ Object, name string, descr Object) bool {
	return C.gdpy_is_own_field(typ.c(), (*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.Py_ssize_t(len(name)), descr.c()) != 0
}

// IsGeneratorCode tells code of generators, coroutines and async generators.
func IsGeneratorCode(code Object) bool { return C.gdpy_is_coroutine_code(code.c()) != 0 }

// TypeFact is a property of a type object's slots.
type TypeFact int

// The facts gdpy_type_flags tells.
const (
	GenericGetAttr TypeFact = iota
	GenericSetAttr
	HeapType
	HasIterNext
	HasCall
	IdentityHash
	IdentityCompare
	PlainMetaGetAttr
	// MatchesSequence, MatchesMapping and MatchesSelf are what match statements ask of a type: sequence and mapping patterns, and the
	// classes whose one positional pattern is the subject itself.
	MatchesSequence
	MatchesMapping
	MatchesSelf
	HasIter
	// ObjectNew and ObjectInit: the slot behind __new__ or __init__ is object's.
	ObjectNew
	ObjectInit
	// WrapsGenericGetAttr: __getattribute__ is object's, or a wrapper of the same C function. threading.local's is another.
	WrapsGenericGetAttr
	// IsAbstract: object.__new__ makes no instance of the class.
	IsAbstract
	// HasSubscript: the type has the slot of a mapping's subscription, for which PyMapping_Check looks.
	HasSubscript
)

// Is tells a fact of a type.
func Is(typ Object, fact TypeFact) bool { return C.gdpy_type_flags(typ.c(), C.int(fact)) != 0 }
