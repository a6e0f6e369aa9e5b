/* Calls of a Callable: see calls/callable_call.h. */
#include "calls/callable_call.h"

#include "callbacks.h"
#include "calls/bind.h"
#include "calls/census.h"
#include "calls/miss.h"
#include "calls/outer_frames.h"
#include "calls/rerun.h"
#include "calls/tail_call.h"
#include "calls/traceback.h"
#include "interrupt.h"
#include "runtime.h"

/* ---- the user's own function ---- */

/* Calls the function as CPython would, with self before the arguments. Returns a new reference, or NULL with an
 * exception set. */
static PyObject *
call_original(PyThreadState *tstate, gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *function = (PyObject *)w->function, *self = w->self_object;
    if (w->kind == GD_FRAME_RESUME) { /* a resume function takes positional arguments only */
        return gd_call_handing_over(tstate, w->function->vectorcall, function, args, nargsf);
    }
    if (self == NULL) {
        return gd_py_call_function(tstate, w->function->vectorcall, function, args, nargsf, kwnames);
    }
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {
        /* With PY_VECTORCALL_ARGUMENTS_OFFSET, args[-1] may be overwritten if it is restored before returning. */
        PyObject **place = (PyObject **)args - 1, *lent = *place;
        *place = self;
        PyObject *result =
            gd_py_call_function(tstate, w->function->vectorcall, function, place, (size_t)nargs + 1, kwnames);
        *place = lent;
        return result;
    }
    Py_ssize_t total = nargs + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *small[GD_SMALL_REGS];
    PyObject **all = total + 1 > GD_SMALL_REGS ? PyMem_Malloc(((size_t)total + 1) * sizeof(PyObject *)) : small;
    if (all == NULL) {
        return PyErr_NoMemory();
    }
    all[0] = self;
    if (total > 0) {
        memcpy(all + 1, args, (size_t)total * sizeof(PyObject *));
    }
    PyObject *result = gd_py_call_function(tstate, w->function->vectorcall, function, all, (size_t)nargs + 1, kwnames);
    if (all != small) {
        PyMem_Free(all);
    }
    return result;
}

/* Calls the function inside an extent of its family, in which the eval-frame hook serves the family's frames. The
 * hook does not serve the function's own frame, which this call has already decided to run in CPython. Returns a
 * new reference, or NULL with an exception set. */
static PyObject *
call_original_hooked(PyThreadState *tstate, gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_extent extent;
    PyCodeObject *outer = gd_thread.skip_once;
    gd_extent_enter(tstate, w->root, &extent);
    gd_thread.skip_once = (PyCodeObject *)w->function->func_code;
    PyObject *result = call_original(tstate, w, args, nargsf, kwnames);
    gd_thread.skip_once = outer;
    gd_extent_leave(tstate, &extent);
    return result;
}

/* A frame that cannot be translated may call functions that can. They are served, as under torch.compile. But
 * CPython runs calls slower under a hook, so after GD_IDLE_CALLS calls of the frame's code that served nothing,
 * only one call in GD_IDLE_CALLS runs under the hook. */
#define GD_IDLE_CALLS 64

/* Calls the user's own function for a frame that cannot be translated. Returns a new reference, or NULL with an
 * exception set. */
static PyObject *
call_left(PyThreadState *tstate, gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_FrameCache *cache = w->cache;
    if (cache == NULL || gd_thread.mode == GD_MODE_DISABLED) {
        return call_original(tstate, w, args, nargsf, kwnames);
    }
    gd_ExtraState *extra = gd_extra_get(cache->code);
    int makes_only = cache->code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
    int tree = extra != NULL && extra->flags & GD_CODE_SKIP_TREE;
    if (makes_only || tree || (cache->idle >= GD_IDLE_CALLS && ++cache->idle % GD_IDLE_CALLS != 0)) {
        return call_original(tstate, w, args, nargsf, kwnames);
    }
    const uint64_t *n = gd_runtime.counters;
    uint64_t before = n[GD_COUNT_hook_served] + n[GD_COUNT_translations];
    Py_INCREF(cache);
    PyObject *result = call_original_hooked(tstate, w, args, nargsf, kwnames);
    if (n[GD_COUNT_hook_served] + n[GD_COUNT_translations] != before) {
        cache->idle = 0;
    }
    else if (cache->idle < GD_IDLE_CALLS) {
        cache->idle++;
    }
    Py_DECREF(cache);
    return result;
}

