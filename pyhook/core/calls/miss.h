/* Serves one call: tries the entries of its FrameCache, else translates the frame. The Callable and the hook both
 * use it. */
#ifndef GD_MISS_H
#define GD_MISS_H

#include "pycompat.h"
#include "calls/extent.h"
#include "cache/frame_cache.h"
#include "runtime.h"
#include "callbacks.h"
#include "guards/eval.h"
#include "calls/traceback.h"

/* Register arrays of up to this size are on the C stack. */
#define GD_SMALL_REGS 64

/* How a call is finished. */
enum {
    GD_SERVED = 0, /* the call is done: *result is a new reference, or NULL with an exception set */
    GD_RUN_ORIGINAL = 1, /* the caller must run the user's own code */
    /* as RUN_ORIGINAL, inside an extent of the family, so that the code's callees are served */
    GD_RUN_ORIGINAL_HOOKED = 2,
    GD_RUN_ORIGINAL_WATCHING = 3, /* as HOOKED, with gd_thread.watching incremented */
    GD_RUN_ORIGINAL_ALONE = 4, /* as RUN_ORIGINAL, with the hook uninstalled */
    GD_RUN_ORIGINAL_AGAIN = 6, /* as RUN_ORIGINAL, between gd_rerun_begin and gd_rerun_end */
    /* as HOOKED; but once many calls in a row have served no callee, most calls run without the hook */
    GD_RUN_ORIGINAL_LEFT = 5,
};

/* While code that examines the interpreter itself runs, each code object that the hook could serve runs in CPython
 * for this many calls. So a single measurement sees CPython's behavior, but a loop that measures in each iteration
 * is still captured. */
#define GD_WATCHED_CALLS 32

/* Reports whether a call must run in CPython because code that examines the interpreter is running, and counts the
 * call. extra: the ExtraState of the call's code, or NULL. */
static inline int
gd_watched_call(gd_ExtraState *extra)
{
    return GD_UNLIKELY(gd_thread.watching > 0) && extra != NULL && extra->watched < GD_WATCHED_CALLS
           && ++extra->watched;
}

/* Handles a call that no entry serves: decides whether to translate, translates, and runs the new entry. Returns
 * one of the codes above (GD_SERVED, ...). slots: the frame's slots, kept alive by the caller. Arguments are
 * borrowed. */
int gd_serve_miss(PyThreadState *tstate, gd_FrameCache *cache, gd_Root *root, PyObject *owner,
                  PyFunctionObject *function, int kind, PyObject *const *slots, PyObject **result);

/* Calls the function of an entry that needs the hook (GD_ENTRY_NEEDS_HOOK) or takes over the references to its
 * arguments (GD_ENTRY_HANDS_OVER). Returns a new reference, or NULL with an exception set. */
PyObject *gd_entry_call_specially(PyThreadState *tstate, gd_GuardedCode *entry, gd_Root *root, PyObject **regs,
                                  size_t n);

/* Fills the two registers after the slots with globals and builtins, which any guard program may read. Returns 1,
 * or 0 if the collector has cleared the function. */
static inline int
gd_fill_globals(gd_FrameCache *cache, PyFunctionObject *function, PyObject **regs)
{
    regs[cache->nslots] = function->func_globals;
    regs[cache->nslots + 1] = function->func_builtins;
    return function->func_globals != NULL && function->func_builtins != NULL;
}

/* Copies the cells of the function's closure to the slots after the arguments. */
static inline void
gd_copy_cells(gd_FrameCache *cache, PyFunctionObject *function, PyObject **regs)
{
    for (uint32_t i = cache->nargs; i < cache->nslots; i++) {
        regs[i] = PyTuple_GET_ITEM(function->func_closure, i - cache->nargs);
    }
}

/* Runs an entry whose guard program has just succeeded on regs. Steals the reference to entry. Returns GD_SERVED
 * and sets *result, or returns the code that says how the caller must run the user's own code. */
