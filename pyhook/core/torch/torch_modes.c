/* Implements torch/torch_modes.h. */
#include "torch/torch_modes.h"

#include "golib.h"
#include "torch/torch_fx.h"
#include "torch/torch_observers.h"
#include "torch/torch_state.h"
#include "torch/torch_symbols.h"

/* torch's functions that count and pop dispatch modes: strong, or NULL. gd_torch_mode_active finds them, since
 * gd_torch_pop_dispatch_modes must not allocate. */
static PyObject *count_modes, *pop_mode;

/* Finds count_modes and pop_mode, once. Leaves no exception set. */
static void
find_functions_of_modes(void)
{
    if (GD_LIKELY(pop_mode != NULL)) {
        return;
    }
    PyObject *count = gd_torch_attribute("_C._len_torch_dispatch_stack");
    PyObject *pop = count != NULL ? gd_torch_attribute("_C._pop_torch_dispatch_stack") : NULL;
    if (pop != NULL && pop_mode == NULL) { /* another thread may have been faster */
        count_modes = Py_NewRef(count);
        pop_mode = Py_NewRef(pop);
    }
    Py_XDECREF(count);
    Py_XDECREF(pop);
    PyErr_Clear();
}

/* Reports whether all active function modes come from torch.set_default_device or `with torch.device(...)`.
 * Such modes set the default device of tensor constructors and change nothing else; translations handle
 * them. */
static int
only_default_device(uint64_t entered)
{
    static PyObject *at, *context;
    if (at == NULL) {
        at = gd_torch_attribute("_C._get_function_stack_at");
    }
    if (context == NULL) {
        context = at != NULL ? gd_torch_attribute("utils._device.DeviceContext") : NULL;
    }
    int is = context != NULL;
    for (uint64_t i = 0; i < entered && is; i++) {
        PyObject *mode = PyObject_CallFunction(at, "i", (int)i);
        is = mode != NULL && (PyObject *)Py_TYPE(mode) == context;
        Py_XDECREF(mode);
    }
    PyErr_Clear();
    return is;
}

/* Returns the dispatch keys that a thread may include or exclude without anything recording or
 * transforming its operators: autocast's keys, and those of views and of inference mode. Returns 0 if
 * torch does not list its keys. Leaves no exception set. */
static uint64_t
plain_keys(void)
{
    PyObject *members = gd_torch_attribute("_C.DispatchKey.__members__");
    PyObject *names = members != NULL ? PyMapping_Items(members) : NULL;
    PyObject *set = names != NULL ? gd_torch_attribute("_C.DispatchKeySet") : NULL;
    uint64_t keys = 0;
    for (Py_ssize_t i = 0; set != NULL && i < PyList_GET_SIZE(names); i++) {
        const char *name;
        PyObject *key;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(names, i), "sO", &name, &key)) {
            break;
        }
        if (strncmp(name, "Autocast", 8) == 0 || strcmp(name, "BackendSelect") == 0
            || strcmp(name, "ADInplaceOrView") == 0) {
            PyObject *one = PyObject_CallOneArg(set, key);
            PyObject *bits = one != NULL ? PyObject_CallMethod(one, "raw_repr", NULL) : NULL;
            if (bits != NULL && PyLong_Check(bits)) {
                keys |= PyLong_AsUnsignedLongLongMask(bits);
            }
            Py_XDECREF(one);
            Py_XDECREF(bits);
        }
    }
    Py_XDECREF(members);
    Py_XDECREF(names);
    Py_XDECREF(set);
    PyErr_Clear();
    return keys;
}

/* Reports whether an included dispatch key records or transforms operators. Such keys belong to
 * torch.jit.trace, dispatch modes, torch.func, functionalization, the Python dispatcher, and torch.export
 * before autograd. */
static int
key_included(void)
{
    static uint64_t plain;
    const uint64_t *keys = gd_torch_thread_keys();
    if (keys == NULL || keys[0] == 0) { /* libtorch stores the keys as differences from its default */
        return 0;
    }
    if (plain == 0 && (plain = plain_keys()) == 0) {
        return 0;
    }
    return (keys[0] & ~plain) != 0;
}

/* Reports whether torch.jit.trace is active. Used if the dispatch keys cannot be read. */
static int
jit_tracing(void)
{
    static PyObject *ask;
    if (ask == NULL && (ask = gd_torch_attribute("_C._is_tracing")) == NULL) {
        PyErr_Clear();
        ask = Py_NewRef(Py_None);
    }
    PyObject *is = ask != Py_None ? PyObject_CallNoArgs(ask) : NULL;
    int active = is == Py_True;
    Py_XDECREF(is);
    PyErr_Clear();
    return active;
}

int
gd_torch_mode_active(void)
{
    if (gd_torch_state_ensure() < 0) {
        PyErr_Clear();
        return 0;
    }
    find_functions_of_modes();
    if (key_included() || gd_tracing_symbolically() || (gd_torch_thread_keys() == NULL && jit_tracing())) {
        return 1;
    }
    uint64_t entered = gd_torch_modes_entered(GD_TORCH_FUNCTION_MODES);
    if ((entered != 0 && !only_default_device(entered)) || gd_torch_modes_entered(GD_TORCH_DISPATCH_MODES) != 0) {
        return 1;
    }
    /* peek_interpreter_stack returns an optional struct in C++, so it is called through Python. */
    static PyObject *peek;
    if (peek == NULL && (peek = gd_torch_attribute("_C._functorch.peek_interpreter_stack")) == NULL) {
        PyErr_Clear();
        peek = Py_NewRef(Py_None);
    }
    PyObject *level = peek != Py_None ? PyObject_CallNoArgs(peek) : NULL;
    int active = level != NULL && level != Py_None;
    Py_XDECREF(level);
    PyErr_Clear();
    return active;
}

int
gd_torch_unseen(void)
{
    if (GD_UNLIKELY(gd_torch_state_ensure() < 0)) {
        PyErr_Clear();
        return 0;
    }
    /* torch.func includes keys of its own while a transform is active. */
    return gd_torch_thread_keys() != NULL && !key_included() && !gd_tracing_symbolically()
           && gd_torch_modes_entered(GD_TORCH_FUNCTION_MODES) == 0
           && gd_torch_modes_entered(GD_TORCH_DISPATCH_MODES) == 0;
}

void
gd_torch_pop_dispatch_modes(void)
{
    for (int left = 1; left && count_modes != NULL && pop_mode != NULL;) {
        PyObject *count = PyObject_CallNoArgs(count_modes);
        left = count != NULL && PyLong_Check(count) && PyLong_AsLong(count) > 0;
        Py_XDECREF(count);
        PyObject *mode = left ? PyObject_CallOneArg(pop_mode, Py_None) : NULL;
        left = mode != NULL;
        Py_XDECREF(mode);
    }
    PyErr_Clear();
}

/* Returns an immortal object. */
static PyObject *
operators_unseen(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(!gd_torch_observed() && !gd_torch_mode_active());
}

static PyMethodDef functions[] = {
    {"operators_unseen", operators_unseen, METH_NOARGS,
     "operators_unseen() -> bool\n\n"
     "Whether nothing could tell that this thread does not call an operator: no mode, no profiler."},
    {NULL, NULL, 0, NULL},
};

int
gd_torch_modes_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
