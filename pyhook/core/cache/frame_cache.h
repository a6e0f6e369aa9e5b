/* FrameCache: the entries of one code object (with one globals dict) for one owner. Root: the data that a
 * family of callables shares. A family is a Callable (W, what optimize(fn) returns) and its resume functions.
 *
 *   Callable W ──▶ FrameCache of W's code ──▶ GuardedCode, most recently used first
 *       └────────▶ Root ──▶ inner: FrameCaches of frames the hook serves, found by (code, globals) through the
 *                           ExtraState
 *
 * The Callable of a resume function has its own FrameCache and uses the Root of its family. No reference leads
 * from a Root back to a Callable.
 */
#ifndef GD_FRAME_CACHE_H
#define GD_FRAME_CACHE_H

#include "pycompat.h"
#include "cache/extra_state.h"
#include "guards/guarded_code.h"

typedef struct gd_Root {
    PyObject_HEAD PyObject *options; /* strong, any object: passed to the translator as gd_request.options */
    PyObject *inner; /* strong list of FrameCache */
    PyObject *resumes; /* strong dict, or NULL: the translator's resume callables by code and place */
    /* strong dict, or NULL: by code object, a set of the places of ints computed from sizes, for the translator */
    PyObject *size_places;
    PyObject *weakreflist;
    int cache_size_limit; /* -1: the process's setting applies */
    /* used when the hook serves a whole program: a frame is translated after this many calls of its code; 0: at
     * the first call */
    int hot_calls;
    /* hot_calls for code that is known to use tensors; core/calls/heat.h */
    int hot_tensor_calls;
} gd_Root;

typedef struct gd_FrameCache {
    PyObject_HEAD
        /* fields of the hot path */
        PyCodeObject *code; /* strong, never NULL */
    gd_GuardedCode **entries; /* strong references, most recently used first */
    uint32_t nentries, capacity;
    uint32_t version; /* changes when entries are added or removed, not when they are reordered */
    uint32_t max_regs; /* enough registers for every entry; at least nslots + 2 */
    int32_t positional; /* the number of parameters if all are positional, or else -1 */
    /* if there is *args or **kwargs and no keyword-only parameter: the number of positional parameters; or
     * else -1 */
    int32_t star_positional;
    uint32_t nargs; /* argument slots */
    uint32_t nslots; /* argument slots and closure cells */
    char skip; /* never translated: the user's own code runs */
    char warned; /* the limit has been reported */
    uint16_t passes; /* number of attempts to translate that left the frame to CPython; see GD_MAX_PASSES */
    uint16_t idle; /* calls in a row that ran in CPython and under which no frame was served; see GD_IDLE_CALLS */
    uint64_t hits, misses;
    /* the other fields */
    PyObject *globals; /* strong: the frames' globals dict */
    /* borrowed and only compared: the Root whose `inner` holds this cache; NULL for the cache of a Callable */
    void *owner;
    int in_progress; /* fork generation + 1 while a thread translates this code; 0: none */
    PyObject *failures; /* strong list of str, the latest last, or NULL */
    /* strong set or NULL: the places whose values have differed between calls, as the Go library names them */
    PyObject *varied;
    PyObject *weakreflist;
    struct gd_FrameCache *prev, *next; /* links in the list of all caches in the process, for reset() */
} gd_FrameCache;

extern PyTypeObject gd_FrameCache_Type, gd_Root_Type;

/* Return new objects, or NULL with an exception set; they borrow their arguments. A new cache is linked to
 * the code's ExtraState. ncells: cells of the function's closure; a resume function has none for its free variables. */
gd_FrameCache *gd_frame_cache_new(PyCodeObject *code, Py_ssize_t ncells, PyObject *globals, void *owner);
gd_FrameCache *gd_frame_cache_of(PyFunctionObject *function);
gd_Root *gd_root_new(PyObject *options);

/* Returns the family's cache of this code and globals, borrowed, and creates it if absent. Returns NULL
 * with no exception set if the family is full (inner_limit) or the globals are no plain dict, or NULL with MemoryError
 * set. Globals of another class belong to one evaluation, as those that annotationlib makes; a FrameCache would keep
 * them, and what they refer to, as long as the code object. */
gd_FrameCache *gd_root_inner(gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyObject *globals);

/* Puts the entry first and takes a new reference to it. Returns 0, or -1 with an exception set (no memory,
 * wrong number of slots). */
int gd_frame_cache_add(gd_FrameCache *cache, gd_GuardedCode *entry);
/* Drops invalid entries (an object of their weak references died, or reset() was called). This runs
 * destructors, so the caller must hold the cache. */
void gd_frame_cache_sweep(gd_FrameCache *cache);
/* Drops the least recently used entry. */
void gd_frame_cache_evict(gd_FrameCache *cache);
/* Drops this entry; returns 0 if the cache does not have it. */
int gd_frame_cache_drop(gd_FrameCache *cache, gd_GuardedCode *entry);
/* Returns the first of the process's caches, borrowed; `next` leads to the others, older ones. */
gd_FrameCache *gd_frame_caches(void);
/* Invalidates and drops all entries; resets marks, reasons and counts. */
void gd_frame_cache_clear(gd_FrameCache *cache);
/* Adds a recompile reason (borrowed str). Keeps only the last GD_MAX_FAILURES reasons. Raises nothing. */
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

/* Returns the index of the entry to try first. entries[0] served the latest call. The guess is the entry that served
 * the next call the last time entries[0] served one. Without it, calls that cycle through several entries (layers of
 * several shapes) would each find their entry at the end of the list. There must be at least one entry. */
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

/* Adds the types, mark_skip, code_caches and reset_caches to the module. Returns 0, or -1 with an exception set. */
int gd_frame_cache_init(PyObject *module);

#endif
