/* CPython 3.13 and later: makes code objects. _PyCode_New, which takes the names and kinds of all variables, is not
 * exported. The public function takes the names of variables, cells and free variables, and puts them in this order. */
#include "pycompat.h"

#if PY_VERSION_HEX >= 0x030D0000

/* Returns a new tuple of the names from the localsplus names whose kinds have one of the bits; NULL with an exception
 * set if there is no memory. */
static PyObject *
names_of_kind(const gd_py_code_parts *parts, int bits)
{
    Py_ssize_t n = PyTuple_GET_SIZE(parts->localsplusnames), count = 0;
    const char *kinds = PyBytes_AS_STRING(parts->localspluskinds);
    for (Py_ssize_t i = 0; i < n; i++) {
        count += (kinds[i] & bits) != 0;
    }
    PyObject *names = PyTuple_New(count);
    for (Py_ssize_t i = 0, at = 0; names != NULL && i < n; i++) {
        if (kinds[i] & bits) {
            PyTuple_SET_ITEM(names, at++, Py_NewRef(PyTuple_GET_ITEM(parts->localsplusnames, i)));
        }
    }
    return names;
}

/* Reports whether the variables are in CPython's order: variables, cells that are none, free variables. */
static int
in_order(const gd_py_code_parts *parts)
{
    int group = 0;
    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(parts->localspluskinds); i++) {
        char kind = PyBytes_AS_STRING(parts->localspluskinds)[i];
        int own = kind & CO_FAST_LOCAL ? 0 : kind & CO_FAST_CELL ? 1 : 2;
        if (own < group) {
            return 0;
        }
        group = own;
    }
    return PyBytes_GET_SIZE(parts->localspluskinds) == PyTuple_GET_SIZE(parts->localsplusnames);
}

PyObject *
gd_py_code_new(const gd_py_code_parts *parts)
{
    if (!in_order(parts)) {
        PyErr_SetString(PyExc_ValueError, "the variables of a code object are not in CPython's order");
        return NULL;
    }
    PyObject *vars = names_of_kind(parts, CO_FAST_LOCAL), *cells = names_of_kind(parts, CO_FAST_CELL);
    PyObject *free_vars = names_of_kind(parts, CO_FAST_FREE), *code = NULL;
    if (vars != NULL && cells != NULL && free_vars != NULL) {
        code = (PyObject *)PyUnstable_Code_NewWithPosOnlyArgs(
            parts->argcount, parts->posonlyargcount, parts->kwonlyargcount, (int)PyTuple_GET_SIZE(vars),
            parts->stacksize, parts->flags, parts->code, parts->consts, parts->names, vars, free_vars, cells,
            parts->filename, parts->name, parts->qualname, parts->firstlineno, parts->linetable, parts->exceptiontable);
    }
    Py_XDECREF(vars);
    Py_XDECREF(cells);
    Py_XDECREF(free_vars);
    return code;
}

#endif
