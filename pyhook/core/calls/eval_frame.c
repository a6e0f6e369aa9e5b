/* The PEP 523 eval-frame function: it leaves a frame to CPython for one of several reasons, or looks for an entry that
 * serves the frame. It is installed while any thread is inside an extent, a call that serves a family's frames
 * (calls/extent.h). */
#include "calls/eval_frame.h"

#include "cache/extra_state.h"
#include "callbacks.h"
#include "calls/callable.h"
#include "calls/census.h"
#include "calls/extent.h"
#include "calls/heat.h"
#include "calls/miss.h"
#include "calls/rerun.h"
#include "calls/tail_call.h"
#include "replaced_builtins.h"
#include "runtime.h"

/* Runs the frame as if our hook were not installed. Returns a new reference, or NULL with an exception set. A
 * foreign hook that was installed over ours may pass the frame back to ours. A frame that comes back runs in
 * CPython. */
static PyObject *
pass_on(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    gd_thread_state *t = &gd_thread;
    if (gd_hook.previous == _PyEval_EvalFrameDefault || t->passing == frame) {
        return gd_py_eval_default(tstate, frame, throwflag);
    }
    _PyInterpreterFrame *outer = t->passing;
    t->passing = frame;
    PyObject *result = gd_hook.previous(tstate, frame, throwflag);
    t->passing = outer;
    return result;
}

/* Runs the frame with no extent in force on this thread, since another compiler handles the frame's calls. If the hook
 * served frames of torch.compile's translations, and frames that torch.compile leaves to CPython, the two compilers
 * would translate each other's work without end. Returns a new reference, or NULL with an exception set. */
static PyObject *
pass_on_tree(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    gd_thread_state *t = &gd_thread;
    gd_extent *hidden = t->extent;
    t->extent = NULL;
    PyObject *result = pass_on(tstate, frame, throwflag);
    t->extent = hidden;
    return result;
}

/* Calls Python's skip_code, once for each code object, to decide whether code from its file (torch, the standard
 * library, godynamo) is skipped. Returns the code's ExtraState, borrowed. Returns NULL without an exception if
 * there is no memory for it, or if the interpreter is finalizing. */
static gd_ExtraState *
ask_trace_rules(PyCodeObject *code)
{
    gd_ExtraState *extra = gd_extra_make(code);
    if (extra == NULL) {
        PyErr_Clear();
        return NULL;
    }
    if (extra->flags & GD_CODE_ASKED) {
        return extra;
    }
    if (gd_is_finalizing()) {
        return NULL; /* skip_code may be gone */
    }
    PyObject *verdict = gd_call_python("skip_code", (PyObject *)code);
    int skip = verdict != NULL ? PyObject_IsTrue(verdict) : -1;
    int tree = skip > 0 && PyLong_CheckExact(verdict) && PyLong_AsLong(verdict) == 2;
    Py_XDECREF(verdict);
    if (skip < 0) {
        /* Every frame would report the same error, so only the first report is shown. Code for which skip_code
         * fails is skipped. */
        static int shown;
        if (shown++) {
            PyErr_Clear();
        }
        gd_swallow((PyObject *)code);
    }
    extra->flags |= GD_CODE_ASKED | (skip ? GD_CODE_FOREIGN : 0) | (tree ? GD_CODE_SKIP_TREE : 0);
    return extra;
}

/* Returns the counter (GD_COUNT_*) of the reason why this frame runs in CPython. Returns -1 if the frame may be
 * served; *extra is then the ExtraState of its code, borrowed. */
