/* Settings, modes, counters, headroom: see runtime.h. Functions for Python return new references, or NULL with an
 * exception set. */
#include "runtime.h"

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
static int disabled_generation; /* fork generation in which the threads were counted */

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
    {"memory_mib", &gd_runtime.memory_mib, 0, 1 << 24},
};
#define NSETTINGS (sizeof(settings) / sizeof(settings[0]))

void
gd_update_special(int delta)
{
    if (disabled_generation != gd_runtime.fork_generation) {
        /* A forked child has none of the other threads. gd_thread.mode has been changed already. */
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

/* Changes all given settings or none: checks every value first. Returns None (a new reference), or NULL with an
 * exception set. */
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
    long mode = PyLong_AsLong(arg);
    if (mode == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (mode < GD_MODE_NORMAL || mode > GD_MODE_DISABLED) {
        return PyErr_Format(PyExc_ValueError, "no such mode: %ld", mode);
    }
    int before = gd_thread.mode;
    gd_thread.mode = (int)mode;
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

/* ---- calls into Python ---- */

PyObject *
gd_import(const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    /* The import returns the first part of a dotted name. Unlike a lookup in sys.modules alone, it waits for
     * a module that another thread is importing. If the module is there, no Python code runs. */
    PyObject *top = text != NULL ? PyImport_ImportModuleLevelObject(text, NULL, NULL, NULL, 0) : NULL;
    PyObject *module = top != NULL ? PyImport_GetModule(text) : NULL;
    if (top != NULL && module == NULL && !PyErr_Occurred()) {
        PyErr_Format(PyExc_ImportError, "no module %U after its import", text);
    }
    Py_XDECREF(top);
    Py_XDECREF(text);
    return module;
}

void
gd_swallow(PyObject *context)
{
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(context);
    }
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
        /* If the bounds are unavailable, use an empty range: every address is outside it. */
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
