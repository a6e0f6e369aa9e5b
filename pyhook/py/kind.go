package py

// #include "helpers.h"
import "C"

import "unsafe"

// Kind is the exact kind of an object.
type Kind int

// The kinds.
const (
	Null             Kind = C.GDK_NULL
	NoneKind         Kind = C.GDK_NONE
	BoolKind         Kind = C.GDK_BOOL
	Int              Kind = C.GDK_INT
	Float            Kind = C.GDK_FLOAT
	Complex          Kind = C.GDK_COMPLEX
	Str              Kind = C.GDK_STR
	Bytes            Kind = C.GDK_BYTES
	Tuple            Kind = C.GDK_TUPLE
	List             Kind = C.GDK_LIST
	Dict             Kind = C.GDK_DICT
	SetKind          Kind = C.GDK_SET
	FrozenSet        Kind = C.GDK_FROZENSET
	Slice            Kind = C.GDK_SLICE
	Range            Kind = C.GDK_RANGE
	Function         Kind = C.GDK_FUNCTION
	Method           Kind = C.GDK_METHOD
	Builtin          Kind = C.GDK_BUILTIN
	MethodDescr      Kind = C.GDK_METHOD_DESCR
	WrapperDescr     Kind = C.GDK_WRAPPER_DESCR
	GetSet           Kind = C.GDK_GETSET
	Member           Kind = C.GDK_MEMBER
	TypeKind         Kind = C.GDK_TYPE
	Module           Kind = C.GDK_MODULE
	Code             Kind = C.GDK_CODE
	Cell             Kind = C.GDK_CELL
	EllipsisKind     Kind = C.GDK_ELLIPSIS
	NotImplemented   Kind = C.GDK_NOTIMPLEMENTED
	Property         Kind = C.GDK_PROPERTY
	StaticMethod     Kind = C.GDK_STATICMETHOD
	ClassMethod      Kind = C.GDK_CLASSMETHOD
	MethodWrapper    Kind = C.GDK_METHOD_WRAPPER
	TupleSub         Kind = C.GDK_TUPLE_SUB
	ListSub          Kind = C.GDK_LIST_SUB
	DictSub          Kind = C.GDK_DICT_SUB
	TypeSub          Kind = C.GDK_TYPE_SUB
	Exception        Kind = C.GDK_EXCEPTION
	Other            Kind = C.GDK_OTHER
	MappingProxy     Kind = C.GDK_MAPPINGPROXY
	ByteArray        Kind = C.GDK_BYTEARRAY
	ListIter         Kind = C.GDK_LIST_ITER
	TupleIter        Kind = C.GDK_TUPLE_ITER
	RangeIter        Kind = C.GDK_RANGE_ITER
	Super            Kind = C.GDK_SUPER
	ClassMethodDescr Kind = C.GDK_CLASSMETHOD_DESCR
)

// kindsOfTypes maps the address of a type to the kind of its instances: a hash table with free places.
var kindsOfTypes = func() (table [256]struct {
	typ  *C.PyTypeObject
	kind Kind
}) {
	add := func(t *C.PyTypeObject, kind Kind) {
		at := freePlace(t, func(at uint8) bool { return table[at].typ == nil })
		table[at].typ, table[at].kind = t, kind
	}
	for _, o := range []struct {
		object Object
		kind   Kind
	}{{None(), NoneKind}, {Ellipsis(), EllipsisKind}, {wrapC(known.not_implemented), NotImplemented}} {
		add(o.object.typ(), o.kind)
	}
	for i := 0; ; i++ {
		row := (*C.gdpy_kind_row)(unsafe.Add(unsafe.Pointer(known.kinds), i*C.sizeof_gdpy_kind_row))
		if row._type == nil {
			return table
		}
		add(row._type, Kind(row.kind))
	}
}()

// freePlace returns the first free place for a type.
func freePlace(t *C.PyTypeObject, free func(at uint8) bool) uint8 {
	at := kindPlace(t)
	for !free(at) {
		at++
	}
	return at
}

// LearnKinds adds the types whose addresses only a running CPython knows. It is called once, with the GIL held, before
// Kind is used.
func LearnKinds() {
	if t := C.gdpy_method_wrapper_type(); t != nil {
		at := freePlace(t, func(at uint8) bool { return kindsOfTypes[at].typ == nil })
		kindsOfTypes[at].typ, kindsOfTypes[at].kind = t, MethodWrapper
	}
}

// kindPlace returns where a type is first looked for.
func kindPlace(t *C.PyTypeObject) uint8 {
	return uint8(uint64(uintptr(unsafe.Pointer(t))) * 0x9E3779B97F4A7C15 >> 56)
}

// Kind classifies the object by its exact type.
func (o Object) Kind() Kind {
	if o.p == nil {
		return Null
	}
	t := o.typ()
	for at := kindPlace(t); kindsOfTypes[at].typ != nil; at++ {
		if kindsOfTypes[at].typ == t {
			return kindsOfTypes[at].kind
		}
	}
	switch flags := t.tp_flags; {
	case flags&C.Py_TPFLAGS_TYPE_SUBCLASS != 0:
		return TypeSub
	case flags&C.Py_TPFLAGS_TUPLE_SUBCLASS != 0:
		return TupleSub
	case flags&C.Py_TPFLAGS_LIST_SUBCLASS != 0:
		return ListSub
	case flags&C.Py_TPFLAGS_DICT_SUBCLASS != 0:
		return DictSub
	case flags&C.Py_TPFLAGS_BASE_EXC_SUBCLASS != 0:
		return Exception
	case IsSubtype(ofType(t), ofType(known.module_type)):
		return Module
	}
	return Other
}
