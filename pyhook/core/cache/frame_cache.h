/* FrameCache: the entries of one code object (with one globals dict) for one owner, and Root: what a family of
 * callables shares.
 *
 *   Callable W ──▶ FrameCache of W's code ──▶ GuardedCode, most recently used first
 *       └────────▶ Root ──▶ inner: FrameCaches of frames the hook serves, found by (code, globals) through the
 *                           ExtraState
 *
 * A resume function's W has a FrameCache of its own and its family's Root; nothing points from Root back to a W.
 */
#ifndef GD_FRAME_CACHE_H
#define GD_FRAME_CACHE_H

#include "pycompat.h"
#include "cache/extra_state.h"
#include "guards/guarded_code.h"

typedef struct gd_Root {
    PyObject_HEAD PyObject *options; /* strong, any object: what gd_request.options shows the translator */
    PyObject *inner; /* strong list of FrameCache */
    PyObject *resumes; /* strong dict or NULL: the translator's resume callables by code and place */
    PyObject *weakreflist;
    int cache_size_limit; /* -1: the process's setting holds */
    int hot_calls; /* where everything is served: a frame is translated after so many calls of its code; 0: at once */
    /* the same of code that meets tensors, as far as that is seen from outside; core/calls/heat.h */
    int hot_tensor_calls;
} gd_Root;

typedef struct gd_FrameCache {
    PyObject_HEAD
        /* the hot fields first */
        PyCodeObject *code; /* strong, never NULL */
    gd_GuardedCode **entries; /* strong references, most recently used first */
    uint32_t nentries, capacity;
    uint32_t version; /* changes with the set of entries, not with their order */
    uint32_t max_regs; /* registers that suffice for every entry, nslots + 2 at least */
    int32_t positional; /* arguments of a call that fills every slot by position, or -1: * or keyword-only ones */
    int32_t
        star_positional; /* for code with *args or **kwargs and no keyword-only ones: its other arguments; else -1 */
    uint32_t nargs; /* argument slots */
    uint32_t nslots; /* and the cells of the closure */
    char skip; /* never translated: run the user's own code */
    char warned; /* the limit was reported */
    uint16_t passes; /* translations in vain; see GD_MAX_PASSES */
    uint16_t idle; /* calls of a frame left to CPython that served nothing below it, in a row; see GD_IDLE_CALLS */
    uint64_t hits, misses;
    /* the cold ones */
    PyObject *globals; /* strong: the frames' globals dict */
    void *owner; /* borrowed, compared only: the Root whose `inner` holds this; NULL for a W's own */
    int in_progress; /* fork generation + 1 while a thread translates this code; 0: none */
    PyObject *failures; /* strong list of str, the last ones at its end; or NULL */
    PyObject *weakreflist;
    struct gd_FrameCache *prev, *next; /* all of the process, for reset() */
} gd_FrameCache;

extern PyTypeObject gd_FrameCache_Type, gd_Root_Type;

/* new; borrows its arguments. Links itself to the code's ExtraState. */
gd_FrameCache *gd_frame_cache_new(PyCodeObject *code, PyObject *globals, void *owner);
gd_Root *gd_root_new(PyObject *options);

/* The cache of this code and globals in the family, made when absent. borrowed; NULL without an exception when the
 * family is full (inner_limit), NULL with one when memory is out. */
gd_FrameCache *gd_root_inner(gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyObject *globals);

/* Puts the entry first; borrows it. 0 or -1 (no memory, wrong number of slots: exception set). */
int gd_frame_cache_add(gd_FrameCache *cache, gd_GuardedCode *entry);
/* Drops entries that died (weakly held object gone, reset). Runs destructors: the caller holds the cache. */
void gd_frame_cache_sweep(gd_FrameCache *cache);
/* Drops the entry used longest ago. */
void gd_frame_cache_evict(gd_FrameCache *cache);
/* Invalidates and drops all entries, forgets marks, reasons and counts. */
void gd_frame_cache_clear(gd_FrameCache *cache);
/* Keeps a recompile reason (borrowed str); at most GD_MAX_FAILURES, the oldest goes. Raises nothing. */
void gd_frame_cache_failed(gd_FrameCache *cache, PyObject *text);
#define GD_MAX_FAILURES 64

/* Moves the entry at `index` to the front. */
static inline void
gd_frame_cache_touch(gd_FrameCache *cache, uint32_t index)
{
    gd_GuardedCode *entry = cache->entries[index];
    for (uint32_t i = index; i > 0; i--) {
        cache->entries[i] = cache->entries[i - 1];
    }
    cache->entries[0] = entry;
}

/* Which entry to try first: what followed the entry that served last, the last time. Calls that take several entries in
 * turn (layers of several shapes) would find each at the end of the list else. There is an entry. */
static inline uint32_t
gd_frame_cache_guess(const gd_FrameCache *cache)
{
    const gd_GuardedCode *next = cache->entries[0]->follower;
    for (uint32_t i = 0; next != NULL && i < cache->nentries; i++) {
        if (cache->entries[i] == next) {
            return i;
        }
    }
    return 0;
}

/* Adds the types, mark_skip, code_caches and reset_caches to the module. 0 or -1 */
int gd_frame_cache_init(PyObject *module);

#endif
