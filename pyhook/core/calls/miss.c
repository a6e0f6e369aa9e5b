/* Calls that no entry serves: see calls/miss.h. */
#include "calls/miss.h"

#include "cache/bound.h"
#include "callbacks.h"
#include "calls/census.h"
#include "calls/heat.h"
#include "calls/other_hook.h"
#include "calls/rerun.h"
#include "calls/tail_call.h"
#include "full_collections.h"
#include "golib_load.h"
#include "guards/eval.h"
#include "guards/failure.h"
#include "guards/varied.h"
#include "interrupt.h"
#include "replaced_builtins.h"
#include "runtime.h"
#include "torch/leave_modes.h"
#include "torch/torch_modes.h"
#include "torch/torch_observers.h"

/* After this many attempts to translate that left the frame to CPython, a FrameCache gets no new entries. */
#define GD_MAX_PASSES 16

/* The miss being handled: the data for the translator and the callbacks, and the state of the miss. */
typedef struct {
    gd_FrameCache *cache;
    gd_Root *root;
    PyObject *owner;
    PyFunctionObject *function;
    PyObject *const *slots;
    PyObject *failures; /* strong list or NULL */
    PyObject *varied; /* strong list or NULL; gd_request.varied */
    int last; /* the limit allows no entry after this one */
    int kind;
    int others; /* when the translation began, another thread ran Python (it may have ended since) */
    int held; /* this miss holds signals back until the entry or the user's own code runs */
    int interrupted; /* the exception to raise came from outside (interrupt.h) */
    int marked; /* this miss has set cache->in_progress */
} miss;

static void
end_hold(miss *m)
{
    gd_release_signals(m->held);
    m->held = 0;
}

/* Ends the mark that this code is in translation. The mark outlasts the translation until its result is in the cache:
 * Python code may run in between, and then another thread, which would translate the same code again. */
static void
end_mark(miss *m)
{
    if (m->marked) {
        m->marked = 0;
        m->cache->in_progress = 0;
    }
}

/* Decides how a call raises the pending exception, which none of the frame's operations raised. Returns how the call
 * is finished. If the frame has not begun, the call itself raises an error that is meant for the caller. Any other
 * exception is raised by the user's own code, where the frame begins or continues: CPython checks for signals there,
 * and the traceback keeps the frame. */
static int
raising(const miss *m, PyObject **result)
{
    *result = NULL;
    if (m->kind != GD_FRAME_RESUME && !m->interrupted) {
        return GD_SERVED;
    }
    gd_rerun_prepare(NULL, 1);
    return GD_RUN_ORIGINAL_AGAIN;
}

/* ---- registers ---- */

/* Returns a register array for `entry` that begins with the call's slots, globals and builtins, all borrowed. The
 * caller frees it. Returns NULL with MemoryError set. */
static PyObject **
new_regs(const miss *m, gd_GuardedCode *entry)
{
    size_t n = Py_MAX((size_t)entry->nregs, (size_t)m->cache->nslots + 2);
    PyObject **regs = PyMem_Calloc(n, sizeof(PyObject *));
    if (regs == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(regs, m->slots, m->cache->nslots * sizeof(PyObject *));
    gd_fill_globals(m->cache, m->function, regs);
    return regs;
}

/* Collects the reasons why the entries did not serve, the most recently used entry first. Returns a new list, or
 * NULL without an exception. The FrameCache keeps the reasons as well. If varied is not NULL, the values for which
 * entries did not serve are appended to it. */
static PyObject *
collect_failures(const miss *m, PyObject *varied)
{
    gd_FrameCache *cache = m->cache;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < cache->nentries; i++) {
        gd_GuardedCode *entry = (gd_GuardedCode *)Py_NewRef(cache->entries[i]);
        PyObject **regs = new_regs(m, entry);
        int node = regs != NULL ? gd_guard_eval(entry, regs) : -1;
        PyObject *text = node >= 0 ? gd_guard_failure_text(entry, node, regs) : NULL;
        if (text != NULL) {
            gd_frame_cache_failed(cache, text);
            if (PyList_Append(list, text) < 0) {
                PyErr_Clear();
            }
            Py_DECREF(text);
        }
        PyErr_Clear();
        /* it fetches all values again; those in regs may be gone if it calls Python */
        PyObject *values = node >= 0 && varied != NULL ? gd_varied_values(entry, regs, node, m->last) : NULL;
        if (values != NULL && PyList_Append(varied, values) < 0) {
            PyErr_Clear();
        }
        Py_XDECREF(values);
        PyErr_Clear();
        PyMem_Free(regs);
        Py_DECREF(entry);
    }
    PyErr_Clear();
    return list;
}

