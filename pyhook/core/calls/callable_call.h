/* The vectorcall functions of a Callable. */
#ifndef GD_CALLABLE_CALL_H
#define GD_CALLABLE_CALL_H

#include "calls/callable.h"

/* Serves a call and runs the tail calls that it returns. Returns a new reference, or NULL with an exception set. */
PyObject *gd_callable_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* The vectorcall function of a Callable after tp_clear. Only a finalizer of the same garbage can still call such a
 * Callable. Returns NULL with ReferenceError set, never a new reference. */
PyObject *gd_cleared_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
