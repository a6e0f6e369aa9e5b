/* See calls/module_handle.h. Slots and functions return new references, or NULL with an exception set. */
#include "calls/module_handle.h"

#include <stddef.h>
#include <structmember.h>

#include "calls/callable.h"

/* Implements tp_call of handle classes. */
static PyObject *
handle_call(PyObject *op, PyObject *args, PyObject *kwargs)
{
    PyObject *call = ((gd_ModuleHandle *)op)->call;
    if (call == NULL) {
        return PyErr_Format(PyExc_TypeError, "this '%s' handle has nothing to call", Py_TYPE(op)->tp_name);
    }
    Py_INCREF(call);
    PyObject *result = PyObject_Call(call, args, kwargs);
    Py_DECREF(call);
    return result;
}

static PyObject *
handle_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *call = ((gd_ModuleHandle *)op)->call;
    /* If a program sets `__call__` of the handle class, CPython sets tp_call to its own function again, which finds
     * the new `__call__`. */
    if (GD_UNLIKELY(call == NULL || Py_TYPE(op)->tp_call != handle_call)) {
        return _PyObject_MakeTpCall(PyThreadState_Get(), op, args, PyVectorcall_NARGS(nargsf), kwnames);
    }
    Py_INCREF(call); /* the call may replace the field */
    PyObject *result = gd_callable_check(call) ? ((gd_Callable *)call)->vectorcall(call, args, nargsf, kwnames)
                                               : PyObject_Vectorcall(call, args, nargsf, kwnames);
    Py_DECREF(call);
    return result;
}

static int
handle_traverse(gd_ModuleHandle *h, visitproc visit, void *arg)
{
    Py_VISIT(h->call);
    Py_VISIT(h->module);
    Py_VISIT(h->again);
    Py_VISIT(h->forward);
    return 0;
}

static int
handle_clear(gd_ModuleHandle *h)
{
    Py_CLEAR(h->call);
    Py_CLEAR(h->module);
    Py_CLEAR(h->again);
    Py_CLEAR(h->forward);
    return 0;
}

static void
handle_dealloc(gd_ModuleHandle *h)
{
    PyObject_GC_UnTrack(h);
    handle_clear(h);
    Py_TYPE(h)->tp_free(h);
}

static PyMemberDef handle_members[] = {
    {"_godynamo_call", T_OBJECT_EX, offsetof(gd_ModuleHandle, call), 0, "What a call of the handle goes to."},
    {"_godynamo_module", T_OBJECT_EX, offsetof(gd_ModuleHandle, module), 0, "The original module."},
    {"_godynamo_again", T_OBJECT_EX, offsetof(gd_ModuleHandle, again), 0, "What optimizes a copy of the module."},
    {"_godynamo_forward", T_OBJECT, offsetof(gd_ModuleHandle, forward), 0, "The module's optimized forward, or None."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject gd_ModuleHandle_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.ModuleHandle",
    .tp_doc = "Base of the classes of handles: fields, and calls that go to the first of them.",
    .tp_basicsize = sizeof(gd_ModuleHandle),
    .tp_vectorcall_offset = offsetof(gd_ModuleHandle, vectorcall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)handle_traverse,
    .tp_clear = (inquiry)handle_clear,
    .tp_dealloc = (destructor)handle_dealloc,
    .tp_members = handle_members,
};

/* Makes a heap class a handle class. Heap classes do not inherit vectorcall, since they may define `__call__`, so
 * this function enables it. The class's `__call__` becomes the member descriptor of the field `call`, whose value
 * handle_call and handle_vectorcall call. */
static PyObject *
set_handle_class(PyObject *Py_UNUSED(module), PyObject *op)
{
    PyTypeObject *cls = (PyTypeObject *)op;
    if (!PyType_Check(op) || !(cls->tp_flags & Py_TPFLAGS_HEAPTYPE) || !PyType_IsSubtype(cls, &gd_ModuleHandle_Type)
        || cls->tp_vectorcall_offset != offsetof(gd_ModuleHandle, vectorcall)) {
        PyErr_SetString(PyExc_TypeError, "a class made with ModuleHandle as a base is needed");
        return NULL;
    }
    PyObject *name = PyUnicode_InternFromString("__call__");
    PyObject *member = PyObject_GetAttrString((PyObject *)&gd_ModuleHandle_Type, "_godynamo_call");
    /* Call type.__setattr__, since a metaclass's `__setattr__` is user code. */
    int failed = name != NULL && member != NULL ? PyType_Type.tp_setattro(op, name, member) : -1;
    Py_XDECREF(name);
    Py_XDECREF(member);
    if (failed) {
        return NULL;
    }
    cls->tp_call = handle_call;
    cls->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(cls);
    Py_RETURN_NONE;
}

static PyObject *
set_module_handle(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *handle, *call, *original, *again;
    if (!PyArg_ParseTuple(args, "O!OOO:set_module_handle", &gd_ModuleHandle_Type, &handle, &call, &original, &again)) {
        return NULL;
    }
    gd_ModuleHandle *h = (gd_ModuleHandle *)handle;
    Py_XSETREF(h->call, Py_NewRef(call));
    Py_XSETREF(h->module, Py_NewRef(original));
    Py_XSETREF(h->again, Py_NewRef(again));
    h->vectorcall = handle_vectorcall;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_handle_class", set_handle_class, METH_O,
     "set_handle_class(cls)\n\nGives a class with ModuleHandle among its bases the calls of handles."},
    {"set_module_handle", set_module_handle, METH_VARARGS,
     "set_module_handle(handle, call, module, again)\n\nFills a fresh handle."},
    {NULL, NULL, 0, NULL},
};

int
gd_module_handle_init(PyObject *module)
{
    /* A static type does not inherit tp_new. object.__new__ creates handles without calling the user's __new__. */
    gd_ModuleHandle_Type.tp_new = PyBaseObject_Type.tp_new;
    return PyModule_AddType(module, &gd_ModuleHandle_Type) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
