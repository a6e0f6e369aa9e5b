/* The vectorcall functions of a Callable. */
#ifndef GD_CALLABLE_CALL_H
#define GD_CALLABLE_CALL_H

#include "calls/callable.h"

/* Serves a call and runs the tail calls it returns: new, or NULL with an exception. */
PyObject *gd_callable_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* The vectorcall after tp_clear, reachable only from a finalizer of the same garbage: returns NULL with
 * ReferenceError, no new reference. */
PyObject *gd_cleared_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
