/* The C part of a handle, the object that optimize() returns for an nn.Module. A call of a handle finds the
 * instance's callable without a lookup.
 *
 * A handle class (python/godynamo/_user/modules.py) has the base ModuleHandle, which has object fields and a
 * vectorcall function. A call through the slots of a Python class would pack the arguments into a tuple, look
 * `__call__` up in the class, bind it, and unpack the tuple again. That took a third of the time of a call of an
 * optimized nn.Identity.
 */
#ifndef GD_MODULE_HANDLE_H
#define GD_MODULE_HANDLE_H

#include "pycompat.h"

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall; /* NULL until set_module_handle */
    PyObject *call; /* strong or NULL: called by a call of the handle, usually a Callable */
    PyObject *module; /* strong or NULL: the original module */
    PyObject *again; /* strong or NULL: a callable that optimizes a copy of the module */
    PyObject *forward; /* strong or NULL: the module's optimized `forward`, or None */
} gd_ModuleHandle;

extern PyTypeObject gd_ModuleHandle_Type;

/* Adds the type and its functions to the module. Returns 0 or -1. */
int gd_module_handle_init(PyObject *module);

#endif
