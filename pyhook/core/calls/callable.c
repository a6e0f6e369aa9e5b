/* W, the callable behind optimize(): its calls. Its attributes are in calls/callable_attrs.c. */
#include "calls/callable.h"

#include <stddef.h>

#include "calls/bind.h"
#include "calls/callable_attrs.h"
#include "calls/census.h"
#include "calls/miss.h"
#include "calls/rerun.h"
#include "calls/tail_call.h"
#include "interrupt.h"
#include "runtime.h"

/* ---- the user's own function ---- */

/* Calls the function as CPython would, with self before the arguments. new, or NULL with an exception, as from any
 * vectorcall */
static PyObject *
call_original(gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *function = (PyObject *)w->function, *self = w->self_object;
    if (w->kind == GD_FRAME_RESUME) { /* its calls are positional */
        return gd_call_handing_over(gd_py_thread_state(), w->function->vectorcall, function, args, nargsf);
    }
    if (self == NULL) {
        return w->function->vectorcall(function, args, nargsf, kwnames);
    }
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {
        /* The caller lends the place before its arguments. */
        PyObject **place = (PyObject **)args - 1, *lent = *place;
        *place = self;
        PyObject *result = w->function->vectorcall(function, place, (size_t)nargs + 1, kwnames);
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
    PyObject *result = w->function->vectorcall(function, all, (size_t)nargs + 1, kwnames);
    if (all != small) {
        PyMem_Free(all);
    }
    return result;
}

/* The same inside an extent of the family: new. The frame of the function itself is not served again: its verdict is
 * known. */
static PyObject *
call_original_hooked(PyThreadState *tstate, gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_extent extent;
    PyCodeObject *outer = gd_thread.skip_once;
    gd_extent_enter(tstate, w->root, &extent);
    gd_thread.skip_once = (PyCodeObject *)w->function->func_code;
    PyObject *result = call_original(w, args, nargsf, kwnames);
    gd_thread.skip_once = outer;
    gd_extent_leave(tstate, &extent);
    return result;
}

/* A frame that cannot be translated says nothing of what it calls: that is served, as torch.compile serves it. Since
 * CPython runs calls slower under a hook, only one call in so many is made under it after that many that found nothing
 * to serve. */
#define GD_IDLE_CALLS 64

/* The user's own function of such a frame: new, or NULL with an exception */
static PyObject *
call_left(PyThreadState *tstate, gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_FrameCache *cache = w->cache;
    if (cache == NULL || gd_thread.mode == GD_MODE_DISABLED) {
        return call_original(w, args, nargsf, kwnames);
    }
    gd_ExtraState *extra = gd_extra_get(cache->code);
    int makes_only = cache->code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
    int tree = extra != NULL && extra->flags & GD_CODE_SKIP_TREE;
    if (makes_only || tree || (cache->idle >= GD_IDLE_CALLS && ++cache->idle % GD_IDLE_CALLS != 0)) {
        return call_original(w, args, nargsf, kwnames);
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

/* Does with a call what gd_serve says in how. result: of a served call, stolen. new, or NULL with an exception */
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
        result = call_original(w, args, nargsf, kwnames);
        gd_hook_put_back(tstate, aside);
    }
    else if (how == GD_RUN_ORIGINAL_AGAIN) {
        gd_rerun again;
        PyCodeObject *code = (PyCodeObject *)Py_NewRef(w->function->func_code);
        gd_rerun_begin(&again, code);
        result = gd_rerun_end(&again, call_original(w, args, nargsf, kwnames));
        Py_DECREF(code);
    }
    else if (how == GD_RUN_ORIGINAL_LEFT) {
        result = call_left(tstate, w, args, nargsf, kwnames);
    }
    else {
        PyObject *graph_error = gd_take_graph_error();
        result = call_original(w, args, nargsf, kwnames);
        if (graph_error != NULL) {
            gd_graph_error_done(graph_error, (PyObject *)w->function, result);
        }
    }
    if (result == NULL && w->kind == GD_FRAME_RESUME) {
        gd_fix_resumed(w->function);
    }
    return result;
}

/* ---- calls: their results are new references, NULL with an exception ---- */

/* Makes the FrameCache fit the function's present code. 0, or -1 with an exception. */
static int
renew_cache(gd_Callable *w)
{
    gd_FrameCache *fresh = gd_frame_cache_new((PyCodeObject *)w->function->func_code, w->function->func_globals, NULL);
    if (fresh == NULL) {
        return -1;
    }
    Py_XSETREF(w->cache, fresh);
    return 0;
}

/* Slots by the general way: keywords, defaults, *args, **kwargs. Every slot is held during the call, since a default
 * may be replaced meanwhile. new, or NULL with an exception */
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
        return call_original(w, args, nargsf, kwnames);
    }
    gd_copy_cells(cache, w->function, regs);
    /* The registers after the slots are overwritten by the entry: what is released later is remembered apart. */
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