static int
early_exit(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag, gd_ExtraState **extra)
{
    gd_thread_state *t = &gd_thread;
    PyCodeObject *code = gd_py_code_run_by(frame);
    if (t->extent == NULL) {
        return GD_COUNT_hook_no_extent;
    }
    if (t->passing == frame) {
        return GD_COUNT_hook_own_frame; /* a foreign hook has passed the frame back */
    }
    if (throwflag) {
        return GD_COUNT_hook_throw;
    }
    /* skip_once names a code object, since a finalizer or a signal handler may run before the intended frame starts. */
    if (t->skip_once == code) {
        t->skip_once = NULL;
        return GD_COUNT_hook_own_frame;
    }
    if (t->mode == GD_MODE_DISABLED || t->translating > 0 || gd_switched_off()) {
        return GD_COUNT_hook_mode;
    }
    /* CPython hides what a trace function, a profiler or an audit hook runs from all observers. It is left alone. */
    if (gd_observed(tstate) || gd_py_code_observed(code) || tstate->tracing > 0) {
        return GD_COUNT_hook_traced;
    }
    if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) {
        return GD_COUNT_hook_generator;
    }
    /* Module and class bodies keep their names in a dict. A frame without slots for its variables is not translated. */
    if ((code->co_flags & (CO_OPTIMIZED | CO_NEWLOCALS)) != (CO_OPTIMIZED | CO_NEWLOCALS) || frame->f_locals != NULL) {
        return GD_COUNT_hook_not_function;
    }
    if (!gd_py_frame_is_new(frame) || PyErr_Occurred()) {
        return GD_COUNT_hook_started;
    }
    *extra = gd_thread.watching > 0 ? gd_extra_make(code) : gd_extra_get(code);
    if (*extra == NULL) {
        PyErr_Clear();
    }
    else if ((*extra)->count == 0 && gd_watched_call(*extra)) {
        return GD_COUNT_watched; /* the code could notice a new FrameCache, or the modules that skip_code imports */
    }
    if (*extra == NULL || !((*extra)->flags & (GD_CODE_ASKED | GD_CODE_SKIP | GD_CODE_FOREIGN | GD_CODE_OURS))) {
        if (gd_builtins_replaced()) {
            return GD_COUNT_replaced_builtins;
        }
        *extra = ask_trace_rules(code);
        if (*extra == NULL) {
            return GD_COUNT_hook_skip;
        }
    }
    if ((*extra)->flags & (GD_CODE_SKIP | GD_CODE_FOREIGN | GD_CODE_OURS)) {
        return (*extra)->flags & GD_CODE_OURS ? GD_COUNT_hook_ours : GD_COUNT_hook_skip;
    }
    return -1;
}

/* Serves a frame that has not started. Returns what gd_serve returns. MAKE_CELL and COPY_FREE_VARS have not run:
 * arguments are not in cells yet, and the cells of free variables are read from the function. */
static int
serve_frame(PyThreadState *tstate, _PyInterpreterFrame *frame, gd_Root *root, gd_FrameCache *cache, PyObject **result)
{
    PyFunctionObject *function = gd_py_frame_function(frame);
    PyObject *small[GD_SMALL_REGS];
    PyObject **slots = small;
    if (cache->max_regs > GD_SMALL_REGS) {
        slots = PyMem_Malloc(cache->max_regs * sizeof(PyObject *));
        if (slots == NULL) {
            return GD_RUN_ORIGINAL;
        }
    }
    gd_py_slots_read(slots, frame->localsplus, cache->nargs);
    gd_copy_cells(cache, function, slots);
    int how = gd_serve(tstate, cache, root, (PyObject *)root, function, GD_FRAME_HOOK, slots, result);
    if (slots != small) {
        PyMem_Free(slots);
    }
    return how;
}

/* Runs a frame that is not worth a translation yet (calls/heat.h). Returns a new reference, or NULL with an
 * exception set. */
static PyObject *
run_cold(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag, int heat)
{
    PyCodeObject *code = (PyCodeObject *)Py_NewRef(gd_py_code_run_by(frame));
    int aside = heat == GD_HEAT_ALONE ? gd_hook_set_aside(tstate) : 0;
    uint64_t seen = gd_heat_seen();
    PyObject *result = pass_on(tstate, frame, throwflag);
    if (heat == GD_HEAT_ALONE) {
        gd_hook_put_back(tstate, aside);
    }
    else {
        gd_heat_below(code, seen);
    }
    Py_DECREF(code);
    return result;
}

