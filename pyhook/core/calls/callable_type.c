/* The Callable type that optimize() returns, and its constructors. Its calls are in calls/callable_call.c, its
 * attributes in calls/callable_attrs.c. */
#include <stddef.h>

#include "calls/callable.h"
#include "calls/callable_attrs.h"
#include "calls/callable_call.h"
#include "calls/tail_call.h"

/* Returns a new Callable, or NULL with an exception set. Borrows all arguments; self and wrapped may be NULL. */
static PyObject *
make(PyFunctionObject *function, PyObject *self, gd_Root *root, PyObject *wrapped, int kind)
{
    PyTypeObject *type = self != NULL ? &gd_BoundCallable_Type : &gd_Callable_Type;
    gd_FrameCache *cache = gd_frame_cache_of(function);
    if (cache == NULL) {
        return NULL;
    }
    gd_Callable *w = PyObject_GC_New(gd_Callable, type);
    if (w == NULL) {
        Py_DECREF(cache);
        return NULL;
    }
    w->vectorcall = kind == GD_FRAME_RESUME ? gd_resume_vectorcall : gd_callable_vectorcall;
    w->function = (PyFunctionObject *)Py_NewRef(function);
    w->self_object = Py_XNewRef(self);
    w->cache = cache;
    w->root = (gd_Root *)Py_NewRef(root);
    w->kind = kind;
    w->wrapped = Py_XNewRef(wrapped);
    w->dict = NULL;
    w->weakreflist = NULL;
    PyObject_GC_Track(w);
    return (PyObject *)w;
}

/* Implements tp_new. Returns a new Callable, or NULL with an exception set. */
static PyObject *
callable_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", "self", "options", "wrapped", "root", NULL};
    PyFunctionObject *function;
    PyObject *self = Py_None, *options = Py_None, *wrapped = Py_None, *root = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OO$OO:Callable", keywords, &PyFunction_Type, &function, &self,
                                     &options, &wrapped, &root)) {
        return NULL;
    }
    gd_Root *family;
    if (root == Py_None) {
        family = gd_root_new(options);
    }
    else if (Py_IS_TYPE(root, &gd_Root_Type)) {
        family = (gd_Root *)Py_NewRef(root);
    }
    else {
        return PyErr_Format(PyExc_TypeError, "root must be a Root, not %s", Py_TYPE(root)->tp_name);
    }
    if (family == NULL) {
        return NULL;
    }
    self = self == Py_None ? NULL : self;
    PyObject *method = NULL;
    if (wrapped == Py_None || wrapped == (PyObject *)function) {
        wrapped = NULL;
        if (self != NULL) {
            wrapped = method = PyMethod_New((PyObject *)function, self);
            if (method == NULL) {
                Py_DECREF(family);
                return NULL;
            }
        }
    }
    PyObject *w = make(function, self, family, wrapped, GD_FRAME_DIRECT);
    /* Copy the attributes that the user set on the function, as functools.update_wrapper does. */
    if (w != NULL && (wrapped == NULL || method != NULL) && function->func_dict != NULL
        && PyDict_GET_SIZE(function->func_dict) > 0) {
        ((gd_Callable *)w)->dict = PyDict_Copy(function->func_dict);
        if (((gd_Callable *)w)->dict == NULL) {
            Py_CLEAR(w);
        }
    }
    Py_XDECREF(method);
    Py_DECREF(family);
    return w;
}

PyObject *
gd_callable_function(PyObject *obj, PyObject **self)
{
    if (!gd_callable_check(obj)) {
        return NULL;
    }
    gd_Callable *w = (gd_Callable *)obj;
    if (self != NULL) {
        *self = w->self_object;
    }
    return (PyObject *)w->function;
}

gd_Root *
gd_root_of(PyObject *obj)
{
    if (Py_IS_TYPE(obj, &gd_Root_Type)) {
        return (gd_Root *)obj;
    }
    return gd_callable_check(obj) ? ((gd_Callable *)obj)->root : NULL;
}

PyObject *
gd_resume_new(PyObject *owner, PyObject *function)
{
    gd_Root *root = gd_root_of(owner);
    if (root == NULL || !PyFunction_Check(function)) {
        return PyErr_Format(PyExc_TypeError, "resume_new needs a Callable or Root and a function, not %s and %s",
                            Py_TYPE(owner)->tp_name, Py_TYPE(function)->tp_name);
    }
    return make((PyFunctionObject *)function, NULL, root, NULL, GD_FRAME_RESUME);
}

