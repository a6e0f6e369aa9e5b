/* See calls/quiet_call.h. Slots return new references, or NULL with an exception set. */
#include "calls/quiet_call.h"

#include "interrupt.h"
#include "structmember.h"

/* The keyword names of a quiet call. */
typedef struct {
    PyObject_HEAD PyObject *names; /* strong tuple of str */
} keywords;

static PyObject *
keywords_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"names", NULL};
    PyObject *tuple;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Keywords", names, &PyTuple_Type, &tuple)) {
        return NULL;
    }
    keywords *k = PyObject_New(keywords, type);
    if (k != NULL) {
        k->names = Py_NewRef(tuple);
    }
    return (PyObject *)k;
}

static void
keywords_dealloc(keywords *k)
{
    Py_DECREF(k->names);
    PyObject_Free(k);
}

static PyMemberDef keywords_members[] = {
    {"names", T_OBJECT_EX, offsetof(keywords, names), READONLY, "the names"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject keywords_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.Keywords",
    .tp_doc = "Keywords(names): the names of a quiet call's last arguments, as its last item.",
    .tp_basicsize = sizeof(keywords),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = keywords_new,
    .tp_members = keywords_members,
    .tp_dealloc = (destructor)keywords_dealloc,
};

/* Makes the call that the items of key describe. Returns a new reference, or NULL with an exception set. */
static PyObject *
call_items(PyObject *key)
{
    Py_ssize_t n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 0;
    if (n == 0) {
        PyErr_SetString(PyExc_TypeError, "a quiet call is a tuple of a callable and its arguments");
        return NULL;
    }
    PyObject *const *items = &PyTuple_GET_ITEM(key, 0);
    PyObject *names = NULL;
    if (n > 1 && Py_IS_TYPE(items[n - 1], &keywords_type)) {
        names = ((keywords *)items[--n])->names;
        if (PyTuple_GET_SIZE(names) >= n) {
            PyErr_SetString(PyExc_TypeError, "a quiet call with more keywords than arguments");
            return NULL;
        }
    }
    size_t positional = (size_t)(n - 1 - (names != NULL ? PyTuple_GET_SIZE(names) : 0));
    return PyObject_Vectorcall(items[0], items + 1, positional, names);
}

static PyObject *
quiet_call(PyObject *Py_UNUSED(calls), PyObject *key)
{
    return call_items(key);
}

static PyObject *
held_call(PyObject *Py_UNUSED(calls), PyObject *key)
{
    int held = gd_hold_signals();
    PyObject *result = call_items(key);
    gd_release_signals(held);
    return result;
}

static PyMappingMethods as_quiet = {.mp_subscript = quiet_call}, as_held = {.mp_subscript = held_call};

static PyTypeObject quiet_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.QuietCalls",
    .tp_doc = "QuietCalls()[f, *args] is f(*args), after which CPython looks for no signal.",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_as_mapping = &as_quiet,
};

static PyTypeObject held_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.HeldCalls",
    .tp_doc = "HeldCalls()[f, *args] is f(*args) with signals held back, after which CPython looks for none.",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_as_mapping = &as_held,
};

static int
add_instance(PyObject *module, const char *name, PyTypeObject *type)
{
    if (PyType_Ready(type) < 0) {
        return -1;
    }
    PyObject *instance = PyObject_New(PyObject, type);
    int failed = instance == NULL || PyModule_AddObjectRef(module, name, instance) < 0;
    Py_XDECREF(instance);
    return failed ? -1 : 0;
}

int
gd_quiet_call_init(PyObject *module)
{
    if (PyModule_AddType(module, &keywords_type) < 0 || add_instance(module, "quiet_calls", &quiet_type) < 0) {
        return -1;
    }
    return add_instance(module, "held_calls", &held_type);
}