static void
drop_reasons(miss *m)
{
    Py_CLEAR(m->failures);
    Py_CLEAR(m->varied);
}

/* ---- may this call be translated? ---- */

/* Returns the counter (GD_COUNT_*) of the reason not to translate this call, or -1 if it may be translated. */
static int
refusal(PyThreadState *tstate, const miss *m)
{
    gd_ExtraState *extra = gd_extra_get(m->cache->code);
    if (m->cache->skip || (extra != NULL && (extra->flags & GD_CODE_SKIP))) {
        m->cache->skip = 1;
        return GD_COUNT_skipped;
    }
    /* While the interpreter finalizes, nothing can be imported, but cached entries still serve. */
    if (gd_switched_off() || gd_runtime.broken || gd_thread.mode == GD_MODE_DISABLED || gd_is_finalizing()) {
        return GD_COUNT_disabled;
    }
    if (gd_thread.mode == GD_MODE_RUN_ONLY || gd_runtime.stance == GD_STANCE_EAGER_ON_RECOMPILE) {
        return GD_COUNT_run_only;
    }
    if (gd_thread.translating > 0) {
        return GD_COUNT_reentrant;
    }
    if (m->cache->passes >= GD_MAX_PASSES) {
        return GD_COUNT_given_up;
    }
    if (m->kind == GD_FRAME_HOOK && gd_watched_call(extra)) {
        return GD_COUNT_watched;
    }
    /* A torch mode sees every operation and attribute access in order, so a translation must neither add any nor
     * fold any away. Under a torch.func transform, tensors are wrappers that no backend accepts. torch.compile
     * compiles in neither case. */
    if (gd_torch_mode_active()) {
        return GD_COUNT_torch_mode;
    }
    if (gd_builtins_replaced()) {
        return GD_COUNT_replaced_builtins;
    }
    if (gd_py_depth_left(tstate) < 100 || gd_stack_headroom() < GD_STACK_TRANSLATE) {
        return GD_COUNT_no_headroom;
    }
    if (gd_runtime.stance == GD_STANCE_EAGER_THEN_COMPILE && m->cache->misses == 1 && m->kind != GD_FRAME_RESUME) {
        return GD_COUNT_run_only;
    }
    /* The last check: those before may run Python, and with it a thread that begins this translation. */
    if (m->cache->in_progress == gd_runtime.fork_generation + 1) {
        return GD_COUNT_in_progress;
    }
    return -1;
}

/* Calls one of Python's callbacks about this miss. Returns a new reference, or NULL with an exception set. */
static PyObject *
tell(const miss *m, const char *callback, int limit)
{
    PyObject *failures = m->failures != NULL ? Py_NewRef(m->failures) : collect_failures(m, NULL);
    PyObject *first = m->cache->nslots > 0 && m->slots[0] != NULL ? (PyObject *)Py_TYPE(m->slots[0]) : Py_None;
    PyObject *info =
        Py_BuildValue("{s:O,s:O,s:O,s:O,s:i,s:i,s:O,s:O}", "owner", m->owner, "function", m->function, "code",
                      m->cache->code, "cache", m->cache, "entries", (int)m->cache->nentries, "limit", limit, "failures",
                      failures != NULL ? failures : Py_None, "first_type", first);
    PyObject *result = info != NULL ? gd_call_python(callback, info) : NULL;
    Py_XDECREF(info);
    Py_XDECREF(failures);
    return result;
}