/* ---- the type: its slots return new references, or NULL with an exception set ---- */

static int
callable_traverse(gd_Callable *w, visitproc visit, void *arg)
{
    Py_VISIT(w->function);
    Py_VISIT(w->self_object);
    Py_VISIT(w->cache);
    Py_VISIT(w->root);
    Py_VISIT(w->wrapped);
    Py_VISIT(w->dict);
    return 0;
}

/* Implements tp_clear. Keeps the field `function`, which the names and the repr read: the function's own tp_clear
 * breaks the cycles that contain the function. */
static int
callable_clear(gd_Callable *w)
{
    w->vectorcall = gd_cleared_vectorcall;
    Py_CLEAR(w->self_object);
    Py_CLEAR(w->cache);
    Py_CLEAR(w->root);
    Py_CLEAR(w->wrapped);
    Py_CLEAR(w->dict);
    return 0;
}

static void
callable_dealloc(gd_Callable *w)
{
    PyObject_GC_UnTrack(w);
    /* Callables may form a long chain, each in the closure of the one before. Freeing such a chain must not recurse
     * once per Callable. */
    Py_TRASHCAN_BEGIN(w, callable_dealloc) if (w->weakreflist != NULL)
    {
        PyObject_ClearWeakRefs((PyObject *)w);
    }
    callable_clear(w);
    Py_CLEAR(w->function);
    PyObject_GC_Del(w);
    Py_TRASHCAN_END
}

/* Implements tp_descr_get as functions do: access through the class yields the Callable itself, access through an
 * instance a bound method. Returns a new reference, or NULL with an exception set. */
static PyObject *
callable_descr_get(PyObject *op, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(op);
    }
    return PyMethod_New(op, instance);
}

static PyObject *
bound_descr_get(PyObject *op, PyObject *Py_UNUSED(instance), PyObject *Py_UNUSED(owner))
{
    return Py_NewRef(op);
}

#define CALLABLE_SLOTS \
    .tp_basicsize = sizeof(gd_Callable), .tp_vectorcall_offset = offsetof(gd_Callable, vectorcall), \
    .tp_call = PyVectorcall_Call, .tp_traverse = (traverseproc)callable_traverse, .tp_clear = (inquiry)callable_clear, \
    .tp_dealloc = (destructor)callable_dealloc, .tp_repr = gd_callable_repr, .tp_methods = gd_callable_methods, \
    .tp_members = gd_callable_members, .tp_getset = gd_callable_getset, .tp_new = callable_new, \
    .tp_dictoffset = offsetof(gd_Callable, dict), .tp_weaklistoffset = offsetof(gd_Callable, weakreflist)

PyTypeObject gd_Callable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.Callable",
    .tp_doc = "Callable(function, self=None, options=None, *, wrapped=None, root=None)\n"
              "An optimized function; with self, an optimized bound method.",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_descr_get = callable_descr_get,
    CALLABLE_SLOTS,
};

PyTypeObject gd_BoundCallable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.BoundCallable",
    .tp_doc = "A Callable with a self: storing it in a class does not bind it again.",
    .tp_base = &gd_Callable_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_descr_get = bound_descr_get,
    CALLABLE_SLOTS,
};

static PyObject *
resume_new(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *owner, *function;
    if (!PyArg_ParseTuple(args, "OO:resume_new", &owner, &function)) {
        return NULL;
    }
    return gd_resume_new(owner, function);
}

static PyMethodDef functions[] = {
    {"resume_new", resume_new, METH_VARARGS,
     "resume_new(owner, function): a Callable for the rest of a frame, in owner's family."},
    {NULL, NULL, 0, NULL},
};

int
gd_callable_init(PyObject *module)
{
    if (PyModule_AddType(module, &gd_Callable_Type) < 0 || PyModule_AddType(module, &gd_BoundCallable_Type) < 0
        || PyModule_AddIntConstant(module, "FRAME_DIRECT", GD_FRAME_DIRECT) < 0
        || PyModule_AddIntConstant(module, "FRAME_HOOK", GD_FRAME_HOOK) < 0
        || PyModule_AddIntConstant(module, "FRAME_RESUME", GD_FRAME_RESUME) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
