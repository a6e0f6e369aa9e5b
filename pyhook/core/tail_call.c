#include "tail_call.h"

typedef struct {
    PyObject_VAR_HEAD gd_Callable *w;     /* strong */
    PyObject *args[1];  /* strong, ob_size of them */
} gd_TailCall;

PyObject *
gd_resume_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) {
        PyErr_SetString(PyExc_TypeError, "a resume function takes no keyword arguments");
        return NULL;
    }
    gd_TailCall *t = PyObject_NewVar(gd_TailCall, &gd_TailCall_Type, n);
    if (t == NULL) {
        return NULL;
    }
    t->w = (gd_Callable *)Py_NewRef(op);
    for (Py_ssize_t i = 0; i < n; i++) {
        t->args[i] = Py_NewRef(args[i]);
    }
    return (PyObject *)t;
}

PyObject *
gd_run_tail_calls(PyObject *result)
{
    while (result != NULL && Py_IS_TYPE(result, &gd_TailCall_Type)) {
        gd_TailCall *t = (gd_TailCall *)result;
        result = gd_callable_call((PyObject *)t->w, t->args, (size_t)Py_SIZE(t), NULL);
        Py_DECREF(t);
    }
    return result;
}

static void
tail_call_dealloc(gd_TailCall *t)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(t); i++) {
        Py_DECREF(t->args[i]);
    }
    Py_DECREF(t->w);
    PyObject_Free(t);
}

PyTypeObject gd_TailCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.TailCall",
    .tp_doc = "The rest of a frame, on its way from a transformed function to what called it; never seen by programs.",
    .tp_basicsize = offsetof(gd_TailCall, args),
    .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)tail_call_dealloc,
};

int
gd_tail_call_init(PyObject *Py_UNUSED(module))
{
    return PyType_Ready(&gd_TailCall_Type);
}