/* Calls Python to raise the exception that the user chose in place of a translation: exc.RecompileError, or
 * exc.FailOnRecompileLimitHit if limit is not 0. Returns how the call is finished. */
static int
refused(const miss *m, int limit, PyObject **result)
{
    GD_COUNT(refused);
    PyObject *answer = tell(m, "refused", limit);
    if (answer == NULL) {
        return raising(m, result);
    }
    Py_DECREF(answer);
    return GD_RUN_ORIGINAL;
}

/* Calls tell() for a callback whose result does not matter and whose failure must not reach the user's call. */
static void
tell_only(const miss *m, const char *callback, int limit)
{
    PyObject *result = tell(m, callback, limit);
    if (result == NULL) {
        gd_swallow((PyObject *)m->function);
    }
    Py_XDECREF(result);
}

/* Calls tell() for the user's own callbacks. An Exception is reported as unraisable. Returns 0, or -1 with any
 * other exception set, such as KeyboardInterrupt or SystemExit. */
static int
tell_user(const miss *m, const char *callback)
{
    PyObject *result = tell(m, callback, 0);
    if (result == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return -1;
        }
        gd_swallow((PyObject *)m->function);
    }
    Py_XDECREF(result);
    return 0;
}

/* Reports whether one more entry is allowed. Evicts entries to make room if the settings say so. Collects the
 * failure reasons of all entries first, those of evicted ones included, and the values for which they failed. */
static int
room_for_entry(miss *m)
{
    gd_FrameCache *cache = m->cache;
    uint32_t limit =
        (uint32_t)(m->root->cache_size_limit >= 0 ? m->root->cache_size_limit : gd_runtime.cache_size_limit);
    gd_frame_cache_sweep(cache);
    int full = cache->nentries >= limit;
    if (full) {
        GD_COUNT(limit_reached);
        if (!gd_runtime.cache_evict || limit == 0) {
            if (!cache->warned) {
                cache->warned = 1;
                tell_only(m, "limit_reached", (int)limit);
            }
            return 0;
        }
    }
    m->last = cache->nentries > 0 && cache->nentries + 1 >= limit;
    if (cache->nentries > 0) {
        m->varied = PyList_New(0);
        PyErr_Clear();
        m->failures = collect_failures(m, m->varied);
    }
    while (cache->nentries >= limit) {
        gd_frame_cache_evict(cache);
    }
    return 1;
}

/* ---- translation ---- */

/* Calls the Python translator that is set in place of the Go library (set_translate_callback). It receives the
 * request as a dict; its result is stored in reply. */
static void
translate_by_callback(const gd_request *q, gd_reply *reply)
{
    PyObject *slots = PyTuple_New(q->nslots);
    for (uint32_t i = 0; slots != NULL && i < q->nslots; i++) {
        PyTuple_SET_ITEM(slots, i, Py_NewRef(q->slots[i]));
    }
    PyObject *request = slots == NULL
                            ? NULL
                            : Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:k,s:i,s:i,s:O,s:O,s:i}", "owner", q->owner,
                                            "options", q->options, "function", q->function, "cache", q->cache, "slots",
                                            slots, "nargs", (unsigned long)q->nargs, "kind", q->kind, "nentries",
                                            q->nentries, "failures", q->failures != NULL ? q->failures : Py_None,
                                            "varied", q->varied != NULL ? q->varied : Py_None, "last", (int)q->last);
    PyObject *callback = Py_NewRef(gd_runtime.translate_callback);
    PyObject *answer = request != NULL ? PyObject_CallOneArg(callback, request) : NULL;
    Py_DECREF(callback);
    Py_XDECREF(slots);
    Py_XDECREF(request);
    if (answer == NULL) {
        reply->status = GD_RAISE;
    }
    else if (Py_IS_TYPE(answer, &gd_GuardedCode_Type)) {
        reply->status = GD_OK;
        reply->entry = answer;
        return;
    }
    else if (PyUnicode_Check(answer) && PyUnicode_CompareWithASCIIString(answer, "skip") == 0) {
        reply->status = GD_SKIP;
    }
    else if (answer != Py_None) {
        PyErr_Format(PyExc_TypeError, "the translate callback returned %R", answer);
        reply->status = GD_RAISE;
    }
    Py_XDECREF(answer);
}

