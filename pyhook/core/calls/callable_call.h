/* The vectorcalls of W. */
#ifndef GD_CALLABLE_CALL_H
#define GD_CALLABLE_CALL_H

#include "calls/callable.h"

/* Serves a call, and runs the tail calls that it ends in: new, or NULL with an exception. */
PyObject *gd_callable_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* After tp_clear, where only a destructor of the same garbage can call: NULL with ReferenceError, no new reference. */
PyObject *gd_cleared_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
