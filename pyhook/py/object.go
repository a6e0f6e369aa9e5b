// Package py provides the translator's handles on CPython objects.
//
// An Object is a handle that its Scope keeps alive. Every call that yields an object takes the scope, and
// the scope owns the new reference. So no result is borrowed and no argument is stolen. A Scope lives for
// one translation; having a Scope proves that the GIL is held. Nothing here starts a goroutine or keeps a Go
// pointer in C.
//
// Only this package imports go-python3 (handles, calls, errors). If an operation would take several cgo
// calls (52 ns each) with go-python3, helpers.c does it in one.
package py

// #cgo CFLAGS: -I${SRCDIR}/compat -Wno-deprecated-declarations
// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-all
// #include "helpers.h"
import "C"

import (
	"unsafe"

	python3 "github.com/DataDog/go-python3"
)

// Object is a handle on a Python object; the zero Object is NULL. Two handles compare equal (==) if they
// refer to the same object.
type Object struct{ p *python3.PyObject }

// At makes a handle of a PyObject* that another owner keeps alive while the handle is used.
func At(p unsafe.Pointer) Object { return Object{(*python3.PyObject)(p)} }

// Ptr returns the PyObject*.
func (o Object) Ptr() unsafe.Pointer { return unsafe.Pointer(o.p) }
func (o Object) c() *C.PyObject      { return (*C.PyObject)(unsafe.Pointer(o.p)) }

// IsNull reports whether the handle is zero.
func (o Object) IsNull() bool { return o.p == nil }

// ID returns the object's address, as id() does.
func (o Object) ID() uint64 { return uint64(uintptr(unsafe.Pointer(o.p))) }

func wrapC(p *C.PyObject) Object { return Object{(*python3.PyObject)(unsafe.Pointer(p))} }

// Bool returns True or False.
func Bool(b bool) Object {
	if b {
		return True()
	}
	return False()
}
