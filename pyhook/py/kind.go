package py

// Kind is the exact kind of an object, as helpers.h's GDK_ numbers.
type Kind int

// The kinds, in the order of helpers.h.
const (
	Null Kind = iota
	NoneKind
	BoolKind
	Int
	Float
	Complex
	Str
	Bytes
	Tuple
	List
	Dict
	SetKind
	FrozenSet
	Slice
	Range
	Function
	Method
	Builtin
	MethodDescr
	WrapperDescr
	GetSet
	Member
	TypeKind
	Module
	Code
	Cell
	EllipsisKind
	NotImplemented
	Property
	StaticMethod
	ClassMethod
	MethodWrapper
	TupleSub
	ListSub
	DictSub
	TypeSub
	Exception
	Other
	MappingProxy
	ByteArray
	ListIter
	TupleIter
	RangeIter
	Super
	ClassMethodDescr
)
