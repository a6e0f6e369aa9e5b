package py

// #include "helpers.h"
import "C"

import (
	"unsafe"

	python3 "github.com/DataDog/go-python3"
)

// Scope keeps the objects of one translation alive. Only one thread may use it, and it must be closed
// with the GIL held.
type Scope struct {
	owned  []*python3.PyObject   // at most ownedAtOnce
	full   [][]*python3.PyObject // earlier contents of owned
	names  map[string]Object
	closed bool
	// OnTypeLookup, if set, is called with the results of TypeLookup on classes that can change. If nothing
	// was found, `found` is the zero Object.
	OnTypeLookup func(typ Object, name string, found Object)
}

// OpenScope starts a scope; the caller holds the GIL until Close.
func OpenScope() *Scope { return &Scope{} }

// Close releases every reference the scope took.
func (s *Scope) Close() {
	if s.closed {
		return
	}
	s.closed = true
	for _, owned := range append(s.full, s.owned) {
		if n := len(owned); n > 0 { // one C call releases many references
			C.gdpy_decref_all((**C.PyObject)(unsafe.Pointer(&owned[0])), C.Py_ssize_t(n))
		}
	}
	s.owned, s.full = nil, nil
}

// ownedAtOnce is the largest length of Scope.owned. A translation takes up to a million references; they would be
// copied several times if one slice held them.
const ownedAtOnce = 4096

// own records a reference that Close releases.
func (s *Scope) own(p *python3.PyObject) {
	if len(s.owned) == ownedAtOnce {
		s.full, s.owned = append(s.full, s.owned), make([]*python3.PyObject, 0, ownedAtOnce)
	}
	s.owned = append(s.owned, p)
}

// NoMemory is the panic value of a function that cannot make a Python object. Exported functions recover
// from it, and CPython runs the frame.
type NoMemory struct{}

// outOfMemory abandons the call from C by panicking. The core has noted the reason.
func (s *Scope) outOfMemory() {
	C.gdpy_forget_error()
	panic(NoMemory{})
}

// made gives the scope the new reference o and returns o. If o is NULL, memory is out, and made panics.
func (s *Scope) made(o Object) Object {
	if o.p == nil {
		s.outOfMemory()
	}
	return s.Adopt(o)
}

// take gives the scope the new reference p and returns p as an Object; p may be NULL.
func (s *Scope) take(p *C.PyObject) Object {
	o := wrapC(p)
	if o.p != nil {
		s.own(o.p)
	}
	return o
}

// Adopt gives the scope the new reference o, which came from C, and returns o; o may be NULL.
func (s *Scope) Adopt(o Object) Object {
	if o.p != nil {
		s.own(o.p)
	}
	return o
}

// Hold takes another reference to o, which the scope does not own yet (a slot, a borrowed field), and returns o.
func (s *Scope) Hold(o Object) Object {
	if o.p != nil {
		incref(o)
		s.own(o.p)
	}
	return o
}

// Keep returns a reference that outlives the scope; the caller must release it.
func (s *Scope) Keep(o Object) Owned {
	incref(o)
	return Owned{o}
}

// Owned is a reference that outlives its scope; Release drops it.
type Owned struct{ Object }

// Release drops the reference; the GIL must be held.
func (o Owned) Release() { o.p.DecRef() }
