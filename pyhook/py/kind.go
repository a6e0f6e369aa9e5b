package py

// #include "helpers.h"
import "C"

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
