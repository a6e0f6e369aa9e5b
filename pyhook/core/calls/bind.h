/* Arguments of a call to the slots of a frame. */
#ifndef GD_BIND_H
#define GD_BIND_H

#include "pycompat.h"

/* Binds a call's arguments to the argument slots of the function's code, as CPython's initialize_locals does:
 * positional, keyword-only, *args tuple, **kwargs dict. On success (1) every slot holds a new reference. 0: CPython
 * must judge this call itself (an error, or keywords of an unusual kind): no slot holds a reference, no exception is
 * set; calling the function with the same arguments gives CPython's own message and traceback. -1: out of memory,
 * exception set. */
int gd_bind(PyFunctionObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots);

#endif
