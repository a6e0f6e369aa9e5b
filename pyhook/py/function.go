package py

// #include <stdlib.h>
// #include "helpers.h"
import "C"

import "unsafe"

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
