/* Which frames are worth translating: see calls/heat.h. A suite of short tests runs thousands of functions a few
 * times each. Translating a function costs as much as hundreds of its calls, and gains nothing if the function
 * meets no tensor. */
#include "calls/heat.h"

#include <time.h>

#include "callbacks.h"
#include "runtime.h"

/* How many items of a container are examined, and how deeply nested containers may be. */
enum { LOOK_ITEMS = 4, LOOK_DEEP = 2 };

/* torch.Tensor and torch.nn.Module; strong, NULL until they are first needed. */
static PyTypeObject *torch_types[2];

static int
know_torch_types(void)
{
    if (torch_types[0] != NULL) {
        return 1;
    }
    PyObject *module = gd_import("godynamo._translator.trace_rules");
    PyObject *pair = module != NULL ? PyObject_GetAttrString(module, "TENSOR_AND_MODULE") : NULL;
    Py_XDECREF(module);
    if (pair != NULL && PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2) {
        for (int i = 0; i < 2; i++) {
            torch_types[i] = (PyTypeObject *)Py_NewRef(PyTuple_GET_ITEM(pair, i));
        }
    }
    Py_XDECREF(pair);
    return torch_types[0] != NULL;
}

/* Reports whether v is a tensor or a module, or a builtin container with a tensor or module among its first items.
 * Runs no user code. */
static int
holds_tensor(PyObject *v, int deep)
{
    if (v == NULL || v == Py_None || PyLong_CheckExact(v) || PyUnicode_CheckExact(v) || PyFloat_CheckExact(v)) {
        return 0;
    }
    if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) {
        Py_ssize_t n = deep < LOOK_DEEP ? Py_MIN(Py_SIZE(v), LOOK_ITEMS) : 0;
        PyObject **items = PySequence_Fast_ITEMS(v);
        for (Py_ssize_t i = 0; i < n; i++) {
            if (holds_tensor(items[i], deep + 1)) {
                return 1;
            }
        }
        return 0;
    }
    if (PyDict_CheckExact(v)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        for (int i = 0; deep < LOOK_DEEP && i < LOOK_ITEMS && PyDict_Next(v, &at, &key, &value); i++) {
            if (holds_tensor(value, deep + 1)) {
                return 1;
            }
        }
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        if (PyType_IsSubtype(Py_TYPE(v), torch_types[i])) {
            return 1;
        }
    }
    return 0;
}

/* Reports whether the function's code names torch. Calls Python once for each code object. */
static int
names_torch(gd_ExtraState *extra, PyFunctionObject *function)
{
    if (!(extra->flags & GD_CODE_TORCH_ASKED)) {
        PyObject *verdict = gd_call_python("names_torch", (PyObject *)function);
        int names = verdict != NULL ? PyObject_IsTrue(verdict) : -1;
        Py_XDECREF(verdict);
        if (names < 0) {
            gd_swallow((PyObject *)function);
            return 0; /* the next call tries again */
        }
        extra->flags |= GD_CODE_TORCH_ASKED | (names ? GD_CODE_NAMES_TORCH : 0);
    }
    return (extra->flags & GD_CODE_NAMES_TORCH) != 0;
}

/* How many frames of the process met a tensor or were hot. If the number grows while a frame runs, the frame's
 * callees are worth the hook. */
static uint64_t seen;

/* After IDLE_CALLS calls of a code object that did not change `seen`, its calls run without the hook, except one in
 * LOOK_AGAIN. MOST_VAIN limits gd_ExtraState.vain. */
enum { IDLE_CALLS = 8, LOOK_AGAIN = 64, MOST_VAIN = 16 };

static uint64_t
nanoseconds(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : 0;
}

static uint64_t spent;

uint64_t
gd_heat_clock(void)
{
    return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

void
gd_heat_spent(uint64_t begun)
{
    uint64_t now = gd_heat_clock();
    spent += now > begun ? now - begun : 0;
}

static int
within_budget(void)
{
    return spent <= nanoseconds(CLOCK_PROCESS_CPUTIME_ID) / GD_HEAT_BUDGET;
}

int
gd_heat(const gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyFunctionObject *function,
        const gd_py_slot *slots)
{
    uint32_t hot = (uint32_t)root->hot_calls, wanted = hot << extra->vain;
    if (extra->calls >= wanted) {
        seen++;
        return GD_HEAT_HOT;
    }
    if (gd_is_finalizing() || !know_torch_types()) {
        PyErr_Clear();
        return GD_HEAT_COLD;
    }
    int nargs = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS)
                + !!(code->co_flags & CO_VARKEYWORDS);
    for (int i = 0; i < nargs && !(extra->flags & GD_CODE_MEETS_TENSOR); i++) {
        extra->flags |= holds_tensor(gd_py_slot_object(slots[i]), 0) ? GD_CODE_MEETS_TENSOR : 0;
    }
    if (extra->flags & GD_CODE_MEETS_TENSOR || names_torch(extra, function)) {
        seen++;
        extra->flags |= GD_CODE_MEETS_TENSOR;
        extra->calls = Py_MAX(extra->calls, wanted - Py_MIN(wanted, (uint32_t)root->hot_tensor_calls));
        if (extra->calls >= wanted || within_budget()) {
            return GD_HEAT_HOT;
        }
    }
    extra->calls++;
    return extra->idle >= IDLE_CALLS && extra->calls % LOOK_AGAIN ? GD_HEAT_ALONE : GD_HEAT_COLD;
}

void
gd_heat_met(void)
{
    seen++;
}

uint64_t
gd_heat_seen(void)
{
    return seen;
}

void
gd_heat_below(PyCodeObject *code, uint64_t before)
{
    gd_ExtraState *extra = gd_extra_get(code);
    if (extra != NULL) {
        extra->idle = seen != before ? 0 : (uint16_t)Py_MIN(extra->idle + 1, IDLE_CALLS);
    }
}

void
gd_heat_vain(gd_ExtraState *extra)
{
    if (!(extra->flags & GD_CODE_MEETS_TENSOR) && extra->vain < MOST_VAIN) {
        extra->vain++;
        extra->calls = 0;
    }
}
