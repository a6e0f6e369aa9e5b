/* Weak references of entries to what they guard. */
#ifndef GD_GUARD_WEAK_H
#define GD_GUARD_WEAK_H

#include "guards/guarded_code.h"

/* The callback of an entry's weak references, which invalidates it: new, or NULL with an exception. */
PyObject *gd_weak_callback(gd_GuardedCode *e);

/* Whether a weak reference with a callback, other than an entry's, looks at the object. */
int gd_watched(PyObject *v);

#endif
