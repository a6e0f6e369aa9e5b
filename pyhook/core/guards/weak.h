/* Weak references from entries to the objects they guard. */
#ifndef GD_GUARD_WEAK_H
#define GD_GUARD_WEAK_H

#include "guards/guarded_code.h"

/* Returns the callback of an entry's weak references, which invalidates the entry, as a new reference, or
 * NULL with an exception set. */
PyObject *gd_weak_callback(gd_GuardedCode *e);

/* Reports whether the object has a weak reference whose callback is not godynamo's. */
int gd_watched(PyObject *v);

#endif
