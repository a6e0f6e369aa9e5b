/* The type behind optimize(), W: calls/callable_type.c makes it, calls/callable_call.c calls it. */
#ifndef GD_CALLABLE_H
#define GD_CALLABLE_H

#include "pycompat.h"
#include "cache/frame_cache.h"

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyFunctionObject *function; /* strong, never NULL */
    PyObject *self_object;      /* strong: put before the arguments, or NULL */
    gd_FrameCache *cache;       /* strong: entries of function's code; another one once __code__ was replaced */
    gd_Root *root;              /* strong: the family */
    int kind;                   /* GD_FRAME_DIRECT or GD_FRAME_RESUME */
    PyObject *wrapped;          /* strong: __wrapped__; NULL for function itself (no cycle, nothing to visit) */
    PyObject *dict;
    PyObject *weakreflist;
} gd_Callable;

/* BoundCallable is the W that has a self: it is not a method descriptor, being stored in a class does not bind it
 * again. */
extern PyTypeObject gd_Callable_Type, gd_BoundCallable_Type;

static inline int
gd_callable_check(PyObject *obj)
{
    return Py_IS_TYPE(obj, &gd_Callable_Type) || Py_IS_TYPE(obj, &gd_BoundCallable_Type);
}

/* What a W wraps: -> gd_core_api.callable_function. borrowed; NULL without an exception when obj is no W. */
PyObject *gd_callable_function(PyObject *obj, PyObject **self);

/* -> gd_core_api.resume_new: new W of kind RESUME in the family of owner, a Callable or Root. NULL with an
 * exception. */
PyObject *gd_resume_new(PyObject *owner, PyObject *function);

/* The family of a Callable or Root. borrowed; NULL without an exception for anything else. */
gd_Root *gd_root_of(PyObject *obj);

/* Runs tail calls (calls/tail_call.h) until a value comes out. Steals `result`; new, or NULL with an exception. */
PyObject *gd_run_tail_calls(PyObject *result);

/* Adds the types and resume_new to the module. 0 or -1 */
int gd_callable_init(PyObject *module);

#endif
