#include "calls/tail_call.h"

#include "cache/extra_state.h"
#include "interrupt.h"
#include "calls/rerun.h"
#include "runtime.h"

static PyObject *look; /* strong: a Python function that does nothing. CPython looks for requests where it begins. */

typedef struct gd_TailCall {
    PyObject_VAR_HEAD gd_Callable *w;     /* strong */
    PyObject *
        frame; /* strong: of the function that made it, where something holds its frame object (a traceback); or NULL */
    PyObject *args[1]; /* strong, ob_size of them until they are handed over */
} gd_TailCall;

static void
drop_args(gd_TailCall *t)
{
    Py_ssize_t n = Py_SIZE(t);
    Py_SET_SIZE(t, 0);
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_DECREF(t->args[i]);
    }
}

/* The eval-frame function for one frame: the rest of the user's function, which has taken references of its own to its
 * arguments. */
static PyObject *
eval_handed_over(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    gd_TailCall *t = gd_thread.handing;
    gd_py_eval_function to = gd_thread.handing_to;
    gd_thread.handing = NULL;
    gd_py_set_eval(tstate, to);
    drop_args(t);
    return to(tstate, frame, throwflag);
}

PyObject *
gd_call_handing_over(PyThreadState *tstate, vectorcallfunc call, PyObject *function, PyObject *const *args, size_t n)
{
    gd_TailCall *t = gd_thread.tail;
    if (t == NULL) {
        return call(function, args, n, NULL);
    }
    gd_thread.tail = NULL;
    gd_thread.handing = t;
    gd_thread.handing_to = gd_py_get_eval(tstate);
    gd_py_set_eval(tstate, eval_handed_over);
    PyObject *result = call(function, args, n, NULL);
    if (GD_UNLIKELY(gd_thread.handing == t)) { /* no memory for a frame */
        gd_thread.handing = NULL;
        gd_py_set_eval(tstate, gd_thread.handing_to);
    }
    return result;
}

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
    t->frame = gd_py_running_frame(gd_py_thread_state());
    for (Py_ssize_t i = 0; i < n; i++) {
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

/* The user's frame goes on in another: what the one that has ended holds is not its any more. */
static void
clear_frame(gd_TailCall *t)
{
    PyObject *cleared = PyObject_CallMethod(t->frame, "clear", NULL);
    if (cleared == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(cleared);
    Py_CLEAR(t->frame);
}

/* Has CPython look for requests: signals, another thread's exception, another thread that waits for the GIL. 0, or -1 with an exception
 * that came from outside. A signal's handler is given the frame that runs now, so it comes before `look`. */
static int
look_for_requests(void)
{
    if (PyErr_CheckSignals() < 0) {
        return -1;
    }
    PyObject *none = PyObject_CallNoArgs(look);
    if (none == NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Py_CLEAR(traceback); /* one frame: that of `look` */
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    Py_DECREF(none);
    return 0;
}

PyObject *
gd_run_tail_calls(PyObject *result)
{
    struct gd_TailCall *outer = gd_thread.tail;
    while (result != NULL && Py_IS_TYPE(result, &gd_TailCall_Type)) {
        gd_TailCall *t = (gd_TailCall *)result;
        if (GD_UNLIKELY(t->frame != NULL)) {
            clear_frame(t);
        }
        /* The rest of the frame has not begun, so its own code can raise what arrives now: at the first place where CPython looks. */
        if (GD_UNLIKELY(gd_py_has_requests(gd_py_thread_state())) && !gd_thread.holds && look_for_requests() < 0) {
            gd_rerun_prepare(NULL, 1);
            result = gd_callable_run_again(t->w, t->args, (size_t)Py_SIZE(t));
            Py_DECREF(t);
            continue;
        }
        gd_thread.tail = t;
        result = gd_callable_call((PyObject *)t->w, t->args, (size_t)Py_SIZE(t), NULL);
        Py_DECREF(t);
    }
    gd_thread.tail = outer;
    return result;
}

static void
tail_call_dealloc(gd_TailCall *t)
{
    drop_args(t);
    Py_XDECREF(t->frame);
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
    if (PyType_Ready(&gd_TailCall_Type) < 0 || PyModule_AddFunctions(module, functions) < 0) {
        return -1;
    }
    PyObject *names = PyModule_GetDict(module);
    look = PyRun_String("lambda: None", Py_eval_input, names, names);
    return look != NULL ? gd_code_mark((PyCodeObject *)PyFunction_GET_CODE(look), GD_CODE_OURS) : -1;
}
