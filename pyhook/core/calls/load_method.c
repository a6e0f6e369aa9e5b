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

static PyMethodDef functions[] = {
    {"load_method", (PyCFunction)(void (*)(void))load_method, METH_FASTCALL,
     "load_method(object, name)\n\nThe method that a call of object.name(...) calls."},
    {NULL, NULL, 0, NULL},
};

int
gd_load_method_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
