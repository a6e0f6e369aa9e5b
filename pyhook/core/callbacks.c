/* Calls into godynamo's Python modules, internal errors, graphs that raise: see callbacks.h. Functions for Python
 * return new references, or NULL with an exception set. */
#include "callbacks.h"

#include "calls/other_hook.h"
#include "interrupt.h"

/* The callbacks and the modules that define them; set_callback overrides a callback. A callback is looked up at
 * each use: none is on a hot path, and if its module is replaced or reloaded, no stale function may remain here. */
static struct {
    const char *name, *module;
    PyObject *override; /* strong or NULL */
} callbacks[] = {
    /* clang-format off */
    {"limit_reached", "godynamo._called.runtime", NULL},
    {"internal_error", "godynamo._called.runtime", NULL},
    {"refused", "godynamo._called.runtime", NULL},
    {"compile_start", "godynamo.callback", NULL},
    {"compile_end", "godynamo.callback", NULL},
    {"graph_failed", "godynamo._called.runtime", NULL},
    {"may_run_again", "godynamo._called.runtime", NULL},
    {"is_user_error", "godynamo._called.runtime", NULL},
    {"user_frames", "godynamo._called.graph_traceback", NULL},
    {"skip_code", "godynamo._translator.trace_rules", NULL},
    {"names_torch", "godynamo._translator.trace_rules", NULL},
    {"leave_dispatch_modes", "godynamo._called.torch_state", NULL},
    /* clang-format on */
};
#define NCALLBACKS (sizeof(callbacks) / sizeof(callbacks[0]))

PyObject *
gd_call_python(const char *name, PyObject *arg)
{
    PyObject *callable = NULL, *result = NULL;
    int held = gd_hold_signals();
    gd_thread.translating++;
    PyObject *torch_callback = PyErr_Occurred() ? NULL : gd_torch_quiet();
    for (size_t i = 0; i < NCALLBACKS; i++) {
        if (strcmp(callbacks[i].name, name) != 0) {
            continue;
        }
        if (callbacks[i].override != NULL) {
            callable = Py_NewRef(callbacks[i].override);
            break;
        }
        PyObject *module = gd_import(callbacks[i].module);
        if (module != NULL) {
            callable = PyObject_GetAttrString(module, name);
            Py_DECREF(module);
        }
        break;
    }
    if (callable != NULL) {
        result = PyObject_CallOneArg(callable, arg);
        Py_DECREF(callable);
    }
    else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_SystemError, "no callback named %s", name);
    }
    gd_torch_resume(torch_callback);
    gd_thread.translating--;
    gd_release_signals(held);
    return result;
}

static PyObject *
set_callback(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name;
    PyObject *callable;
    if (!PyArg_ParseTuple(args, "sO:set_callback", &name, &callable)) {
        return NULL;
    }
    for (size_t i = 0; i < NCALLBACKS; i++) {
        if (strcmp(callbacks[i].name, name) == 0) {
            PyObject *before = callbacks[i].override;
            callbacks[i].override = callable == Py_None ? NULL : Py_NewRef(callable);
            return before != NULL ? before : Py_NewRef(Py_None);
        }
    }
    return PyErr_Format(PyExc_ValueError, "no callback named %s", name);
}

static PyObject *
set_translate_callback(PyObject *Py_UNUSED(module), PyObject *arg)
{
    PyObject *before = gd_runtime.translate_callback;
    gd_runtime.translate_callback = arg == Py_None ? NULL : Py_NewRef(arg);
    return before != NULL ? before : Py_NewRef(Py_None);
}

/* ---- internal errors ---- */

void
gd_internal_error(const char *where, PyObject *function)
{
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) { /* no fault of godynamo's, and no memory to report it */
        PyErr_Clear();
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL && traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    GD_COUNT(internal_errors);
    gd_thread.internal_errors++;
    int ended = 0;
    if (!gd_runtime.broken && gd_runtime.max_internal_errors > 0
        && gd_runtime.counters[GD_COUNT_internal_errors] >= (uint64_t)gd_runtime.max_internal_errors) {
        gd_runtime.broken = 1;
        ended = 1;
    }
    PyObject *info = Py_BuildValue("{s:s,s:O,s:O,s:K,s:O}", "where", where, "error", value != NULL ? value : Py_None,
                                   "function", function != NULL ? function : Py_None, "count",
                                   (unsigned long long)gd_runtime.counters[GD_COUNT_internal_errors], "disabled",
                                   ended ? Py_True : Py_False);
    PyObject *result = info != NULL ? gd_call_python("internal_error", info) : NULL;
    if (result == NULL) {
        gd_swallow(function);
    }
    Py_XDECREF(result);
    Py_XDECREF(info);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

static PyObject *
report_internal_error(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *where;
    PyObject *function = NULL, *error = NULL;
    if (!PyArg_ParseTuple(args, "s|OO:report_internal_error", &where, &function, &error)) {
        return NULL;
    }
    if (error != NULL && PyExceptionInstance_Check(error)) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    }
    gd_internal_error(where, function);
    return PyBool_FromLong(gd_runtime.broken);
}

/* ---- graphs that raise ---- */

void
gd_keep_graph_error(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL && traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    Py_XSETREF(gd_thread.graph_error, value);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
}

void
gd_graph_error_done(PyObject *error, PyObject *function, PyObject *result)
{
    if (result != NULL) {
        PyObject *info = Py_BuildValue("{s:O,s:O}", "error", error, "function", function);
        PyObject *answer = info != NULL ? gd_call_python("graph_failed", info) : NULL;
        if (answer == NULL) {
            gd_swallow(function);
        }
        Py_XDECREF(answer);
        Py_XDECREF(info);
    }
    Py_DECREF(error);
}

static PyMethodDef functions[] = {
    {"set_callback", set_callback, METH_VARARGS,
     "set_callback(name, callable or None): replaces limit_reached, internal_error or skip_code; returns what stood "
     "there."},
    {"set_translate_callback", set_translate_callback, METH_O,
     "A Python translator in place of the Go library: called at a miss with a dict of the request, returns an entry "
     "(make_entry), None (run this call in CPython) or 'skip' (never translate this code). None takes it out again. "
     "Returns the one before."},
    {"report_internal_error", report_internal_error, METH_VARARGS,
     "report_internal_error(where, function=None, error=None): count an internal error; True once translation has "
     "ended."},
    {NULL, NULL, 0, NULL},
};

int
gd_callbacks_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
