/* Weak references from entries to the objects they guard. */
#ifndef GD_GUARD_WEAK_H
#define GD_GUARD_WEAK_H

#include "guards/guarded_code.h"

/* The callback of an entry's weak references, which invalidates it: new, or NULL with an exception. */
PyObject *gd_weak_callback(gd_GuardedCode *e);

/* Whether the object has a weak reference with a callback that is not godynamo's. */
int gd_watched(PyObject *v);

#endif
