/* Weak references of entries: see guards/weak.h. */
#include "guards/weak.h"

/* The callback of an entry's weak references. Invalidates the entry and returns a new reference to None.
 * `self` is a weak reference to the entry, so the callback does not keep the entry alive. */
static PyObject *
object_died(PyObject *self, PyObject *reference)
{
    (void)reference;
    PyObject *entry = PyWeakref_GET_OBJECT(self);
    if (entry != Py_None) {
        gd_entry_invalidate((gd_GuardedCode *)entry);
    }
    Py_RETURN_NONE;
}

static PyMethodDef object_died_def = {"object_died", object_died, METH_O, NULL};

/* Reports whether a callback belongs to an entry or to one of godynamo's Python modules. Such a callback
 * runs none of the user's code. */
static int
is_ours(PyObject *callback)
{
    if (PyCFunction_Check(callback)) {
        return PyCFunction_GET_FUNCTION(callback) == object_died;
    }
    PyObject *module = PyFunction_Check(callback) ? PyFunction_GET_MODULE(callback) : NULL;
    static const char package[] = "godynamo.";
    Py_ssize_t n = sizeof(package) - 1;
    return module != NULL && PyUnicode_Check(module) && PyUnicode_IS_ASCII(module) && PyUnicode_GET_LENGTH(module) > n
           && memcmp(PyUnicode_1BYTE_DATA(module), package, n) == 0;
}

PyObject *
gd_weak_callback(gd_GuardedCode *e)
{
    PyObject *self = PyWeakref_NewRef((PyObject *)e, NULL);
    PyObject *callback = self != NULL ? PyCFunction_New(&object_died_def, self) : NULL;
    Py_XDECREF(self);
    return callback;
}

int
gd_watched(PyObject *v)
{
    if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(v))) {
        return 0;
    }
    PyWeakReference *r = *(PyWeakReference **)PyObject_GET_WEAKREFS_LISTPTR(v);
    for (; r != NULL; r = r->wr_next) {
        PyObject *f = r->wr_callback;
        if (f != NULL && !is_ours(f)) {
            return 1;
        }
    }
    return 0;
}
