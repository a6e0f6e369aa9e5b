/* Binds the arguments of a call to the slots of a frame. */
#ifndef GD_BIND_H
#define GD_BIND_H

#include "pycompat.h"

/* Binds a call's arguments to the argument slots of the function's code, as CPython's initialize_locals does:
 * positional, keyword-only, *args tuple, **kwargs dict. Returns 1 on success: every slot holds a new
 * reference. Returns 0 if CPython must handle this call itself (an error, or keywords that are not plain
 * str): no slot holds a reference, no exception is set, and calling the function with the same arguments
 * raises CPython's own message and traceback. Returns -1 without memory, with an exception. */
int gd_bind(PyFunctionObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots);

#endif