/* Finishes a call according to `how`, the result of gd_serve. Steals result, the value of a served call. Returns a
 * new reference, or NULL with an exception set. */
static __attribute__((noinline)) PyObject *
finish(PyThreadState *tstate, gd_Callable *w, int how, PyObject *result, PyObject *const *args, size_t nargsf,
       PyObject *kwnames)
{
    if (how == GD_SERVED) {
        return result;
    }
    gd_census_left((PyCodeObject *)w->function->func_code, GD_COUNT_hook_original);
    if (how == GD_RUN_ORIGINAL_HOOKED || how == GD_RUN_ORIGINAL_WATCHING) {
        int watches = how == GD_RUN_ORIGINAL_WATCHING;
        gd_thread.watching += watches;
        result = call_original_hooked(tstate, w, args, nargsf, kwnames);
        gd_thread.watching -= watches;
    }
    else if (how == GD_RUN_ORIGINAL_ALONE) {
        int aside = gd_hook_set_aside(tstate);
        result = call_original(tstate, w, args, nargsf, kwnames);
        gd_hook_put_back(tstate, aside);
    }
    else if (how == GD_RUN_ORIGINAL_AGAIN) {
        gd_rerun again;
        PyCodeObject *code = (PyCodeObject *)Py_NewRef(w->function->func_code);
        gd_rerun_begin(&again, code);
        result = gd_rerun_end(&again, call_original(tstate, w, args, nargsf, kwnames));
        Py_DECREF(code);
    }
    else if (how == GD_RUN_ORIGINAL_LEFT) {
        result = call_left(tstate, w, args, nargsf, kwnames);
    }
    else {
        PyObject *graph_error = gd_take_graph_error();
        result = call_original(tstate, w, args, nargsf, kwnames);
        if (graph_error != NULL) {
            gd_graph_error_done(graph_error, (PyObject *)w->function, result);
        }
    }
    if (result == NULL && w->kind == GD_FRAME_RESUME) {
        gd_require_exception();
        gd_fix_resumed(w->function);
    }
    return result;
}

/* ---- calls: each returns a new reference, or NULL with an exception set ---- */

/* Replaces the FrameCache by one for the function's current code. Returns 0, or -1 with an exception set. */
static int
renew_cache(gd_Callable *w)
{
    gd_FrameCache *fresh = gd_frame_cache_of(w->function);
    if (fresh == NULL) {
        return -1;
    }
    Py_XSETREF(w->cache, fresh);
    return 0;
}

/* Binds arguments of any form (keywords, defaults, *args, **kwargs) and serves the call. Holds a reference to the
 * value of every slot meanwhile, since the user's program may replace a default. Returns a new reference, or NULL with
 * an exception set. */