/* An empty dict that nothing else refers to, kept for the next **kwargs; or NULL. Nearly every call of a module brings
 * no keywords, and a dict made for it is dropped unread. */
static PyObject *spare_kwargs;

/* new */
static inline PyObject *
take_kwargs(void)
{
    PyObject *dict = spare_kwargs;
    spare_kwargs = NULL;
    return dict != NULL ? dict : PyDict_New();
}

/* Steals the dict. One that was ever used is let go: its table and its tracking would show. */
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

/* A call without keywords of code with *args or **kwargs that fills its other slots by position: how modules are
 * called. Those slots are held by the caller. new, or NULL with an exception; *done = 0 when the general way is to be
 * taken. */
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

/* A call whose register array does not fit the stack frame, or that binds arguments: new, or NULL with an exception.
 * Kept out of the hot path's stack frame. */
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

/* The slow door: everything the hot path has no time to ask. The result of the call: new, or NULL with an exception;
 * *done = 0 when the call may go on (w->cache then fits the function's code). */
static __attribute__((noinline)) PyObject *
slow_door(PyThreadState *tstate, gd_Callable *w, PyObject *const *args, size_t nargsf, PyObject *kwnames, int *done)
{
    *done = 1;
    PyCodeObject *code = (PyCodeObject *)w->function->func_code;
    if (gd_observed(tstate)) {
        GD_COUNT(traced);
        gd_census_left(code, GD_COUNT_traced);
        return call_original(w, args, nargsf, kwnames);
    }
    if (gd_switched_off() || gd_thread.mode == GD_MODE_DISABLED) {
        GD_COUNT(disabled);
        return call_original(w, args, nargsf, kwnames);
    }
    if (gd_runtime.special) {
        gd_update_special(0); /* the thread that asked for it may not be in this forked child */
    }
    /* Calls through W use C stack where CPython's would not: under a raised recursion limit they must not run off its
     * end. */
    if (gd_py_depth(tstate) > GD_DEPTH_TRUSTED && gd_stack_headroom() < GD_STACK_MIN) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is used up");
        return NULL;
    }
    if (w->cache == NULL || w->function->func_code != (PyObject *)w->cache->code) {
        if (w->function->func_globals == NULL) {
            return call_original(w, args, nargsf, kwnames);
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

/* The hot path: arguments to registers, programs, the function of the entry that holds. new; NULL with an exception */
static inline __attribute__((always_inline)) PyObject *
call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_Callable *w = (gd_Callable *)op;
    PyThreadState *tstate = gd_py_thread_state();
    gd_FrameCache *cache = w->cache;
    if (GD_UNLIKELY(gd_runtime.special | gd_py_tracing(tstate) | cache->skip
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
    Py_INCREF(cache); /* a guard in Python or a translation may replace it */
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

static PyObject *
callable_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return gd_finish_tail(call(op, args, nargsf, kwnames));
}

/* After tp_clear: only a destructor of the same garbage can still come by. */
static PyObject *
cleared_vectorcall(PyObject *Py_UNUSED(op), PyObject *const *Py_UNUSED(args), size_t Py_UNUSED(nargsf),
                   PyObject *Py_UNUSED(kwnames))
{
    PyErr_SetString(PyExc_ReferenceError, "this optimized callable has been garbage-collected");
    return NULL;
}

/* ---- tail calls ---- */

/* Calls a W of any kind to its end or its next tail call: what the vectorcall of a DIRECT one does before it follows
 * tail calls. new, or NULL with an exception */
static PyObject *
call_once(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (GD_UNLIKELY(((gd_Callable *)op)->cache == NULL)) {
        return cleared_vectorcall(op, args, nargsf, kwnames);
    }
    return call(op, args, nargsf, kwnames);
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
        /* The rest of the frame has not begun, so its own code can raise what arrives now: at the first place where
         * CPython looks. */
        if (GD_UNLIKELY(gd_py_has_requests(tstate)) && !gd_thread.holds && gd_look_for_requests() < 0) {
            gd_rerun_prepare(NULL, 1);
            gd_thread.tail = t; /* its frame takes the variables over here, too */
            result = finish(tstate, t->w, GD_RUN_ORIGINAL_AGAIN, NULL, t->args, (size_t)Py_SIZE(t), NULL);
            Py_DECREF(t);
            continue;
        }
        gd_thread.tail = t;
        result = call_once((PyObject *)t->w, t->args, (size_t)Py_SIZE(t), NULL);
        Py_DECREF(t);
    }
    gd_thread.tail = outer;
    return result;
}

/* ---- making ---- */

/* new W; borrows all. self and wrapped may be NULL. */
static PyObject *
make(PyFunctionObject *function, PyObject *self, gd_Root *root, PyObject *wrapped, int kind)
{
    PyTypeObject *type = self != NULL ? &gd_BoundCallable_Type : &gd_Callable_Type;
    gd_FrameCache *cache = gd_frame_cache_new((PyCodeObject *)function->func_code, function->func_globals, NULL);
    if (cache == NULL) {
        return NULL;
    }
    gd_Callable *w = PyObject_GC_New(gd_Callable, type);
    if (w == NULL) {
        Py_DECREF(cache);
        return NULL;
    }
    w->vectorcall = kind == GD_FRAME_RESUME ? gd_resume_vectorcall : callable_vectorcall;
    w->function = (PyFunctionObject *)Py_NewRef(function);
    w->self_object = Py_XNewRef(self);
    w->cache = cache;
    w->root = (gd_Root *)Py_NewRef(root);
    w->kind = kind;
    w->wrapped = Py_XNewRef(wrapped);
    w->dict = NULL;
    w->weakreflist = NULL;
    PyObject_GC_Track(w);
    return (PyObject *)w;
}

/* tp_new: new W, or NULL with an exception */
static PyObject *
callable_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", "self", "options", "wrapped", "root", NULL};
    PyFunctionObject *function;
    PyObject *self = Py_None, *options = Py_None, *wrapped = Py_None, *root = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OO$OO:Callable", keywords, &PyFunction_Type, &function, &self,
                                     &options, &wrapped, &root)) {
        return NULL;
    }
    gd_Root *family;
    if (root == Py_None) {
        family = gd_root_new(options);
    }
    else if (Py_IS_TYPE(root, &gd_Root_Type)) {
        family = (gd_Root *)Py_NewRef(root);
    }
    else {
        return PyErr_Format(PyExc_TypeError, "root must be a Root, not %s", Py_TYPE(root)->tp_name);
    }
    if (family == NULL) {
        return NULL;
    }
    self = self == Py_None ? NULL : self;
    PyObject *method = NULL;
    if (wrapped == Py_None || wrapped == (PyObject *)function) {
        wrapped = NULL;
        if (self != NULL) {
            wrapped = method = PyMethod_New((PyObject *)function, self);
            if (method == NULL) {
                Py_DECREF(family);
                return NULL;
            }
        }
    }
    PyObject *w = make(function, self, family, wrapped, GD_FRAME_DIRECT);
    /* What functools.update_wrapper does: the attributes a user put on the function are the wrapper's too. */
    if (w != NULL && (wrapped == NULL || method != NULL) && function->func_dict != NULL
        && PyDict_GET_SIZE(function->func_dict) > 0) {
        ((gd_Callable *)w)->dict = PyDict_Copy(function->func_dict);
        if (((gd_Callable *)w)->dict == NULL) {
            Py_CLEAR(w);
        }
    }
    Py_XDECREF(method);
    Py_DECREF(family);
    return w;
}