/* Translates the frame and fills reply. A failure of the Go library itself is an internal error and becomes GD_PASS. */
static void
translate(const miss *m, gd_reply *reply)
{
    gd_request q = {
        .owner = m->owner,
        .options = m->root->options != NULL ? m->root->options : Py_None,
        .function = (PyObject *)m->function,
        .cache = (PyObject *)m->cache,
        .slots = m->slots,
        .nslots = m->cache->nslots,
        .nargs = m->cache->nargs,
        .kind = m->kind,
        .nentries = (int32_t)m->cache->nentries,
        .failures = m->failures,
        .varied = m->varied,
        .last = m->last,
    };
    reply->status = GD_PASS;
    reply->entry = NULL;
    GD_COUNT(translations);
    if (gd_runtime.translate_callback != NULL) {
        translate_by_callback(&q, reply);
        return;
    }
    const gd_golib_api *lib = gd_golib_get();
    if (lib == NULL) {
        GD_COUNT(no_golib);
        return;
    }
    GD_COUNT(golib_calls);
    if (gd_golib_translate(lib, &q, reply) != 0) {
        gd_internal_error("translate failed", (PyObject *)m->function);
        reply->status = GD_PASS;
    }
}

/* Translates the frame, with its FrameCache marked as in translation. The mark holds the fork generation, so a
 * forked child ignores the marks of threads that it does not have. */
static void
translate_marked(PyThreadState *tstate, miss *m, gd_reply *reply)
{
    gd_thread.translating++;
    PyObject *torch_callback = gd_torch_quiet();
    uint64_t begun = gd_heat_clock();
    gd_thread.holds_collections = 1;
    gd_hold_full_collections(tstate);
    int hidden = gd_torch_hide();
    translate(m, reply);
    gd_torch_show(hidden);
    gd_release_full_collections();
    gd_thread.holds_collections = 0;
    gd_heat_spent(begun);
    gd_torch_resume(torch_callback);
    gd_thread.translating--;
    PyObject *interruption = gd_take_interruption();
    gd_leave_modes();
    if (gd_thread.no_memory) { /* an allocation failed, so the reply may be wrong */
        gd_thread.no_memory = 0;
        PyErr_Clear();
        Py_CLEAR(reply->entry);
        reply->status = GD_PASS;
    }
    if (interruption != NULL) { /* raise the exception even if other code has caught it since */
        PyErr_Clear();
        PyErr_Restore(Py_NewRef(Py_TYPE(interruption)), interruption, PyException_GetTraceback(interruption));
        Py_CLEAR(reply->entry);
        reply->status = GD_RAISE;
        m->interrupted = 1;
    }
    /* The reply and the error indicator must agree: CPython would raise an exception left pending by a good reply
     * at an unrelated place. */
    if (reply->status != GD_RAISE && PyErr_Occurred()) {
        gd_internal_error("translation left an exception behind", (PyObject *)m->function);
    }
    else if (reply->status == GD_RAISE && !PyErr_Occurred()) {
        gd_internal_error("translation raised nothing", (PyObject *)m->function);
        reply->status = GD_PASS;
    }
    if ((reply->status == GD_OK) != (reply->entry != NULL && Py_IS_TYPE(reply->entry, &gd_GuardedCode_Type))) {
        gd_internal_error("translation gave no usable entry", (PyObject *)m->function);
        if (reply->status == GD_OK) {
            reply->status = GD_PASS;
        }
    }
    if (reply->status != GD_OK) {
        Py_CLEAR(reply->entry);
    }
}