static PyObject *
call_bound(PyThreadState *tstate, gd_Callable *w, gd_FrameCache *cache, PyObject **regs, PyObject *const *args,
           size_t nargsf, PyObject *kwnames)
{
    PyObject *const *all = args;
    PyObject **copy = NULL;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (w->self_object != NULL) {
        Py_ssize_t total = nargs + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
        copy = PyMem_Malloc(((size_t)total + 1) * sizeof(PyObject *));
        if (copy == NULL) {
            return PyErr_NoMemory();
        }
        copy[0] = w->self_object;
        if (total > 0) {
            memcpy(copy + 1, args, (size_t)total * sizeof(PyObject *));
        }
        all = copy;
        nargs++;
    }
    int bound = gd_bind(w->function, all, nargs, kwnames, regs);
    PyMem_Free(copy);
    if (bound < 0) {
        return NULL;
    }
    if (bound == 0) {
        GD_COUNT(unbound);
        return call_original(tstate, w, args, nargsf, kwnames);
    }
    gd_copy_cells(cache, w->function, regs);
    /* The entry overwrites the registers after the slots, so the references to release later are kept separately. */
    uint32_t nheld = cache->nargs;
    PyObject *small[GD_SMALL_REGS];
    PyObject **held = nheld > GD_SMALL_REGS ? PyMem_Malloc(nheld * sizeof(PyObject *)) : small;
    if (held == NULL) {
        for (uint32_t i = 0; i < nheld; i++) {
            Py_DECREF(regs[i]);
        }
        return PyErr_NoMemory();
    }
    memcpy(held, regs, nheld * sizeof(PyObject *));
    PyObject *result = NULL;
    int how = gd_serve(tstate, cache, w->root, (PyObject *)w, w->function, w->kind, regs, &result);
    for (uint32_t i = 0; i < nheld; i++) {
        Py_DECREF(held[i]);
    }
    if (held != small) {
        PyMem_Free(held);
    }
    return finish(tstate, w, how, result, args, nargsf, kwnames);
}

/* An empty dict kept for the next **kwargs, or NULL. Nothing else refers to it. Nearly every call of an nn.Module
 * passes no keywords and drops its **kwargs dict unread. */
static PyObject *spare_kwargs;

/* Returns a new empty dict, or NULL with an exception set. */
static inline PyObject *
take_kwargs(void)
{
    PyObject *dict = spare_kwargs;
    spare_kwargs = NULL;
    return dict != NULL ? dict : PyDict_New();
}

/* Steals a dict from take_kwargs, and keeps it for the next call if it is unused and nothing else refers to it. A
 * dict that was ever used is not kept, since the user's program could notice its key table and GC tracking. */
static inline void
give_kwargs(PyObject *dict)
{
    if (GD_LIKELY(Py_REFCNT(dict) == 1 && spare_kwargs == NULL && gd_dict_is_fresh(dict))) {
        spare_kwargs = dict;
    }
    else {
        Py_DECREF(dict);
    }
}

/* Serves a call without keywords of code that has *args or **kwargs, if positional arguments fill all its other
 * slots. Most calls of nn.Modules are such calls. The caller holds the arguments. Returns a new reference, or
 * NULL with an exception set. If call_bound must serve the call instead, sets *done to 0 and returns NULL without
 * an exception; otherwise sets *done to 1. */
static inline PyObject *
call_star(PyThreadState *tstate, gd_Callable *w, gd_FrameCache *cache, PyObject **regs, PyObject *const *args,
          size_t nargsf, int *done)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf), nself = w->self_object != NULL;
    Py_ssize_t given = cache->star_positional, nrest = nargs + nself - given;
    int flags = cache->code->co_flags;
    *done = nrest == 0 || (nrest > 0 && flags & CO_VARARGS && given >= nself);
    if (!*done) {
        return NULL;
    }
    PyObject **next = regs, *rest = NULL, *kwargs = NULL;
    if (nself) {
        *next++ = w->self_object;
    }
    gd_copy_refs(next, args, given - nself);
    next += given - nself;
    if (flags & CO_VARARGS) {
        rest = PyTuple_New(nrest);
        if (rest == NULL) {
            return NULL;
        }
        for (Py_ssize_t i = 0; i < nrest; i++) {
            PyTuple_SET_ITEM(rest, i, Py_NewRef(args[given - nself + i]));
        }
        *next++ = rest;
    }
    if (flags & CO_VARKEYWORDS) {
        kwargs = take_kwargs();
        if (kwargs == NULL) {
            Py_XDECREF(rest);
            return NULL;
        }
        *next++ = kwargs;
    }
    gd_copy_cells(cache, w->function, regs);
    PyObject *result = NULL;
    int how = gd_serve(tstate, cache, w->root, (PyObject *)w, w->function, w->kind, regs, &result);
    Py_XDECREF(rest);
    if (kwargs != NULL) {
        give_kwargs(kwargs);
    }
    return GD_LIKELY(how == GD_SERVED) ? result : finish(tstate, w, how, result, args, nargsf, NULL);
}

