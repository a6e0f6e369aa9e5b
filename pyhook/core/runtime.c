/* Settings, counters, callbacks, internal errors, headroom: see runtime.h. What Python calls returns new references,
 * NULL with an exception. */
#include "runtime.h"

#include "interrupt.h"
#include "calls/other_hook.h"

#include <pthread.h>
#include <stddef.h>

gd_runtime_state gd_runtime = {
    .enabled = 1,
    .cache_size_limit = 8,
    .cache_evict = 0,
    .fork_reload = 1,
    .inner_limit = 4096,
};

__thread gd_thread_state gd_thread;

static int disabled_threads;    /* threads in GD_MODE_DISABLED */
static int disabled_generation; /* fork generation in which they were counted */

/* ---- settings ---- */

static const struct {
    const char *name;
    int *where;
    int min, max;
} settings[] = {
    {"enabled", &gd_runtime.enabled, 0, 1},
    {"cache_size_limit", &gd_runtime.cache_size_limit, 0, INT_MAX},
    {"cache_evict", &gd_runtime.cache_evict, 0, 1},
    {"fork_reload", &gd_runtime.fork_reload, 0, 1},
    {"inner_limit", &gd_runtime.inner_limit, 0, 1 << 24},
    {"max_internal_errors", &gd_runtime.max_internal_errors, 0, 1 << 20},
    {"stance", &gd_runtime.stance, GD_STANCE_DEFAULT, GD_STANCE_EAGER_THEN_COMPILE},
    {"tells", &gd_runtime.tells, 0, 1},
    {"error_on_recompile", &gd_runtime.error_on_recompile, 0, 1},
    {"fail_on_recompile_limit_hit", &gd_runtime.fail_on_recompile_limit_hit, 0, 1},
};
#define NSETTINGS (sizeof(settings) / sizeof(settings[0]))

void
gd_update_special(int delta)
{
    if (disabled_generation != gd_runtime.fork_generation) {
        /* The other threads are not in this child; gd_thread.mode is the new one already. */
        disabled_generation = gd_runtime.fork_generation;
        disabled_threads = gd_thread.mode == GD_MODE_DISABLED;
    }
    else {
        disabled_threads += delta;
    }
    gd_runtime.special = gd_switched_off() || disabled_threads > 0;
}

static PyObject *
get_config(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *out = PyDict_New();
    for (size_t i = 0; out != NULL && i < NSETTINGS; i++) {
        PyObject *value = PyLong_FromLong(*settings[i].where);
        if (value == NULL || PyDict_SetItemString(out, settings[i].name, value) < 0) {
            Py_CLEAR(out);
        }
        Py_XDECREF(value);
    }
    return out;
}

/* Checks every setting before the first is changed: all or none. */
static PyObject *
set_config(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) != 0) {
        PyErr_SetString(PyExc_TypeError, "set_config() takes keyword arguments only");
        return NULL;
    }
    int values[NSETTINGS];
    char given[NSETTINGS] = {0};
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (kwargs != NULL && PyDict_Next(kwargs, &pos, &key, &value)) {
        size_t i = 0;
        while (i < NSETTINGS && PyUnicode_CompareWithASCIIString(key, settings[i].name) != 0) {
            i++;
        }
        if (i == NSETTINGS) {
            PyErr_Format(PyExc_AttributeError, "no setting named %R", key);
            return NULL;
        }
        int overflow;
        long n = PyLong_AsLongAndOverflow(value, &overflow);
        if (n == -1 && PyErr_Occurred()) {
            return NULL;
        }
        if (overflow || n < settings[i].min || n > settings[i].max) {
            PyErr_Format(PyExc_ValueError, "%U must be between %d and %d, not %R", key, settings[i].min,
                         settings[i].max, value);
            return NULL;
        }
        values[i] = (int)n;
        given[i] = 1;
    }
    for (size_t i = 0; i < NSETTINGS; i++) {
        if (given[i]) {
            *settings[i].where = values[i];
        }
    }
    gd_update_special(0);
    Py_RETURN_NONE;
}

/* ---- modes ---- */