/* ---- the fresh entry ---- */

/* Adds a new entry to its FrameCache and runs it. The guard program is evaluated although it was made for these
 * very values: this fills the registers that the entry's function takes, and proves that the guards hold on the
 * frame they were built from. */
static int
run_fresh(PyThreadState *tstate, miss *m, gd_GuardedCode *entry, PyObject **result)
{
    int added = gd_frame_cache_add(m->cache, entry);
    gd_varied_made_for(entry, m->slots);
    end_mark(m);
    if (added < 0) {
        gd_internal_error("entry does not fit its frame", (PyObject *)m->function);
        return GD_RUN_ORIGINAL;
    }
    gd_bound_apply(entry);
    PyObject **regs = new_regs(m, entry);
    if (regs == NULL) {
        PyErr_Clear();
        return GD_RUN_ORIGINAL;
    }
    int how = GD_RUN_ORIGINAL;
    int failed = entry->valid ? gd_guard_eval(entry, regs) : 0;
    if (failed < 0) {
        end_hold(m);
        how = gd_entry_run(tstate, (gd_GuardedCode *)Py_NewRef(entry), m->root, regs, result);
    }
    else {
        GD_COUNT(fresh_guard_failed);
        PyObject *text = gd_guard_failure_text(entry, failed, regs);
        if (text != NULL) {
            gd_frame_cache_failed(m->cache, text);
            PyErr_SetObject(PyExc_SystemError, text);
            Py_DECREF(text);
        }
        gd_entry_invalidate(entry);
        if (!m->others && !gd_py_others_run(tstate)) {
            gd_internal_error("guards fail on the frame they were made from", (PyObject *)m->function);
        }
        PyErr_Clear(); /* another thread may have changed what the guards check */
    }
    PyMem_Free(regs);
    return how;
}

/* Runs an entry that another thread has added since this call looked for one, if the entry's guards hold. Returns how
 * the call is finished, or -1 if there is no such entry. */
static int
run_entry_of_another_thread(PyThreadState *tstate, miss *m, PyObject **result)
{
    for (uint32_t i = 0; i < m->cache->nentries; i++) {
        gd_GuardedCode *entry = (gd_GuardedCode *)Py_NewRef(m->cache->entries[i]);
        PyObject **regs = entry->valid ? new_regs(m, entry) : NULL;
        int how = -1;
        if (regs != NULL && gd_guard_eval(entry, regs) < 0) {
            end_mark(m);
            end_hold(m);
            how = gd_entry_run(tstate, (gd_GuardedCode *)Py_NewRef(entry), m->root, regs, result);
        }
        if (how < 0) {
            PyErr_Clear(); /* of new_regs, or of a guard */
        }
        PyMem_Free(regs);
        Py_DECREF(entry);
        if (how >= 0) {
            return how;
        }
    }
    return -1;
}