/* Serves a call whose arguments must be bound, or whose registers do not fit the hot path's array. Returns a new
 * reference, or NULL with an exception set. It is not inlined, so that the hot path's C stack frame stays small. */
static __attribute__((noinline)) PyObject *
call_general(PyThreadState *tstate, gd_Callable *w, gd_FrameCache *cache, PyObject *const *args, size_t nargsf,
             PyObject *kwnames)
{
    PyObject *small[GD_SMALL_REGS];
    PyObject **regs = cache->max_regs > GD_SMALL_REGS ? PyMem_Malloc(cache->max_regs * sizeof(PyObject *)) : small;
    if (regs == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result;
    int done = 0;
    if (kwnames == NULL && cache->star_positional >= 0) {
        result = call_star(tstate, w, cache, regs, args, nargsf, &done);
    }
    if (!done) {
        result = call_bound(tstate, w, cache, regs, args, nargsf, kwnames);
    }
    if (regs != small) {
        PyMem_Free(regs);
    }
    return result;
}

/* Makes the checks that the hot path skips. If one of them decides the call, sets *done to 1 and returns the call's
 * result: a new reference, or NULL with an exception set. Otherwise sets *done to 0: the hot path may continue, and
 * w->cache matches the function's code. */
static __attribute__((noinline)) PyObject *
slow_door(PyThreadState *tstate, gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames, int *done)
{
    *done = 1;
    PyCodeObject *code = (PyCodeObject *)w->function->func_code;
    if (gd_observed(tstate) || gd_py_code_observed(code)) {
        GD_COUNT(traced);
        gd_census_left(code, GD_COUNT_traced);
        return call_original(tstate, w, args, nargsf, kwnames);
    }
    if (gd_switched_off() || gd_thread.mode == GD_MODE_DISABLED) {
        GD_COUNT(disabled);
        return call_original(tstate, w, args, nargsf, kwnames);
    }
    if (gd_runtime.special) {
        gd_update_special(0); /* the thread that set `special` may not exist in this forked child */
    }
    /* A call through a Callable uses C stack, unlike CPython's calls between Python functions. Under a raised
     * recursion limit it must not overflow the stack. */
    if (gd_py_depth(tstate) > GD_DEPTH_TRUSTED && gd_stack_headroom() < GD_STACK_MIN) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is used up");
        return NULL;
    }
    if (w->cache == NULL || w->function->func_code != (PyObject *)w->cache->code) {
        if (w->function->func_globals == NULL) {
            return call_original(tstate, w, args, nargsf, kwnames);
        }
        if (renew_cache(w) < 0) {
            return NULL;
        }
    }
    if (w->cache->skip) {
        gd_census_left(code, GD_COUNT_skipped);
        return call_left(tstate, w, args, nargsf, kwnames);
    }
    *done = 0;
    return NULL;
}

/* Serves a call. This is the hot path: it copies the arguments to registers, runs the guard programs, and calls the
 * function of the first entry whose guards hold. Returns a new reference, or NULL with an exception set. */
