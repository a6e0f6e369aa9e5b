/* Implements torch/torch_fx.h. */
#include "torch/torch_fx.h"

#include "torch/torch_symbols.h"

gd_symbolic_tracer gd_fx;

void
gd_find_symbolic_tracer(gd_symbolic_tracer *fx)
{
    PyObject *module = gd_torch_attribute("nn.Module");
    PyObject *globals = module != NULL ? gd_torch_attribute("fx._symbolic_trace.__dict__") : NULL;
    if (globals != NULL && PyType_Check(module) && PyDict_Check(globals)) {
        *fx = (gd_symbolic_tracer){(PyTypeObject *)Py_NewRef(module), Py_NewRef(globals), 0};
    }
    Py_XDECREF(module);
    Py_XDECREF(globals);
    PyErr_Clear();
}

int
gd_look_for_symbolic_tracer(void)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("__call__")) == NULL) {
        PyErr_Clear();
        return 0;
    }
    PyObject *call = _PyType_Lookup(gd_fx.module, name); /* assigns the class a version */
    if (call != NULL && PyFunction_Check(call) && PyFunction_GET_GLOBALS(call) == gd_fx.globals) {
        return 1;
    }
    gd_fx.version = gd_py_type_gets_version(gd_fx.module) ? gd_fx.module->tp_version_tag : 0;
    return 0;
}
