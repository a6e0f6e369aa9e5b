/* Attributes and methods that make a Callable look like the function it wraps. */
#ifndef GD_CALLABLE_ATTRS_H
#define GD_CALLABLE_ATTRS_H

#include "pycompat.h"
#include <structmember.h>

extern PyMethodDef gd_callable_methods[];
extern PyMemberDef gd_callable_members[];
extern PyGetSetDef gd_callable_getset[];

/* Implements tp_repr. Returns a new str, or NULL with an exception set. */
PyObject *gd_callable_repr(PyObject *op);

#endif
