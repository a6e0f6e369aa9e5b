/* While the program has replaced a builtin, nothing is translated: see replaced_builtins.h. */
#include "replaced_builtins.h"

/* Consoles, notebooks and import hooks replace these for the whole process. */
static const char *const ignored[] = {"__import__", "breakpoint", "copyright", "credits", "exit", "help",
                                      "input",      "license",    "open",      "print",   "quit"};

static PyObject *builtins; /* the module's dict */
static PyObject *noted; /* its contents when the core was loaded, without the ignored names */

int
gd_builtins_replaced(void)
{
    PyObject *name, *value;
    Py_ssize_t at = 0, found = 0;
    while (PyDict_Next(builtins, &at, &name, &value)) {
        if (!PyUnicode_CheckExact(name)) {
            return 1; /* a lookup would compare it, and run code of the program */
        }
        PyObject *before = PyDict_GetItemWithError(noted, name);
        if (before != NULL && before != value) {
            return 1;
        }
        found += before != NULL;
    }
    return found < PyDict_GET_SIZE(noted);
}

int
gd_replaced_builtins_init(PyObject *Py_UNUSED(module))
{
    PyObject *imported = PyImport_ImportModule("builtins");
    if (imported == NULL) {
        return -1;
    }
    Py_XSETREF(builtins, Py_NewRef(PyModule_GetDict(imported)));
    Py_DECREF(imported);
    Py_XSETREF(noted, PyDict_New());
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (noted != NULL && PyDict_Next(builtins, &at, &name, &value)) {
        /* Everything callable; `_` and the like are not builtins. */
        if (PyUnicode_CheckExact(name) && PyCallable_Check(value) && PyDict_SetItem(noted, name, value) < 0) {
            return -1;
        }
    }
    for (size_t i = 0; noted != NULL && i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        if (PyDict_DelItemString(noted, ignored[i]) < 0) {
            PyErr_Clear(); /* python -S lacks some */
        }
    }
    return noted != NULL ? 0 : -1;
}
