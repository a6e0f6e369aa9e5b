/* What runs after an operation with a side exit has raised: see calls/outer_frames.h. */
#include "calls/outer_frames.h"

#include "calls/traceback.h"

/* Returns a new TailCall of a resume function with the arguments in a tuple and `last` (borrowed), or NULL with an
 * exception set. */
static gd_TailCall *
tail_call_of(PyObject *function, PyObject *args, PyObject *last, int plain)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    gd_TailCall *t = gd_tail_call_new((gd_Callable *)function, n + 1);
    if (t != NULL) {
        for (Py_ssize_t i = 0; i < n; i++) {
            t->args[i] = Py_NewRef(PyTuple_GET_ITEM(args, i));
        }
        t->args[n] = Py_NewRef(last);
        t->plain = plain;
    }
    return t;
}

/* Runs a resume function of `outer` with its arguments and `last` (stolen). From then on, only the frame that runs owns
 * its variables. Returns a new reference, or NULL with an exception set. */
static PyObject *
run_rest(PyObject *outer, Py_ssize_t at, PyObject *last, int plain)
{
    gd_TailCall *t = tail_call_of(PyTuple_GET_ITEM(outer, at), PyTuple_GET_ITEM(outer, at + 1), last, plain);
    Py_DECREF(last);
    Py_ssize_t frame = at / GD_PER_FRAME * GD_PER_FRAME;
    for (Py_ssize_t i = frame + 1; i < frame + GD_PER_FRAME; i += 2) {
        PyObject *given = PyTuple_GET_ITEM(outer, i);
        PyTuple_SET_ITEM(outer, i, NULL);
        Py_DECREF(given);
    }
    return t != NULL ? gd_run_tail_calls((PyObject *)t) : NULL;
}

/* Takes the pending exception, and adds the user frame `item` (NULL: unknown) to its traceback. Returns a new
 * reference, or NULL with an exception set for lack of memory. */
static PyObject *
caught(PyObject *item)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (item != NULL) {
        PyObject *longer = gd_traceback_with(item, traceback);
        PyErr_Clear(); /* if memory is exhausted, the traceback lacks a frame */
        if (longer != NULL) {
            Py_XSETREF(traceback, longer);
        }
    }
    if (value != NULL) {
        PyException_SetTraceback(value, traceback != NULL ? traceback : Py_None);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

PyObject *
gd_run_outer_frames(gd_TailCall *t)
{
    PyObject *outer = t->outer, *chain = t->chain;
    int plain = t->plain;
    t->outer = t->chain = NULL;
    PyObject *result = gd_run_tail_calls((PyObject *)t);
    Py_ssize_t n = PyTuple_GET_SIZE(outer) / GD_PER_FRAME;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t at = i * GD_PER_FRAME, level = n - 1 - i;
        if (result != NULL) {
            result = run_rest(outer, at, result, plain);
            continue;
        }
        int known = chain != NULL && level < PyTuple_GET_SIZE(chain);
        PyObject *error = caught(known ? PyTuple_GET_ITEM(chain, level) : NULL);
        if (error == NULL) {
            continue;
        }
        if (PyTuple_GET_ITEM(outer, at + 2) != Py_None) {
            result = run_rest(outer, at + 2, error, plain);
            continue;
        }
        PyErr_Restore(Py_NewRef(Py_TYPE(error)), error, PyException_GetTraceback(error));
    }
    Py_XDECREF(chain);
    Py_DECREF(outer);
    return result;
}

/* Implements go_on. Returns a new TailCall, or NULL with an exception set. */
static PyObject *
go_on(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (n < 4 || n % GD_PER_FRAME != 0 || !gd_callable_check(args[1]) || !PyTuple_Check(args[2])) {
        return PyErr_Format(PyExc_TypeError,
                            "go_on: a flag, resume functions, their arguments and what the first gets");
    }
    PyObject *outer = NULL;
    if (n > 4) {
        outer = PyTuple_New(n - 4);
        if (outer == NULL) {
            return NULL;
        }
        for (Py_ssize_t i = 3; i < n - 1; i++) {
            PyTuple_SET_ITEM(outer, i - 3, Py_NewRef(args[i]));
        }
    }
    gd_TailCall *t = tail_call_of(args[1], args[2], args[n - 1], args[0] == Py_True);
    if (t == NULL) {
        Py_XDECREF(outer);
        return NULL;
    }
    t->outer = outer;
    if (!PyExceptionInstance_Check(args[n - 1])) { /* there is no traceback that tells where the frames are */
        PyFrameObject *frame = PyEval_GetFrame();
        t->unit = frame != NULL ? PyFrame_GetLasti(frame) / (int)sizeof(_Py_CODEUNIT) : -1;
    }
    return (PyObject *)t;
}

static PyMethodDef functions[] = {
    {"go_on", (PyCFunction)(void (*)(void))go_on, METH_FASTCALL,
     "Called by transformed code if an operation that must not run twice has raised inside a block, or has not done "
     "what "
     "was predicted."},
    {NULL, NULL, 0, NULL},
};

int
gd_outer_frames_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