static inline __attribute__((always_inline)) PyObject *
call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_Callable *w = (gd_Callable *)op;
    PyThreadState *tstate = gd_py_thread_state();
    gd_FrameCache *cache = w->cache;
    if (GD_UNLIKELY(gd_runtime.special | gd_py_tracing(tstate) | cache->skip | gd_py_code_may_be_observed(cache->code)
                    | (w->function->func_code != (PyObject *)cache->code) | (gd_py_depth(tstate) > GD_DEPTH_TRUSTED))) {
        int done;
        PyObject *result = slow_door(tstate, w, args, nargsf, kwnames, &done);
        if (done) {
            return result;
        }
        cache = w->cache;
    }
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    Py_ssize_t nself = w->self_object != NULL;
    PyObject *result = NULL;
    Py_INCREF(cache); /* a Python guard or a translation may replace w->cache */
    if (GD_UNLIKELY(kwnames != NULL || nargs + nself != cache->positional || cache->max_regs > GD_SMALL_REGS)) {
        result = call_general(tstate, w, cache, args, nargsf, kwnames);
    }
    else {
        PyObject *regs[GD_SMALL_REGS];
        PyObject **next = regs;
        if (nself) {
            *next++ = w->self_object;
        }
        gd_copy_refs(next, args, nargs);
        gd_copy_cells(cache, w->function, regs);
        int how = gd_serve(tstate, cache, w->root, op, w->function, w->kind, regs, &result);
        if (GD_UNLIKELY(how != GD_SERVED)) {
            result = finish(tstate, w, how, result, args, nargsf, kwnames);
        }
    }
    Py_DECREF(cache);
    return result;
}

PyObject *
gd_callable_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return gd_finish_tail(call(op, args, nargsf, kwnames));
}

PyObject *
gd_cleared_vectorcall(PyObject *Py_UNUSED(op), PyObject *const *Py_UNUSED(args), size_t Py_UNUSED(nargsf),
                      PyObject *Py_UNUSED(kwnames))
{
    PyErr_SetString(PyExc_ReferenceError, "this optimized callable has been garbage-collected");
    return NULL;
}

/* ---- tail calls ---- */

/* Calls a Callable of any kind once. Returns a new reference to its value or to the TailCall that it makes, or NULL
 * with an exception set. Unlike gd_callable_vectorcall, it does not run the TailCall. */
static PyObject *
call_once(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (GD_UNLIKELY(((gd_Callable *)op)->cache == NULL)) {
        return gd_cleared_vectorcall(op, args, nargsf, kwnames);
    }
    return call(op, args, nargsf, kwnames);
}

/* Clears the frame object of the function that made the tail call. The user's frame continues in another frame,
 * which now owns the variables. */
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

PyObject *
gd_run_tail_calls(PyObject *result)
{
    PyThreadState *tstate = gd_py_thread_state();
    gd_TailCall *outer = gd_thread.tail;
    while (result != NULL && Py_IS_TYPE(result, &gd_TailCall_Type)) {
        gd_TailCall *t = (gd_TailCall *)result;
        if (GD_UNLIKELY(t->frame != NULL)) {
            clear_frame(t);
        }
        if (GD_UNLIKELY(t->outer != NULL)) {
            result = gd_run_outer_frames(t);
            continue;
        }
        /* The resume function has not started. If a pending request (a signal, an asynchronous exception) raises an
         * exception here, the resume function runs untransformed and raises it at CPython's first check. */
        if (GD_UNLIKELY(gd_py_has_requests(tstate)) && !gd_thread.holds && gd_look_for_requests() < 0) {
            gd_rerun_prepare(NULL, 1);
            gd_thread.tail = t; /* the frame that starts below takes over the references as well */
            result = finish(tstate, t->w, GD_RUN_ORIGINAL_AGAIN, NULL, t->args, (size_t)Py_SIZE(t), NULL);
            Py_DECREF(t);
            continue;
        }
        gd_thread.tail = t;
        if (GD_UNLIKELY(t->plain)) {
            result = finish(tstate, t->w, GD_RUN_ORIGINAL, NULL, t->args, (size_t)Py_SIZE(t), NULL);
        }
        else {
            result = call_once((PyObject *)t->w, t->args, (size_t)Py_SIZE(t), NULL);
        }
        Py_DECREF(t);
    }
    gd_thread.tail = outer;
    if (result == NULL) {
        gd_require_exception();
    }
    return result;
}
