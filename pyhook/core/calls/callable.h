/* The Callable type that optimize() returns. calls/callable_type.c creates it, calls/callable_call.c calls it.
 * A Callable and its resume functions form a family, which shares a Root (cache/frame_cache.h). */
#ifndef GD_CALLABLE_H
#define GD_CALLABLE_H

#include "pycompat.h"
#include "cache/frame_cache.h"

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyFunctionObject *function; /* strong, never NULL */
    PyObject *self_object;      /* strong or NULL: passed before the arguments */
    gd_FrameCache *cache;       /* strong: entries of function's code; replaced when __code__ changes */
    gd_Root *root;              /* strong: the data that the family shares */
    int kind;                   /* GD_FRAME_DIRECT or GD_FRAME_RESUME */
    /* strong: __wrapped__; NULL if that is `function`, which the collector visits already */
    PyObject *wrapped;
    PyObject *dict;
    PyObject *weakreflist;
} gd_Callable;

/* BoundCallable is a Callable with a self. It is not a method descriptor, so a class that stores one does not bind it
 * again. */
extern PyTypeObject gd_Callable_Type, gd_BoundCallable_Type;

static inline int
gd_callable_check(PyObject *obj)
{
    return Py_IS_TYPE(obj, &gd_Callable_Type) || Py_IS_TYPE(obj, &gd_BoundCallable_Type);
}

/* Implements gd_core_api.callable_function: returns the function that a Callable wraps, borrowed. If self is not
 * NULL, sets *self to the Callable's bound object (borrowed) or NULL. Returns NULL without an exception for any
 * other object. */
PyObject *gd_callable_function(PyObject *obj, PyObject **self);

/* Implements gd_core_api.resume_new: returns a new Callable of kind RESUME in the family of owner, which is a
 * Callable or Root. Returns NULL with an exception set on failure. */
PyObject *gd_resume_new(PyObject *owner, PyObject *function);

/* Returns the Root of a Callable, or obj itself if it is a Root; borrowed. Returns NULL without an exception for
 * any other object. */
gd_Root *gd_root_of(PyObject *obj);

/* Runs tail calls (calls/tail_call.h), starting with `result`, until one returns a value. Steals `result`. Returns
 * a new reference, or NULL with an exception set. */
PyObject *gd_run_tail_calls(PyObject *result);

/* Adds the types and resume_new to the module. Returns 0 or -1. */
int gd_callable_init(PyObject *module);

#endif
