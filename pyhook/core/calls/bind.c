/* Binds call arguments to frame slots: see calls/bind.h. */
#include "calls/bind.h"

#include "guards/pure.h"

/* Returns the index of the parameter named `key` among names[from .. to), or -1. Keywords are nearly always
 * interned, so identity is tried on all names before equality. Both sides are exact str, so no user code
 * runs. */
static Py_ssize_t
find_parameter(PyObject *names, Py_ssize_t from, Py_ssize_t to, PyObject *key)
{
    for (Py_ssize_t i = from; i < to; i++) {
        if (PyTuple_GET_ITEM(names, i) == key) {
            return i;
        }
    }
    for (Py_ssize_t i = from; i < to; i++) {
        if (gd_same_text(PyTuple_GET_ITEM(names, i), key)) {
            return i;
        }
    }
    return -1;
}

/* Fills the empty slots from __defaults__ and __kwdefaults__. Returns the same values as gd_bind. */
static int
fill_defaults(PyFunctionObject *function, PyCodeObject *code, PyObject *names, Py_ssize_t given, PyObject **slots)
{
    Py_ssize_t argcount = code->co_argcount;
    PyObject *defaults = function->func_defaults;
    Py_ssize_t ndefaults = defaults != NULL ? PyTuple_GET_SIZE(defaults) : 0;
    for (Py_ssize_t i = given; i < argcount; i++) {
        if (slots[i] != NULL) {
            continue;
        }
        Py_ssize_t d = i - (argcount - ndefaults);
        if (d < 0) {
            return 0;
        }
        slots[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, d));
    }
    for (Py_ssize_t i = argcount; i < argcount + code->co_kwonlyargcount; i++) {
        if (slots[i] != NULL) {
            continue;
        }
        PyObject *kwdefaults = function->func_kwdefaults;
        PyObject *value = kwdefaults != NULL ? PyDict_GetItemWithError(kwdefaults, PyTuple_GET_ITEM(names, i)) : NULL;
        if (value == NULL) {
            PyErr_Clear(); /* CPython's own call raises the error again */
            return 0;
        }
        slots[i] = Py_NewRef(value);
    }
    return 1;
}

static int
bind_into(PyFunctionObject *function, PyCodeObject *code, PyObject *names, PyObject *const *args, Py_ssize_t nargs,
          PyObject *kwnames, PyObject **slots)
{
    Py_ssize_t argcount = code->co_argcount;
    Py_ssize_t total = argcount + code->co_kwonlyargcount;
    Py_ssize_t given = nargs < argcount ? nargs : argcount;
    for (Py_ssize_t i = 0; i < given; i++) {
        slots[i] = Py_NewRef(args[i]);
    }
    Py_ssize_t next = total;
    if (code->co_flags & CO_VARARGS) {
        PyObject *rest = PyTuple_New(nargs - given);
        if (rest == NULL) {
            return -1;
        }
        for (Py_ssize_t i = given; i < nargs; i++) {
            PyTuple_SET_ITEM(rest, i - given, Py_NewRef(args[i]));
        }
        slots[next++] = rest;
    }
    else if (nargs > argcount) {
        return 0;
    }
    PyObject *extra = NULL;
    if (code->co_flags & CO_VARKEYWORDS) {
        extra = PyDict_New();
        if (extra == NULL) {
            return -1;
        }
        slots[next] = extra;
    }
    Py_ssize_t nkw = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nkw; k++) {
        PyObject *key = PyTuple_GET_ITEM(kwnames, k), *value = args[nargs + k];
        if (!PyUnicode_CheckExact(key)) {
            return 0; /* in f(**{str_subclass: 1}) the comparison may run the subclass's __eq__ */
        }
        Py_ssize_t i = find_parameter(names, code->co_posonlyargcount, total, key);
        if (i >= 0) {
            if (slots[i] != NULL) {
                return 0;
            }
            slots[i] = Py_NewRef(value);
        }
        else if (extra == NULL) {
            return 0;
        }
        else if (PyDict_SetItem(extra, key, value) < 0) {
            return -1;
        }
    }
    return fill_defaults(function, code, names, given, slots);
}

int
gd_bind(PyFunctionObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    PyObject *unused, *names;
    gd_py_code_tables(code, &unused, &unused, &names, &unused);
    int n = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS)
            + !!(code->co_flags & CO_VARKEYWORDS);
    for (int i = 0; i < n; i++) {
        slots[i] = NULL;
    }
    int bound = bind_into(function, code, names, args, nargs, kwnames, slots);
    if (bound != 1) {
        for (int i = 0; i < n; i++) {
            Py_CLEAR(slots[i]);
        }
    }
    return bound;
}
