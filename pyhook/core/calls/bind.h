/* Binds the arguments of a call to the slots of a frame. */
#ifndef GD_BIND_H
#define GD_BIND_H

#include "pycompat.h"

/* Binds a call's arguments to the argument slots of the function's code, in the order of CPython's
 * initialize_locals: positional, keyword-only, *args tuple, **kwargs dict. Returns:
 *
 *    1   The arguments are bound. Every slot holds a new reference.
 *    0   CPython must handle this call: the arguments do not fit, or a keyword is not a plain str. No slot holds a
 *        reference and no exception is set. The caller calls the function itself, so that CPython raises any error
 *        with its own message and traceback.
 *    -1  Memory is exhausted. No slot holds a reference, and MemoryError is set. */
int gd_bind(PyFunctionObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots);

#endif
