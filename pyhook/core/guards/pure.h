/* Equality as guards mean it, free of user code. */
#ifndef GD_GUARD_PURE_H
#define GD_GUARD_PURE_H

#include "pycompat.h"

/* Whether two values are equal part by part, types included: 2, 2.0 and True differ, 0.0 and -0.0 differ, nan equals
 * nan. Known are None, Ellipsis, bool, int, float, complex, str, bytes, range, slice, tuples (subclasses without a
 * __dict__ or an equality of their own too), frozensets and torch's own static types (device); anything else equals
 * itself alone. Arguments are borrowed; raises nothing. */
int gd_equals(PyObject *a, PyObject *b);

/* Whether a dict takes the two for one key, both having one hash: as ==, where no user code is needed to tell (1, 1.0
 * and True are one key), by identity where it would be. */
int gd_same_key(PyObject *a, PyObject *b);

/* Whether hash() of the key runs no Python code. */
int gd_pure_hash(PyObject *key);

#endif
