/* FrameCache: the entries of one code object (with one globals dict) for one owner. Root: the data that a
 * family of callables shares.
 *
 *   Callable W ──▶ FrameCache of W's code ──▶ GuardedCode, most recently used first
 *       └────────▶ Root ──▶ inner: FrameCaches of frames the hook serves, found by (code, globals) through the
 *                           ExtraState
 *
 * A resume function's W has its own FrameCache and its family's Root; no reference leads from Root back
 * to a W.
 */
#ifndef GD_FRAME_CACHE_H
#define GD_FRAME_CACHE_H

#include "pycompat.h"
#include "cache/extra_state.h"
#include "guards/guarded_code.h"

typedef struct gd_Root {
    PyObject_HEAD PyObject *options; /* strong, any object: passed to the translator as gd_request.options */
    PyObject *inner; /* strong list of FrameCache */
    PyObject *resumes; /* strong dict or NULL: the translator's resume callables by code and place */
    PyObject *weakreflist;
    int cache_size_limit; /* -1: the process's setting applies */
    int hot_calls; /* where everything is served: how many calls of its code before a frame is translated; 0: none */
    /* the same for code that is seen to use tensors; core/calls/heat.h */
    int hot_tensor_calls;
} gd_Root;

typedef struct gd_FrameCache {
    PyObject_HEAD
        /* fields of the hot path */
        PyCodeObject *code; /* strong, never NULL */
    gd_GuardedCode **entries; /* strong references, most recently used first */
    uint32_t nentries, capacity;
    uint32_t version; /* changes with the set of entries, not with their order */
    uint32_t max_regs; /* registers that suffice for every entry, nslots + 2 at least */
    int32_t positional; /* number of parameters if all are positional; else -1 */
    int32_t star_positional; /* with *args or **kwargs and no keyword-only ones: number of the others; else -1 */
    uint32_t nargs; /* argument slots */
    uint32_t nslots; /* the same and the closure's cells */
    char skip; /* never translated: run the user's own code */
    char warned; /* the limit has been reported */
    uint16_t passes; /* attempts to translate that left the frame to CPython; see GD_MAX_PASSES */
    uint16_t idle; /* calls in a row left to CPython that served no frame below them; see GD_IDLE_CALLS */
    uint64_t hits, misses;
    /* the other fields */
    PyObject *globals; /* strong: the frames' globals dict */
    void *owner; /* borrowed, compared only: the Root whose `inner` holds this cache; NULL for the cache of a W */
    int in_progress; /* fork generation + 1 while a thread translates this code; 0: none */
    PyObject *failures; /* strong list of str, the latest last; or NULL */
    PyObject *weakreflist;
    struct gd_FrameCache *prev, *next; /* list of all caches in the process, for reset() */
} gd_FrameCache;

extern PyTypeObject gd_FrameCache_Type, gd_Root_Type;

/* Return new objects; borrow their arguments. A new cache is linked to the code's ExtraState. */
gd_FrameCache *gd_frame_cache_new(PyCodeObject *code, PyObject *globals, void *owner);
gd_Root *gd_root_new(PyObject *options);

/* Returns the family's cache of this code and globals, created when absent. borrowed; NULL without an
 * exception when the family is full (inner_limit), NULL with one without memory. */
gd_FrameCache *gd_root_inner(gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyObject *globals);

/* Puts the entry first and takes a new reference to it. 0, or -1 with an exception (no memory, wrong
 * number of slots). */
int gd_frame_cache_add(gd_FrameCache *cache, gd_GuardedCode *entry);
/* Drops dead entries (a weakly held object died, or reset() was called). Runs destructors: the caller
 * holds the cache. */
void gd_frame_cache_sweep(gd_FrameCache *cache);
/* Drops the least recently used entry. */
void gd_frame_cache_evict(gd_FrameCache *cache);
/* Invalidates and drops all entries; resets marks, reasons and counts. */
void gd_frame_cache_clear(gd_FrameCache *cache);
/* Adds a recompile reason (borrowed str). Keeps the last GD_MAX_FAILURES. Raises nothing. */
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

/* The index of the entry to try first: the one that last followed the entry that served last. Without
 * this guess, calls that cycle through several entries (layers of several shapes) would each find theirs
 * at the end of the list. There must be at least one entry. */
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
