/* Equality as guards define it, without running user code. */
#ifndef GD_GUARD_PURE_H
#define GD_GUARD_PURE_H

#include "pycompat.h"

/* Reports whether two values are equal part by part, types included: 2, 2.0 and True differ, 0.0 and -0.0
 * differ, nan equals nan. Supported types: None, Ellipsis, bool, int, float, complex, str, bytes, range,
 * slice, tuples (and their subclasses without a __dict__ and without an __eq__ of their own), frozensets
 * and torch.device. Any other object equals only itself. Arguments are borrowed; raises nothing. */
int gd_equals(PyObject *a, PyObject *b);

/* Reports whether a dict treats the two objects as one key, given equal hashes. Compares with == if that
 * runs no user code (1, 1.0 and True are one key), otherwise by identity. */
int gd_same_key(PyObject *a, PyObject *b);

/* Reports whether two exact str have the same text. */
static inline int
gd_same_text(PyObject *a, PyObject *b)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(a);
    int kind = (int)PyUnicode_KIND(a);
    return PyUnicode_GET_LENGTH(b) == n && (int)PyUnicode_KIND(b) == kind
           && memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)n * (size_t)kind) == 0;
}

/* Reports whether hash() of the key runs no Python code. */
int gd_pure_hash(PyObject *key);

#endif
