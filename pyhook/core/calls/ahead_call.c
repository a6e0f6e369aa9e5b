/* See calls/ahead_call.h. Slots return new references, or NULL with an exception set. */
#include "calls/ahead_call.h"

#include <string.h>

#include "structmember.h"

typedef struct {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function; /* strong */
    char begun;         /* whether it has been called */
} ahead_call;

static PyObject *
ahead_call_run(PyObject *self, PyObject *const *args, size_t n, PyObject *names)
{
    ahead_call *c = (ahead_call *)self;
    if (!c->begun) {
        c->begun = 1;
        Py_RETURN_NONE;
    }
    return PyObject_Vectorcall(c->function, args, n, names);
}

static PyObject *
ahead_call_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:AheadCall", names, &function)) {
        return NULL;
    }
    ahead_call *c = PyObject_GC_New(ahead_call, type);
    if (c != NULL) {
        c->call = ahead_call_run;
        c->function = Py_NewRef(function);
        c->begun = 0;
        PyObject_GC_Track(c);
    }
    return (PyObject *)c;
}

static int
ahead_call_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((ahead_call *)self)->function);
    return 0;
}

static int
ahead_call_clear(PyObject *self)
{
    Py_CLEAR(((ahead_call *)self)->function);
    return 0;
}

static void
ahead_call_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    ahead_call_clear(self);
    PyObject_GC_Del(self);
}

static PyMemberDef ahead_call_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ahead_call, call), READONLY, NULL},
    {"function", T_OBJECT_EX, offsetof(ahead_call, function), READONLY, "what is called"},
    {"begun", T_BOOL, offsetof(ahead_call, begun), READONLY, "whether it has been called"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject ahead_call_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.AheadCall",
    .tp_doc = "AheadCall(function): does nothing when called first, and calls function from then on.",
    .tp_basicsize = sizeof(ahead_call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(ahead_call, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = ahead_call_new,
    .tp_members = ahead_call_members,
    .tp_traverse = ahead_call_traverse,
    .tp_clear = ahead_call_clear,
    .tp_dealloc = ahead_call_dealloc,
};

/* lru_list_elem of Modules/_functoolsmodule.c, from 3.11 to 3.14. No header declares it, so the module that uses
 * link_holds (_translator/caches.py) tries it with real links first. */
typedef struct {
    PyObject_HEAD void *previous, *next;
    Py_hash_t hash;
    PyObject *key, *result;
} cache_link;

static PyObject *
link_holds(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *link, *value;
    if (!PyArg_ParseTuple(args, "OO:link_holds", &link, &value)) {
        return NULL;
    }
    int known = Py_TYPE(link)->tp_basicsize == sizeof(cache_link)
                && strcmp(Py_TYPE(link)->tp_name, "functools._lru_list_elem") == 0;
    return PyBool_FromLong(known && ((cache_link *)link)->result == value);
}

static PyMethodDef methods[] = {
    {"link_holds", link_holds, METH_VARARGS,
     "link_holds(link, value) -> bool\n\nWhether a link of functools.lru_cache holds this result."},
    {NULL, NULL, 0, NULL},
};

int
gd_ahead_call_init(PyObject *module)
{
    return PyModule_AddType(module, &ahead_call_type) < 0 ? -1 : PyModule_AddFunctions(module, methods);
}
