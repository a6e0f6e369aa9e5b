/* Tensor metadata read through Python: see torch/tensor_python.h. */
#include "torch/tensor_python.h"

#include "runtime.h"

PyObject *
gd_guard_env_function(const char *name)
{
    PyObject *module = gd_import("godynamo._called.guard_env");
    PyObject *function = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return function;
}

PyObject *
gd_tensor_python_state(PyObject *tensor)
{
    static PyObject *function;
    if (function == NULL && (function = gd_guard_env_function("tensor_state")) == NULL) {
        return NULL;
    }
    return PyObject_CallOneArg(function, tensor);
}

PyObject *
gd_tensor_field_text(int field, uint64_t raw)
{
    PyObject *function = gd_guard_env_function("field_text");
    PyObject *text = function != NULL ? PyObject_CallFunction(function, "iK", field, (unsigned long long)raw) : NULL;
    Py_XDECREF(function);
    if (text != NULL && PyUnicode_Check(text)) {
        return text;
    }
    PyErr_Clear();
    Py_XDECREF(text);
    return PyUnicode_FromFormat("%llu", (unsigned long long)raw);
}