/* Serves a miss that may be translated, while its FrameCache is marked as in translation. */
static int
serve_marked(PyThreadState *tstate, miss *m, PyObject **result)
{
    gd_FrameCache *cache = m->cache;
    int served = run_entry_of_another_thread(tstate, m, result);
    if (served >= 0) {
        return served;
    }
    if (gd_runtime.stance == GD_STANCE_FAIL_ON_RECOMPILE || (gd_runtime.error_on_recompile && cache->nentries > 0)) {
        return refused(m, 0, result);
    }
    if (!room_for_entry(m)) {
        gd_census_left(cache->code, GD_COUNT_limit_reached);
        return gd_runtime.fail_on_recompile_limit_hit ? refused(m, (int)cache->nentries, result) : GD_RUN_ORIGINAL;
    }
    gd_reply reply;
    m->others = gd_py_others_run(tstate);
    unsigned errors = gd_thread.internal_errors;
    if (GD_UNLIKELY(gd_runtime.tells) && tell_user(m, "compile_start") < 0) {
        drop_reasons(m);
        return raising(m, result);
    }
    translate_marked(tstate, m, &reply);
    if (GD_UNLIKELY(gd_runtime.tells)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (tell_user(m, "compile_end") < 0) {
            Py_CLEAR(reply.entry);
            reply.status = GD_RAISE;
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(traceback);
        }
        else {
            PyErr_Restore(type, value, traceback);
        }
    }
    drop_reasons(m);
    int how = GD_RUN_ORIGINAL;
    switch (reply.status) {
    case GD_OK:
        GD_COUNT(translated);
        how = run_fresh(tstate, m, (gd_GuardedCode *)reply.entry, result);
        Py_DECREF(reply.entry);
        break;
    case GD_SKIP:
        GD_COUNT(skipped);
        gd_census_left(cache->code, GD_COUNT_skipped);
        cache->skip = 1;
        if (gd_code_mark(cache->code, GD_CODE_SKIP | GD_CODE_ASKED) < 0) {
            PyErr_Clear();
        }
        how = GD_RUN_ORIGINAL_LEFT;
        break;
    /* All nn.Modules share the code of Module.__call__: one module may be too large to translate, and others not. */
    case GD_SKIP_HERE:
        GD_COUNT(skipped);
        gd_census_left(cache->code, GD_COUNT_skipped);
        cache->skip = 1;
        how = GD_RUN_ORIGINAL_LEFT;
        break;
    case GD_RAISE:
        GD_COUNT(raised);
        how = raising(m, result);
        break;
    default:
        /* A later call might be translated, but most are not. Without a limit, a loop over such a function would
         * spend its time here. */
        GD_COUNT(passed);
        gd_census_left(cache->code, GD_COUNT_passed);
        cache->passes++;
        how = reply.status == GD_LEAVE ? GD_RUN_ORIGINAL_LEFT : GD_RUN_ORIGINAL;
        break;
    }
    if (GD_UNLIKELY(gd_thread.internal_errors != errors)) {
        cache->skip = 1; /* our bug affects this code only: its callees are served */
    }
    return how;
}

static int
serve(PyThreadState *tstate, miss *m, PyObject **result)
{
    gd_FrameCache *cache = m->cache;
    GD_COUNT(misses);
    cache->misses++;
    int reason = refusal(tstate, m);
    if (reason >= 0) {
        gd_runtime.counters[reason]++;
        /* the caller that disabled translation is the reason, not the frame's own code */
        if (reason != GD_COUNT_disabled) {
            gd_census_left(cache->code, reason);
        }
        return reason == GD_COUNT_skipped || reason == GD_COUNT_given_up ? GD_RUN_ORIGINAL_LEFT : GD_RUN_ORIGINAL;
    }
    cache->in_progress = gd_runtime.fork_generation + 1;
    m->marked = 1;
    int how = serve_marked(tstate, m, result);
    end_mark(m);
    return how;
}

int
gd_serve_miss(PyThreadState *tstate, gd_FrameCache *cache, gd_Root *root, PyObject *owner, PyFunctionObject *function,
              int kind, PyObject *const *slots, PyObject **result)
{
    miss m = {.cache = cache,
              .root = root,
              .owner = owner,
              .function = function,
              .slots = slots,
              .kind = kind,
              .held = gd_hold_signals()};
    int how = serve(tstate, &m, result);
    end_hold(&m);
    return how;
}

PyObject *
gd_entry_call_specially(PyThreadState *tstate, gd_GuardedCode *entry, gd_Root *root, PyObject **regs, size_t n)
{
    int hooked = entry->flags & GD_ENTRY_NEEDS_HOOK;
    gd_extent extent;
    if (hooked) {
        gd_extent_enter(tstate, root, &extent);
    }
    PyObject *value = entry->flags & GD_ENTRY_HANDS_OVER
                          ? gd_call_handing_over(tstate, entry->vectorcall, entry->function, regs, n)
                          : gd_py_call_function(tstate, entry->vectorcall, entry->function, regs, n, NULL);
    if (hooked) {
        gd_extent_leave(tstate, &extent);
    }
    return value;
}