PyObject *
gd_callable_function(PyObject *obj, PyObject **self)
{
    if (!gd_callable_check(obj)) {
        return NULL;
    }
    gd_Callable *w = (gd_Callable *)obj;
    if (self != NULL) {
        *self = w->self_object;
    }
    return (PyObject *)w->function;
}

gd_Root *
gd_root_of(PyObject *obj)
{
    if (Py_IS_TYPE(obj, &gd_Root_Type)) {
        return (gd_Root *)obj;
    }
    return gd_callable_check(obj) ? ((gd_Callable *)obj)->root : NULL;
}

PyObject *
gd_resume_new(PyObject *owner, PyObject *function)
{
    gd_Root *root = gd_root_of(owner);
    if (root == NULL || !PyFunction_Check(function)) {
        return PyErr_Format(PyExc_TypeError, "resume_new needs a Callable or Root and a function, not %s and %s",
                            Py_TYPE(owner)->tp_name, Py_TYPE(function)->tp_name);
    }
    return make((PyFunctionObject *)function, NULL, root, NULL, GD_FRAME_RESUME);
}

/* ---- the type: its slots return new references, NULL with an exception ---- */

static int
callable_traverse(gd_Callable *w, visitproc visit, void *arg)
{
    Py_VISIT(w->function);
    Py_VISIT(w->self_object);
    Py_VISIT(w->cache);
    Py_VISIT(w->root);
    Py_VISIT(w->wrapped);
    Py_VISIT(w->dict);
    return 0;
}

