/* TailCall, and how a frame takes over its references: see calls/tail_call.h. */
#include "calls/tail_call.h"

#include "runtime.h"

static void
drop_args(gd_TailCall *t)
{
    Py_ssize_t n = Py_SIZE(t);
    Py_SET_SIZE(t, 0);
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_DECREF(t->args[i]);
    }
}

/* Evaluates one frame, the rest of the user's function. gd_call_handing_over installs this eval-frame function for
 * this frame only. The frame has references of its own to its arguments, so the TailCall's references are dropped
 * first. Returns a new reference, or NULL with an exception set. */
static PyObject *
eval_handed_over(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    gd_TailCall *t = gd_thread.handing;
    gd_py_eval_function to = gd_thread.handing_to;
    gd_thread.handing = NULL;
    gd_py_set_eval(tstate, to);
    drop_args(t);
    return to == _PyEval_EvalFrameDefault ? gd_py_eval_default(tstate, frame, throwflag) : to(tstate, frame, throwflag);
}

PyObject *
gd_call_handing_over(PyThreadState *tstate, vectorcallfunc call, PyObject *function, PyObject *const *args, size_t n)
{
    gd_TailCall *t = gd_thread.tail;
    if (t == NULL) {
        return gd_py_call_function(tstate, call, function, args, n, NULL);
    }
    gd_thread.tail = NULL;
    gd_thread.handing = t;
    gd_thread.handing_to = gd_py_get_eval(tstate);
    gd_py_set_eval(tstate, eval_handed_over);
    PyObject *result = gd_py_call_function(tstate, call, function, args, n, NULL);
    if (GD_UNLIKELY(gd_thread.handing == t)) { /* no frame has started, for lack of memory */
        gd_thread.handing = NULL;
        gd_py_set_eval(tstate, gd_thread.handing_to);
    }
    return result;
}

gd_TailCall *
gd_tail_call_new(gd_Callable *w, Py_ssize_t n)
{
    gd_TailCall *t = PyObject_NewVar(gd_TailCall, &gd_TailCall_Type, n);
    if (t != NULL) {
        t->w = (gd_Callable *)Py_NewRef(w);
        t->frame = gd_py_running_frame(gd_py_thread_state());
        t->outer = t->chain = NULL;
        t->unit = -1;
        t->plain = 0;
    }
    return t;
}

PyObject *
gd_resume_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) {
        PyErr_SetString(PyExc_TypeError, "a resume function takes no keyword arguments");
        return NULL;
    }
    gd_TailCall *t = gd_tail_call_new((gd_Callable *)op, n);
    for (Py_ssize_t i = 0; t != NULL && i < n; i++) {
        t->args[i] = Py_NewRef(args[i]);
    }
    return (PyObject *)t;
}

PyObject *
gd_tail_call_last(PyObject *value)
{
    if (value == NULL || !Py_IS_TYPE(value, &gd_TailCall_Type) || Py_SIZE(value) == 0) {
        return NULL;
    }
    return ((gd_TailCall *)value)->args[Py_SIZE(value) - 1];
}

static void
tail_call_dealloc(gd_TailCall *t)
{
    drop_args(t);
    Py_XDECREF(t->frame);
    Py_XDECREF(t->outer);
    Py_XDECREF(t->chain);
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

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

static PyObject *
hand_over(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    gd_TailCall *t = gd_thread.tail;
    gd_thread.tail = NULL;
    if (t != NULL) {
        drop_args(t);
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"hand_over", hand_over, METH_NOARGS,
     "Called by the rest of a frame when it cannot run again from its start any more: its variables are its own from "
     "here on."},
    {NULL, NULL, 0, NULL},
};

int
gd_tail_call_init(PyObject *module)
{
    return PyType_Ready(&gd_TailCall_Type) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

void
gd_require_exception(void)
{
    if (PyErr_Occurred() == NULL) {
        PyErr_NoMemory();
    }
}