static PyObject *
set_mode(PyObject *Py_UNUSED(module), PyObject *arg)
{
    int mode = _PyLong_AsInt(arg);
    if (mode == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (mode < GD_MODE_NORMAL || mode > GD_MODE_DISABLED) {
        return PyErr_Format(PyExc_ValueError, "no such mode: %d", mode);
    }
    int before = gd_thread.mode;
    gd_thread.mode = mode;
    gd_update_special((mode == GD_MODE_DISABLED) - (before == GD_MODE_DISABLED));
    return PyLong_FromLong(before);
}

static PyObject *
get_mode(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(gd_thread.mode);
}

static PyObject *
is_translating(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(gd_thread.translating > 0);
}

/* ---- counters ---- */

static const char *const counter_names[] = {
#define X(name) #name,
    GD_COUNTERS(X)
#undef X
};

const char *
gd_counter_name(int counter)
{
    return counter_names[counter];
}

static PyObject *
counters(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *out = PyDict_New();
    for (int i = 0; out != NULL && i < GD_NCOUNTERS; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(gd_runtime.counters[i]);
        if (value == NULL || PyDict_SetItemString(out, counter_names[i], value) < 0) {
            Py_CLEAR(out);
        }
        Py_XDECREF(value);
    }
    return out;
}

static PyObject *
reset_counters(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (int i = 0; i < GD_NCOUNTERS; i++) {
        gd_runtime.counters[i] = 0;
    }
    gd_runtime.broken = 0;
    Py_RETURN_NONE;
}

/* ---- callbacks ---- */

/* Where each callback is found unless set_callback names another. Looked up at each use: all are cold, and a module
 * that is replaced or reloaded must not leave a stale function here. */
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
gd_import(const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    /* It gives a dotted name's first part. A module that another thread is importing it waits for, which a look into
     * sys.modules alone would not do; one that is there runs no Python. */
    PyObject *top = text != NULL ? PyImport_ImportModuleLevelObject(text, NULL, NULL, NULL, 0) : NULL;
    PyObject *module = top != NULL ? PyImport_GetModule(text) : NULL;
    if (top != NULL && module == NULL && !PyErr_Occurred()) {
        PyErr_Format(PyExc_ImportError, "no module %U after its import", text);
    }
    Py_XDECREF(top);
    Py_XDECREF(text);
    return module;
}

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
gd_swallow(PyObject *context)
{
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(context);
    }
}

void
gd_internal_error(const char *where, PyObject *function)
{
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

/* ---- headroom ---- */

ptrdiff_t
gd_stack_headroom(void)
{
    char *here = __builtin_frame_address(0);
    gd_thread_state *t = &gd_thread;
    if (t->stack_low == NULL) {
        pthread_attr_t attr;
        void *low = NULL;
        size_t size = 0, guard = 0;
        if (pthread_getattr_np(pthread_self(), &attr) == 0) {
            if (pthread_attr_getstack(&attr, &low, &size) == 0) {
                pthread_attr_getguardsize(&attr, &guard);
            }
            pthread_attr_destroy(&attr);
        }
        /* Where the bounds cannot be had, an empty range: every address lies outside it. */
        t->stack_low = (char *)low + guard;
        t->stack_high = (char *)low + size;
        if (low == NULL) {
            t->stack_low = t->stack_high = (char *)1;
        }
    }
    if (here < t->stack_low || here >= t->stack_high) {
        return PTRDIFF_MAX;
    }
    return here - t->stack_low;
}

static PyMethodDef functions[] = {
    {"set_config", (PyCFunction)(void (*)(void))set_config, METH_VARARGS | METH_KEYWORDS,
     "set_config(**settings): changes the core's settings, all or none."},
    {"get_config", get_config, METH_NOARGS, "The core's settings as a dict."},
    {"set_mode", set_mode, METH_O,
     "Sets this thread's mode (MODE_NORMAL, MODE_RUN_ONLY, MODE_DISABLED); returns the one before."},
    {"get_mode", get_mode, METH_NOARGS, "This thread's mode."},
    {"is_translating", is_translating, METH_NOARGS, "Whether this thread is inside a translation."},
    {"counters", counters, METH_NOARGS, "What has happened in this process, by name."},
    {"reset_counters", reset_counters, METH_NOARGS, "Counts from zero; translation ended by internal errors goes on."},
    {"set_callback", set_callback, METH_VARARGS,
     "set_callback(name, callable or None): replaces limit_reached, internal_error or skip_code; returns what stood "
     "there."},
    {"set_translate_callback", set_translate_callback, METH_O,
     "A Python translator in place of the Go library: called at a miss with a dict of the request, returns an entry "
     "(make_entry), None (run this call in CPython) or 'skip' (never translate this code). None takes it out again. "
     "Returns the one before."},
    {"report_internal_error", report_internal_error, METH_VARARGS,
     "report_internal_error(where, function=None, error=None): counts a bug of ours; True once translation has ended."},
    {NULL, NULL, 0, NULL},
};

int
gd_runtime_init(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) < 0
        || PyModule_AddIntConstant(module, "MODE_NORMAL", GD_MODE_NORMAL) < 0
        || PyModule_AddIntConstant(module, "MODE_RUN_ONLY", GD_MODE_RUN_ONLY) < 0
        || PyModule_AddIntConstant(module, "MODE_DISABLED", GD_MODE_DISABLED) < 0) {
        return -1;
    }
    return 0;
}