/* The function stays: names and repr read it, and it breaks its own cycles. */
static int
callable_clear(gd_Callable *w)
{
    w->vectorcall = cleared_vectorcall;
    Py_CLEAR(w->self_object);
    Py_CLEAR(w->cache);
    Py_CLEAR(w->root);
    Py_CLEAR(w->wrapped);
    Py_CLEAR(w->dict);
    return 0;
}

static void
callable_dealloc(gd_Callable *w)
{
    PyObject_GC_UnTrack(w);
    /* A chain of W, each in the closure of the one before, must not use C stack by its length. */
    Py_TRASHCAN_BEGIN(w, callable_dealloc) if (w->weakreflist != NULL)
    {
        PyObject_ClearWeakRefs((PyObject *)w);
    }
    callable_clear(w);
    Py_CLEAR(w->function);
    PyObject_GC_Del(w);
    Py_TRASHCAN_END
}

/* As a function's: unbound in a class, a bound method on an instance. */
static PyObject *
callable_descr_get(PyObject *op, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(op);
    }
    return PyMethod_New(op, instance);
}

static PyObject *
bound_descr_get(PyObject *op, PyObject *Py_UNUSED(instance), PyObject *Py_UNUSED(owner))
{
    return Py_NewRef(op);
}

#define CALLABLE_SLOTS \
    .tp_basicsize = sizeof(gd_Callable), .tp_vectorcall_offset = offsetof(gd_Callable, vectorcall), \
    .tp_call = PyVectorcall_Call, .tp_traverse = (traverseproc)callable_traverse, .tp_clear = (inquiry)callable_clear, \
    .tp_dealloc = (destructor)callable_dealloc, .tp_repr = gd_callable_repr, .tp_methods = gd_callable_methods, \
    .tp_members = gd_callable_members, .tp_getset = gd_callable_getset, .tp_new = callable_new, \
    .tp_dictoffset = offsetof(gd_Callable, dict), .tp_weaklistoffset = offsetof(gd_Callable, weakreflist)

PyTypeObject gd_Callable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.Callable",
    .tp_doc = "Callable(function, self=None, options=None, *, wrapped=None, root=None)\n"
              "An optimized function; with self, an optimized bound method.",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_descr_get = callable_descr_get,
    CALLABLE_SLOTS,
};

PyTypeObject gd_BoundCallable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.BoundCallable",
    .tp_doc = "A Callable with a self: storing it in a class does not bind it again.",
    .tp_base = &gd_Callable_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_descr_get = bound_descr_get,
    CALLABLE_SLOTS,
};

static PyObject *
resume_new(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *owner, *function;
    if (!PyArg_ParseTuple(args, "OO:resume_new", &owner, &function)) {
        return NULL;
    }
    return gd_resume_new(owner, function);
}

static PyMethodDef functions[] = {
    {"resume_new", resume_new, METH_VARARGS,
     "resume_new(owner, function): a Callable for the rest of a frame, in owner's family."},
    {NULL, NULL, 0, NULL},
};

int
gd_callable_init(PyObject *module)
{
    if (PyModule_AddType(module, &gd_Callable_Type) < 0 || PyModule_AddType(module, &gd_BoundCallable_Type) < 0
        || PyModule_AddIntConstant(module, "FRAME_DIRECT", GD_FRAME_DIRECT) < 0
        || PyModule_AddIntConstant(module, "FRAME_HOOK", GD_FRAME_HOOK) < 0
        || PyModule_AddIntConstant(module, "FRAME_RESUME", GD_FRAME_RESUME) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
