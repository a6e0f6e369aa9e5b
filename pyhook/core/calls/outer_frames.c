/* What runs after an operation with a side exit has raised: see calls/outer_frames.h. */
#include "calls/outer_frames.h"

#include "calls/traceback.h"

/* Calls a resume function with the arguments in a tuple of `outer`, which gives them up, and `last` (stolen). Returns
 * a new reference, or NULL with an exception set. */
static PyObject *
call_rest(PyObject *outer, Py_ssize_t at, PyObject *last)
{
    PyObject *args = PyTuple_GET_ITEM(outer, at + 1);
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject **all = PyMem_Malloc(((size_t)n + 1) * sizeof(PyObject *));
    PyObject *result = NULL;
    if (all == NULL) {
        PyErr_NoMemory();
    }
    else {
        if (n > 0) {
            memcpy(all, &PyTuple_GET_ITEM(args, 0), (size_t)n * sizeof(PyObject *));
        }
        all[n] = last;
        result = PyObject_Vectorcall(PyTuple_GET_ITEM(outer, at), all, (size_t)n + 1, NULL);
        PyMem_Free(all);
    }
    Py_DECREF(last);
    Py_ssize_t frame = at / GD_PER_FRAME * GD_PER_FRAME; /* from now on, only the frame that runs owns its variables */
    for (Py_ssize_t i = frame + 1; i < frame + GD_PER_FRAME; i += 2) {
        PyObject *given = PyTuple_GET_ITEM(outer, i);
        PyTuple_SET_ITEM(outer, i, NULL);
        Py_DECREF(given);
    }
    return gd_finish_tail(result);
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
    t->outer = t->chain = NULL;
    PyObject *result = gd_run_tail_calls((PyObject *)t);
    Py_ssize_t n = PyTuple_GET_SIZE(outer) / GD_PER_FRAME;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t at = i * GD_PER_FRAME, level = n - 1 - i;
        if (result != NULL) {
            result = call_rest(outer, at, result);
            continue;
        }
        int known = chain != NULL && level < PyTuple_GET_SIZE(chain);
        PyObject *error = caught(known ? PyTuple_GET_ITEM(chain, level) : NULL);
        if (error == NULL) {
            continue;
        }
        if (PyTuple_GET_ITEM(outer, at + 2) != Py_None) {
            result = call_rest(outer, at + 2, error);
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
    if (n < 3 || n % GD_PER_FRAME != 3 || !gd_callable_check(args[0]) || !PyTuple_Check(args[1])) {
        return PyErr_Format(PyExc_TypeError, "go_on: resume functions, their arguments and an exception");
    }
    Py_ssize_t given = PyTuple_GET_SIZE(args[1]);
    PyObject *outer = n > 3 ? PyTuple_New(n - 3) : NULL;
    gd_TailCall *t = n > 3 && outer == NULL ? NULL : gd_tail_call_new((gd_Callable *)args[0], given + 1);
    if (t == NULL) {
        Py_XDECREF(outer);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < given; i++) {
        t->args[i] = Py_NewRef(PyTuple_GET_ITEM(args[1], i));
    }
    t->args[given] = Py_NewRef(args[n - 1]);
    for (Py_ssize_t i = 2; i < n - 1; i++) {
        PyTuple_SET_ITEM(outer, i - 2, Py_NewRef(args[i]));
    }
    t->outer = outer;
    return (PyObject *)t;
}

static PyMethodDef functions[] = {
    {"go_on", (PyCFunction)(void (*)(void))go_on, METH_FASTCALL,
     "Called by transformed code after an operation inside a block has raised that must not run twice."},
    {NULL, NULL, 0, NULL},
};

int
gd_outer_frames_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