/* Runs a frame with little C stack left, without the hook: then CPython's calls between Python functions use no C
 * stack. The calls through the hook took none of CPython's allowance for recursion in C, which may be larger than the
 * rest of the stack. Returns a new reference, or NULL with an exception set. */
static PyObject *
run_without_hook(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag, ptrdiff_t headroom)
{
    int units = gd_py_fit_c_units(tstate, headroom - GD_STACK_MIN), aside = gd_hook_set_aside(tstate);
    PyObject *result = pass_on(tstate, frame, throwflag);
    gd_hook_put_back(tstate, aside);
    gd_py_take_c_unit(tstate, -units);
    return result;
}

/* Serves a frame or runs it in CPython, as the eval-frame function. Returns a new reference, or NULL with an
 * exception set. */
static PyObject *
eval_frame(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    gd_ExtraState *extra = NULL;
    GD_COUNT(hook_frames);
    int reason = early_exit(tstate, frame, throwflag, &extra);
    if (gd_py_depth(tstate) > GD_DEPTH_TRUSTED) {
        ptrdiff_t headroom = gd_stack_headroom();
        if (headroom < GD_STACK_TRANSLATE) {
            GD_COUNT(hook_no_headroom);
            gd_census_left(gd_py_code_run_by(frame), GD_COUNT_hook_no_headroom);
            return run_without_hook(tstate, frame, throwflag, headroom);
        }
    }
    if (reason >= 0) {
        gd_runtime.counters[reason]++;
        if (reason != GD_COUNT_hook_mode && reason != GD_COUNT_hook_no_extent && reason != GD_COUNT_hook_own_frame
            && reason != GD_COUNT_hook_ours) { /* in these cases another step has noted the reason, or there is none */
            gd_census_left(gd_py_code_run_by(frame), reason);
        }
        gd_hook_leave_unused(tstate);
        if (reason == GD_COUNT_hook_skip && extra != NULL && (extra->flags & GD_CODE_SKIP_TREE)) {
            return pass_on_tree(tstate, frame, throwflag);
        }
        return pass_on(tstate, frame, throwflag);
    }
    gd_Root *root = gd_thread.extent->root;
    PyFunctionObject *function = gd_py_frame_function(frame);
    PyCodeObject *code = gd_py_code_run_by(frame); /* borrowed from the frame */
    int heat = root->hot_calls > 0 ? gd_heat(root, extra, code, function, frame->localsplus) : GD_HEAT_HOT;
    if (heat != GD_HEAT_HOT) {
        GD_COUNT(cold);
        return run_cold(tstate, frame, throwflag, heat);
    }
    gd_FrameCache *cache = gd_root_inner(root, extra, code, frame->f_globals);
    Py_ssize_t ncells = function->func_closure != NULL ? PyTuple_GET_SIZE(function->func_closure) : 0;
    if (cache == NULL || ncells != code->co_nfreevars || function->func_code != (PyObject *)code
        || function->func_globals != frame->f_globals) {
        PyErr_Clear();
        int left = PyDict_CheckExact(frame->f_globals) ? GD_COUNT_hook_inner_limit : GD_COUNT_hook_not_function;
        gd_runtime.counters[left]++;
        gd_census_left(code, left);
        return pass_on(tstate, frame, throwflag);
    }
    PyObject *result = NULL;
    Py_INCREF(root);
    Py_INCREF(cache);
    int how = serve_frame(tstate, frame, root, cache, &result), root_is_hot = root->hot_calls > 0;
    Py_DECREF(cache);
    Py_DECREF(root);
    if (how == GD_SERVED) {
        GD_COUNT(hook_served);
        result = gd_finish_tail(result);
        gd_py_end_frame(tstate, frame);
        return result;
    }
    GD_COUNT(hook_original);
    if (root_is_hot) {
        gd_heat_vain(extra);
    }
    gd_census_left(gd_py_code_run_by(frame), GD_COUNT_hook_original);
    if (how == GD_RUN_ORIGINAL_WATCHING) {
        gd_thread.watching++;
        result = pass_on(tstate, frame, throwflag);
        gd_thread.watching--;
        return result;
    }
    if (how == GD_RUN_ORIGINAL_ALONE) {
        int aside = gd_hook_set_aside(tstate);
        result = pass_on(tstate, frame, throwflag);
        gd_hook_put_back(tstate, aside);
        return result;
    }
    if (how == GD_RUN_ORIGINAL_AGAIN) {
        gd_rerun again;
        PyCodeObject *code = (PyCodeObject *)Py_NewRef(gd_py_code_run_by(frame));
        gd_rerun_begin(&again, code);
        result = gd_rerun_end(&again, pass_on(tstate, frame, throwflag));
        Py_DECREF(code);
        return result;
    }
    PyObject *graph_error = gd_take_graph_error();
    if (graph_error == NULL) {
        return pass_on(tstate, frame, throwflag);
    }
    Py_INCREF(function); /* the frame releases its own reference when it ends */
    result = pass_on(tstate, frame, throwflag);
    gd_graph_error_done(graph_error, (PyObject *)function, result);
    Py_DECREF(function);
    return result;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

/* An extent entered from Python: an item of its thread's list. */
typedef struct gd_py_extent {
    gd_extent extent;
    struct gd_py_extent *next;
    unsigned long long token;
} gd_py_extent;

static PyObject *
enter_extent(PyObject *Py_UNUSED(module), PyObject *arg)
{
    static unsigned long long last_token;
    gd_Root *root = gd_root_of(arg);
    if (root == NULL) {
        return PyErr_Format(PyExc_TypeError, "a Callable or Root is needed, not %s", Py_TYPE(arg)->tp_name);
    }
    gd_py_extent *e = PyMem_Malloc(sizeof(*e));
    if (e == NULL) {
        return PyErr_NoMemory();
    }
    e->token = ++last_token;
    PyObject *token = PyLong_FromUnsignedLongLong(e->token);
    if (token == NULL) {
        PyMem_Free(e);
        return NULL;
    }
    e->next = gd_thread.extents;
    gd_thread.extents = e;
    gd_extent_enter(gd_py_thread_state(), root, &e->extent);
    return token;
}

static PyObject *
exit_extent(PyObject *Py_UNUSED(module), PyObject *arg)
{
    unsigned long long token = PyLong_AsUnsignedLongLong(arg);
    if (token == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    for (gd_py_extent **link = &gd_thread.extents; *link != NULL; link = &(*link)->next) {
        gd_py_extent *e = *link;
        if (e->token == token) {
            *link = e->next;
            gd_extent_leave(gd_py_thread_state(), &e->extent);
            PyMem_Free(e);
            Py_RETURN_NONE;
        }
    }
    PyErr_SetString(PyExc_ValueError, "this extent is not in force on this thread");
    return NULL;
}

static PyObject *
current_eval_frame_is_ours(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(gd_py_get_eval(gd_py_thread_state()) == gd_hook.ours);
}

static PyObject *
hook_installed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(gd_extent_count());
}

static PyMethodDef functions[] = {
    {"enter_extent", enter_extent, METH_O,
     "enter_extent(callable or root): serves this thread's frames with its family; returns a token."},
    {"exit_extent", exit_extent, METH_O,
     "exit_extent(token): ends that extent; ValueError when it is not in force on this thread."},
    {"hook_installed", hook_installed, METH_NOARGS, "How many extents of the process are in force."},
    {"current_eval_frame_is_ours", current_eval_frame_is_ours, METH_NOARGS,
     "Whether CPython now calls our eval function."},
    {NULL, NULL, 0, NULL},
};

int
gd_eval_frame_init(PyObject *module)
{
    gd_hook.ours = eval_frame;
    return PyModule_AddFunctions(module, functions);
}
