#include "calls/load_method.h"

/* Implements load_method(object, name): does a LOAD_METHOD and returns its result as one value, a new reference, or
 * NULL with an exception set. If the method is a C method of another type, the error must come from the call, after
 * the call's arguments are evaluated. Binding such a method would raise at once, so it is wrapped in a method
 * object, which raises when it is called. */
static PyObject *
load_method(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    PyObject *method = NULL;
    if (n != 2 || !PyUnicode_Check(args[1])) {
        return PyErr_Format(PyExc_TypeError, "load_method: an object and a name");
    }
    if (!_PyObject_GetMethod(args[0], args[1], &method)) {
        return method;
    }
    int descriptor = Py_IS_TYPE(method, &PyMethodDescr_Type) || Py_IS_TYPE(method, &PyWrapperDescr_Type);
    PyObject *bound = descriptor && !PyObject_TypeCheck(args[0], PyDescr_TYPE(method))
                          ? PyMethod_New(method, args[0])
                          : Py_TYPE(method)->tp_descr_get(method, args[0], (PyObject *)Py_TYPE(args[0]));
    Py_DECREF(method);
    return bound;
}

/* Raises what `with manager:` raises for a manager without `__exit__`, by running one: the texts are CPython's. */
static void
raise_no_exit(PyObject *manager)
{
    PyObject *globals = Py_BuildValue("{sO}", "manager", manager);
    if (globals == NULL) {
        return;
    }
    Py_XDECREF(PyRun_String("with manager:\n    pass\n", Py_file_input, globals, globals));
    Py_DECREF(globals);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL && PyException_SetTraceback(value, Py_None) < 0) {
        PyErr_Clear();
    }
    PyErr_Restore(type, value, NULL);
}

/* Implements load_exit(manager): returns the bound `__exit__` of the manager's class, a new reference, or NULL with
 * an exception set. */
static PyObject *
load_exit(PyObject *Py_UNUSED(module), PyObject *manager)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("__exit__")) == NULL) {
        return NULL;
    }
    PyObject *exit = _PyType_Lookup(Py_TYPE(manager), name);
    if (exit == NULL) {
        if (!PyErr_Occurred()) {
            raise_no_exit(manager);
        }
        return NULL;
    }
    Py_INCREF(exit);
    descrgetfunc get = Py_TYPE(exit)->tp_descr_get;
    PyObject *bound = get == NULL ? Py_NewRef(exit) : get(exit, manager, (PyObject *)Py_TYPE(manager));
    Py_DECREF(exit);
    return bound;
}

static PyMethodDef functions[] = {
    {"load_method", (PyCFunction)(void (*)(void))load_method, METH_FASTCALL,
     "load_method(object, name)\n\nThe method that a call of object.name(...) calls."},
    {"load_exit", load_exit, METH_O, "load_exit(manager)\n\nThe `__exit__` that leaving a with block calls."},
    {NULL, NULL, 0, NULL},
};

int
gd_load_method_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
