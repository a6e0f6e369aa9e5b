/* What a handle of an nn.Module is made of in C, so that calling it finds the instance's callable without a look-up.
 *
 * A handle class (python/godynamo/_user/modules.py) has ModuleHandle among its bases: three object fields and the
 * vectorcall function. A call that came through the slots of a Python class would pack its arguments into a tuple, look
 * `__call__` up in the class, bind it, and unpack the tuple again: a third of what a call of an optimized nn.Identity
 * took. */
#ifndef GD_MODULE_HANDLE_H
#define GD_MODULE_HANDLE_H

#include "pycompat.h"

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall; /* NULL until set_module_handle */
    PyObject *call; /* strong: what a call goes to, a W as a rule; or NULL, as the other two */
    PyObject *module; /* strong: the original */
    PyObject *again; /* strong: what optimizes a copy */
} gd_ModuleHandle;

extern PyTypeObject gd_ModuleHandle_Type;

/* Adds the type and its functions to the module. 0 or -1 */
int gd_module_handle_init(PyObject *module);

#endif
