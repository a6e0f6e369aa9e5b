/* Implements guards/pure.h. CPython's comparisons are called only for two operands of the same exact
 * builtin type, and only if the comparison calls no other comparison. */
#include "guards/pure.h"

#include <math.h>

/* Tuples nested deeper than this count as unequal: a guard may fail, but it must not overflow the stack. */
enum { MAX_DEPTH = 100 };

static int equals(PyObject *a, PyObject *b, int depth);

/* Compares two objects of one exact builtin type with ==. */
static int
plain_equal(PyObject *a, PyObject *b)
{
    PyObject *result = Py_TYPE(a)->tp_richcompare(a, b, Py_EQ);
    if (result == NULL) {
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(result);
    return result == Py_True;
}

static int
double_equal(double a, double b)
{
    return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof a) == 0;
}

static int
tuple_equal(PyObject *a, PyObject *b, int depth)
{
    Py_ssize_t n = PyTuple_GET_SIZE(a);
    if (n != PyTuple_GET_SIZE(b)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!equals(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), depth)) {
            return 0;
        }
    }
    return 1;
}

/* Reports whether every item of a has an equal item in b. Items are compared pair by pair, hashes first.
 * Sets in guards are small, and a set lookup would call __eq__. */
static int
set_within(PyObject *a, PyObject *b, int depth)
{
    PyObject *x, *y;
    Py_hash_t hx, hy;
    for (Py_ssize_t i = 0; _PySet_NextEntry(a, &i, &x, &hx);) {
        int found = 0;
        for (Py_ssize_t j = 0; !found && _PySet_NextEntry(b, &j, &y, &hy);) {
            /* Two nans have different hashes, but are equal here. */
            found = (hx == hy || PyFloat_CheckExact(x)) && equals(x, y, depth);
        }
        if (!found) {
            return 0;
        }
    }
    return 1;
}

static int
range_equal(PyObject *a, PyObject *b)
{
    static PyObject *names[3];
    static const char *const texts[] = {"start", "stop", "step"};
    int same = 1;
    for (int i = 0; i < 3 && same; i++) {
        if (names[i] == NULL && (names[i] = PyUnicode_InternFromString(texts[i])) == NULL) {
            PyErr_Clear();
            return 0;
        }
        PyObject *x = PyObject_GetAttr(a, names[i]);
        PyObject *y = PyObject_GetAttr(b, names[i]);
        if (x == NULL || y == NULL) {
            PyErr_Clear();
            same = 0;
        }
        else {
            same = equals(x, y, 0);
        }
        Py_XDECREF(x);
        Py_XDECREF(y);
    }
    return same;
}

static int
equals(PyObject *a, PyObject *b, int depth)
{
    if (a == b) {
        return 1;
    }
    PyTypeObject *type = Py_TYPE(a);
    if (type != Py_TYPE(b) || depth > MAX_DEPTH) {
        return 0;
    }
    if (type == &PyUnicode_Type) {
        return gd_same_text(a, b);
    }
    if (type == &PyLong_Type || type == &PyBytes_Type) {
        return plain_equal(a, b);
    }
    if (type == &PyFloat_Type) {
        return double_equal(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
    }
    if (type == &PyComplex_Type) {
        Py_complex x = ((PyComplexObject *)a)->cval, y = ((PyComplexObject *)b)->cval;
        return double_equal(x.real, y.real) && double_equal(x.imag, y.imag);
    }
    if (PyTuple_Check(a) && type->tp_dictoffset == 0 && type->tp_richcompare == PyTuple_Type.tp_richcompare) {
        return tuple_equal(a, b, depth + 1);
    }
    if (type == &PyFrozenSet_Type) {
        return PySet_GET_SIZE(a) == PySet_GET_SIZE(b) && set_within(a, b, depth + 1) && set_within(b, a, depth + 1);
    }
    if (type == &PyRange_Type) {
        return range_equal(a, b);
    }
    if (type == &PySlice_Type) {
        PySliceObject *x = (PySliceObject *)a, *y = (PySliceObject *)b;
        return equals(x->start, y->start, depth + 1) && equals(x->stop, y->stop, depth + 1)
               && equals(x->step, y->step, depth + 1);
    }
    /* torch.device is written in C, and so is its comparison. */
    if (!gd_py_class_may_change(type) && type->tp_richcompare != NULL && strcmp(type->tp_name, "torch.device") == 0) {
        return plain_equal(a, b);
    }
    return 0;
}

int
gd_equals(PyObject *a, PyObject *b)
{
    return equals(a, b, 0);
}

static int
is_number(PyTypeObject *type)
{
    return type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyComplex_Type;
}

static int
same_key(PyObject *a, PyObject *b, int depth)
{
    if (a == b) {
        return 1;
    }
    PyTypeObject *ta = Py_TYPE(a), *tb = Py_TYPE(b);
    if (is_number(ta) && is_number(tb)) {
        int same = PyObject_RichCompareBool(a, b, Py_EQ);
        if (same < 0) {
            PyErr_Clear();
        }
        return same > 0;
    }
    if (ta != tb || depth > MAX_DEPTH) {
        return 0;
    }
    if (ta == &PyUnicode_Type || ta == &PyBytes_Type) {
        return plain_equal(a, b);
    }
    if (ta == &PyTuple_Type) {
        Py_ssize_t n = PyTuple_GET_SIZE(a);
        int same = n == PyTuple_GET_SIZE(b);
        for (Py_ssize_t i = 0; i < n && same; i++) {
            same = same_key(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), depth + 1);
        }
        return same;
    }
    return equals(a, b, depth);
}

int
gd_same_key(PyObject *a, PyObject *b)
{
    return same_key(a, b, 0);
}

static int
pure_hash(PyObject *key, int depth)
{
    PyTypeObject *type = Py_TYPE(key);
    if (type == &PyTuple_Type) {
        Py_ssize_t n = PyTuple_GET_SIZE(key);
        int pure = depth < MAX_DEPTH;
        for (Py_ssize_t i = 0; i < n && pure; i++) {
            pure = pure_hash(PyTuple_GET_ITEM(key, i), depth + 1);
        }
        return pure;
    }
    return !gd_py_class_may_change(type) || type->tp_hash == PyBaseObject_Type.tp_hash;
}

int
gd_pure_hash(PyObject *key)
{
    return pure_hash(key, 0);
}
