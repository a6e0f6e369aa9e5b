package py

// #include "helpers.h"
import "C"

import "unsafe"

// TypeFact is a property of a type object's slots.
type TypeFact int

// The facts that Is checks.
const (
	GenericGetAttr TypeFact = iota
	GenericSetAttr
	HeapType
	// Mutable holds if Python code can change the attributes of the class: a class statement made it, or a C library
	// that did not protect it. Some C types, such as deque, are static in one version of CPython and protected heap
	// types in the next.
	Mutable
	HasIterNext
	HasCall
	HasIter
	IdentityHash
	IdentityCompare
	PlainMetaGetAttr
	// MatchesSequence, MatchesMapping and MatchesSelf are the flags that match statements read: whether
	// sequence and mapping patterns match, and whether a single positional pattern matches the subject
	// itself.
	MatchesSequence
	MatchesMapping
	MatchesSelf
	// ObjectNew and ObjectInit hold if the type uses the slot of object.__new__ or object.__init__.
	ObjectNew
	ObjectInit
	// WrapsGenericGetAttr holds if __getattribute__ is object.__getattribute__ or a wrapper of the same C
	// function. It does not hold for threading.local.
	WrapsGenericGetAttr
	// IsAbstract holds if object.__new__ refuses to create an instance of the class.
	IsAbstract
	// HasSubscript holds if the type has the slot mp_subscript, which PyMapping_Check tests.
	HasSubscript
)

// Is reports whether a fact holds for a type.
func Is(typ Object, fact TypeFact) bool {
	t := typ.asType()
	switch fact {
	case GenericGetAttr:
		return unsafe.Pointer(t.tp_getattro) == known.generic_getattr
	case GenericSetAttr:
		return unsafe.Pointer(t.tp_setattro) == known.generic_setattr
	case HeapType:
		return t.tp_flags&C.Py_TPFLAGS_HEAPTYPE != 0
	case Mutable:
		return t.tp_flags&(C.Py_TPFLAGS_HEAPTYPE|C.Py_TPFLAGS_IMMUTABLETYPE) == C.Py_TPFLAGS_HEAPTYPE
	case HasIterNext:
		return t.tp_iternext != nil && C.gdpy_iterates(t) != 0
	case HasCall:
		return t.tp_call != nil
	case HasIter:
		return t.tp_iter != nil
	case IdentityHash:
		return t.tp_hash == known.object_type.tp_hash
	case IdentityCompare:
		return t.tp_richcompare == known.object_type.tp_richcompare
	case PlainMetaGetAttr:
		return typ.typ().tp_getattro == known.type_type.tp_getattro
	case MatchesSequence:
		return t.tp_flags&C.Py_TPFLAGS_SEQUENCE != 0
	case MatchesMapping:
		return t.tp_flags&C.Py_TPFLAGS_MAPPING != 0
	case MatchesSelf:
		return t.tp_flags&C.GDPY_MATCH_SELF != 0
	case ObjectNew:
		return t.tp_new == known.object_type.tp_new
	case ObjectInit:
		return t.tp_init == known.object_type.tp_init
	case WrapsGenericGetAttr:
		return C.gdpy_reads_generically(typ.c()) != 0
	case IsAbstract:
		return t.tp_flags&C.Py_TPFLAGS_IS_ABSTRACT != 0
	case HasSubscript:
		return t.tp_as_mapping != nil && t.tp_as_mapping.mp_subscript != nil
	}
	return false
}