static inline int
gd_entry_run(PyThreadState *tstate, gd_GuardedCode *entry, gd_Root *root, PyObject **regs, PyObject **result)
{
    uint32_t flags = entry->flags;
    entry->hits++;
    if (GD_UNLIKELY(flags & GD_ENTRY_RUN_ORIGINAL)) {
        Py_DECREF(entry);
        int hooked = (flags & GD_ENTRY_NEEDS_HOOK) != 0;
        return flags & GD_ENTRY_WATCHES ? hooked ? GD_RUN_ORIGINAL_WATCHING : GD_RUN_ORIGINAL_ALONE
               : hooked                 ? GD_RUN_ORIGINAL_HOOKED
                                        : GD_RUN_ORIGINAL;
    }
    size_t n = entry->nslots;
    for (uint32_t i = 0; i < entry->nextra; i++) {
        regs[n + i] = regs[entry->extra_regs[i]];
    }
    n += entry->nextra;
    PyObject *value = GD_UNLIKELY(flags & (GD_ENTRY_NEEDS_HOOK | GD_ENTRY_HANDS_OVER))
                          ? gd_entry_call_specially(tstate, entry, root, regs, n)
                      : GD_LIKELY(((PyFunctionObject *)entry->function)->func_code == entry->exact)
                          ? gd_py_call_exact(tstate, entry->function, regs, n)
                          : gd_py_call_function(tstate, entry->vectorcall, entry->function, regs, n, NULL);
    if (GD_UNLIKELY(value == NULL) && entry->ntb_rows > 0) {
        int raised = flags & GD_ENTRY_RERUN ? gd_graph_raised(entry) : 0;
        if (raised != 0) {
            if (raised == GD_RAISED_GRAPH) {
                gd_keep_graph_error();
            }
            Py_DECREF(entry);
            return raised == GD_RAISED_GRAPH ? GD_RUN_ORIGINAL : GD_RUN_ORIGINAL_AGAIN;
        }
        gd_fix_traceback(entry);
    }
    else if (GD_UNLIKELY(flags & GD_ENTRY_CATCHES)) {
        gd_fix_caught(entry, value);
    }
    *result = value;
    Py_DECREF(entry);
    return GD_SERVED;
}

/* Copies n borrowed references. The barrier keeps the compiler from turning the loop into a call of memcpy, which
 * would cost more than copying these few. */
static inline void
gd_copy_refs(PyObject **to, PyObject *const *from, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        to[i] = from[i];
        __asm__ volatile("" ::: "memory");
    }
}

/* Serves a call. Returns one of the codes above (GD_SERVED, ...). regs has room for cache->max_regs registers and
 * begins with the frame's slots. The caller holds cache, root and function. */
static inline __attribute__((always_inline)) int
gd_serve(PyThreadState *tstate, gd_FrameCache *cache, gd_Root *root, PyObject *owner, PyFunctionObject *function,
         int kind, PyObject **regs, PyObject **result)
{
    if (GD_UNLIKELY(!gd_fill_globals(cache, function, regs))) {
        return GD_RUN_ORIGINAL;
    }
    uint32_t version = cache->version, n = cache->nentries, guess = n > 1 ? gd_frame_cache_guess(cache) : 0;
    for (uint32_t k = 0; k < n; k++) {
        /* Try the guessed entry first, then the others in order. */
        uint32_t i = k == 0 ? guess : k - (k <= guess);
        gd_GuardedCode *entry = cache->entries[i];
        if (GD_UNLIKELY(!entry->valid)) {
            continue;
        }
        Py_INCREF(entry);
        if (GD_LIKELY(gd_guard_eval(entry, regs) < 0)) {
            cache->hits++;
            if (GD_UNLIKELY(n > 1) && GD_LIKELY(cache->version == version)) {
                cache->entries[0]->follower = entry;
                gd_frame_cache_touch(cache, i);
            }
            return gd_entry_run(tstate, entry, root, regs, result);
        }
        Py_DECREF(entry);
        if (GD_UNLIKELY(cache->version != version)) {
            /* a Python guard has changed the list, and regs may be too small now */
            return GD_RUN_ORIGINAL;
        }
    }
    return gd_serve_miss(tstate, cache, root, owner, function, kind, regs, result);
}

#endif
