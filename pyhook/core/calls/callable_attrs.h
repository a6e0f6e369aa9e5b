/* Attributes and methods of W: what makes it look like the function it stands for. */
#ifndef GD_CALLABLE_ATTRS_H
#define GD_CALLABLE_ATTRS_H

#include "pycompat.h"
#include <structmember.h>

extern PyMethodDef gd_callable_methods[];
extern PyMemberDef gd_callable_members[];
extern PyGetSetDef gd_callable_getset[];

/* tp_repr: new str, or NULL with an exception. */
PyObject *gd_callable_repr(PyObject *op);

#endif
