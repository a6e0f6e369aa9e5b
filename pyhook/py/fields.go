package py

// #include "helpers.h"
import "C"

import "unsafe"

// Fields of objects are read and references are counted here in Go, as CPython's macros do in C: a call through cgo
// takes much longer than such a read, and a translation reads hundreds of thousands of fields. Everything else goes
// through helpers.c.

// known has the addresses of CPython's own objects.
var known = C.gdpy_known()

// incref takes a reference, as Py_INCREF does.
func incref(o Object) {
	if C.GDPY_IMMORTAL == 0 {
		*(*C.Py_ssize_t)(unsafe.Pointer(o.p))++
		return
	}
	if count := (*uint32)(unsafe.Pointer(o.p)); *count < C.GDPY_IMMORTAL { // the lower half
		*count++
	}
}

func (o Object) typ() *C.PyTypeObject { return o.c().ob_type }

func (o Object) asType() *C.PyTypeObject { return (*C.PyTypeObject)(unsafe.Pointer(o.p)) }

func ofType(t *C.PyTypeObject) Object { return At(unsafe.Pointer(t)) }

// Type returns type(o). The handle is valid as long as o is alive.
func (o Object) Type() Object { return ofType(o.typ()) }

// Singletons.
func None() Object     { return wrapC(known.none) }
func True() Object     { return wrapC(known.true_object) }
func False() Object    { return wrapC(known.false_object) }
func Ellipsis() Object { return wrapC(known.ellipsis) }
func CellType() Object { return ofType(known.cell_type) }

// IsSubtype reports whether a's MRO contains b, without calling anything.
func IsSubtype(a, b Object) bool {
	mro := a.asType().tp_mro
	if mro == nil { // the class is being made
		return C.PyType_IsSubtype(a.asType(), b.asType()) != 0
	}
	for _, t := range items(mro) {
		if t == b {
			return true
		}
	}
	return false
}

// items returns the items of a list or tuple, or of an instance of a subclass: CPython's memory, borrowed, and valid
// until the object changes.
func items(o *C.PyObject) []Object {
	n := (*C.PyVarObject)(unsafe.Pointer(o)).ob_size
	if n <= 0 {
		return nil
	}
	if o.ob_type.tp_flags&C.Py_TPFLAGS_LIST_SUBCLASS != 0 {
		return unsafe.Slice((*Object)(unsafe.Pointer((*C.PyListObject)(unsafe.Pointer(o)).ob_item)), n)
	}
	return unsafe.Slice((*Object)(unsafe.Pointer(&(*C.PyTupleObject)(unsafe.Pointer(o)).ob_item)), n)
}

// Items returns the items of a list or tuple, or of an instance of a subclass, read from storage.
func (s *Scope) Items(o Object) []Object {
	from := items(o.c())
	if len(from) == 0 {
		return nil
	}
	out := make([]Object, len(from))
	copy(out, from)
	for _, v := range out {
		s.Hold(v)
	}
	return out
}

// SeqLen returns the length of a list or tuple.
func SeqLen(o Object) int { return int((*C.PyVarObject)(unsafe.Pointer(o.p)).ob_size) }

// DictLen returns the length of a dict.
func DictLen(o Object) int { return int((*C.PyDictObject)(unsafe.Pointer(o.p)).ma_used) }

// Mro returns typ.__mro__ as CPython stores it; the metaclass is not involved. It is empty while the
// class is being made.
func (s *Scope) Mro(typ Object) []Object {
	mro := s.Hold(wrapC(typ.asType().tp_mro))
	if mro.IsNull() {
		return nil
	}
	return s.Items(mro)
}

// FunctionPart is a field of a function object.
type FunctionPart int

// The fields that FunctionField reads.
const (
	FuncCode FunctionPart = iota
	FuncGlobals
	FuncClosure
	FuncDefaults
	FuncKwDefaults
	FuncModule
	FuncQualName
	FuncName
	FuncTypeParams
	FuncAnnotate
)

// FunctionField reads a field of an exact function. It returns false if the field is NULL.
func (s *Scope) FunctionField(f Object, field FunctionPart) (Object, bool) {
	fn := (*C.PyFunctionObject)(unsafe.Pointer(f.p))
	var v *C.PyObject
	switch field {
	case FuncCode:
		v = fn.func_code
	case FuncGlobals:
		v = fn.func_globals
	case FuncClosure:
		v = fn.func_closure
	case FuncDefaults:
		v = fn.func_defaults
	case FuncKwDefaults:
		v = fn.func_kwdefaults
	case FuncModule:
		v = fn.func_module
	case FuncQualName:
		v = fn.func_qualname
	case FuncName:
		v = fn.func_name
	case FuncTypeParams:
		v = C.gdpy_type_params(fn)
	case FuncAnnotate:
		v = C.gdpy_annotate(fn)
	}
	return s.Hold(wrapC(v)), v != nil
}

// RunsItsCode reports whether a call of the exact function runs its code. It does not if a C extension has given the
// function another entry point with PyFunction_SetVectorcall.
func RunsItsCode(f Object) bool {
	return C.gdpy_runs_its_code(f.c()) != 0
}

// MethodParts returns __func__ and __self__ of a bound method.
func (s *Scope) MethodParts(m Object) (fn, self Object) {
	method := (*C.PyMethodObject)(unsafe.Pointer(m.p))
	return s.Hold(wrapC(method.im_func)), s.Hold(wrapC(method.im_self))
}

// CellContents returns the contents of a cell, or false if the cell is empty.
func (s *Scope) CellContents(c Object) (Object, bool) {
	v := s.Hold(wrapC((*C.PyCellObject)(unsafe.Pointer(c.p)).ob_ref))
	return v, !v.IsNull()
}

// Descriptor reports whether type(o) has __get__, and whether it has __set__ or __delete__ (a data descriptor).
func Descriptor(o Object) (get, data bool) {
	t := o.typ()
	return t.tp_descr_get != nil, t.tp_descr_set != nil
}

// IsGeneratorCode reports whether the code is that of a generator, coroutine or async generator.
func IsGeneratorCode(code Object) bool {
	const flags = C.CO_GENERATOR | C.CO_COROUTINE | C.CO_ASYNC_GENERATOR
	return (*C.PyCodeObject)(unsafe.Pointer(code.p)).co_flags&flags != 0
}
