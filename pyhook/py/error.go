package py

// #include "helpers.h"
import "C"

import "fmt"

// Error is a Python exception that an operation raised; CPython's own error indicator is clear.
type Error struct {
	Type, Value Object
	Text        string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", TypeName(e.Type), e.Text) }

// Err takes the current Python exception. If there is none, which is a bug of the caller, Err returns an
// error that says so.
func (s *Scope) Err() error {
	var t, v *C.PyObject
	if C.gdpy_take_error(&t, &v) == 0 {
		return fmt.Errorf("py: a call failed without setting an exception")
	}
	e := &Error{Type: s.take(t), Value: s.take(v)}
	if p := C.gdpy_str(e.Value.c()); p != nil {
		e.Text = GoString(s.take(p))
	} else {
		C.gdpy_forget_error()
	}
	return e
}

// Answered reports whether a call into Python returned a result. It is for calls in which an ordinary exception
// means "no": the object lacks the attribute, has no length, or has no hash. An exception from outside and
// MemoryError are different: the core notes them when Err takes them (gd_note_interruption in
// pyhook/core/interrupt.h), and they end the translation, whatever the caller of Answered does.
func Answered[T any](result T, err error) (T, bool) { return result, err == nil }

// Restore makes a taken exception the current one again, so that it reaches the caller of the exported function.
func (s *Scope) Restore(e *Error) {
	C.PyErr_SetObject(e.Type.c(), e.Value.c())
}

// CheckSignals runs the handlers of signals that have arrived. It returns an error if a handler raised. The
// core keeps the handler's exception: the call being translated raises it even if the error is ignored.
// Outside of CheckSignals, signals are held back while Go runs.
func (s *Scope) CheckSignals() error {
	if C.gdpy_check_signals() < 0 {
		return s.Err()
	}
	return nil
}
