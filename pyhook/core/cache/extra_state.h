/* ExtraState: what belongs to a code object (code_data.h). It holds the frame action and an index of the
 * FrameCaches made for the code, and owns no objects. The garbage collector cannot see into code objects, so
 * entries owned here would keep every closure that reaches itself alive. A dying FrameCache removes itself
 * from the index.
 */
#ifndef GD_EXTRA_STATE_H
#define GD_EXTRA_STATE_H

#include "pycompat.h"

struct gd_FrameCache;

/* Frame action of a code object (gd_ExtraState.flags). */
enum {
    GD_CODE_SKIP = 1, /* never translated, because it cannot be translated or the user decided so */
    GD_CODE_OURS = 2, /* made by a translation: the hook never translates it again */
    GD_CODE_ASKED = 4, /* skip_code was called; GD_CODE_FOREIGN is its result */
    GD_CODE_SKIP_TREE = 8, /* with GD_CODE_FOREIGN: the functions that this code calls are not translated either */
    GD_CODE_TORCH_ASKED = 16, /* names_torch was called; GD_CODE_NAMES_TORCH is its result */
    GD_CODE_NAMES_TORCH = 32,
    GD_CODE_FOREIGN = 128, /* a library's: the hook leaves it to CPython; optimize() makes it translated */
    GD_CODE_MEETS_TENSOR = 64, /* a tensor or a module was among its arguments, or it names torch */
};

typedef struct {
    uint32_t flags;
    /* number of calls that gd_watched_call (core/calls/miss.h) ran in CPython, at most GD_WATCHED_CALLS */
    uint32_t watched;
    /* used when the hook serves a whole program: the number of cold calls, which ran in CPython; core/calls/heat.h */
    uint32_t calls;
    uint16_t idle; /* how many cold calls in a row, up to the latest one, called no code that is worth serving */
    uint16_t vain; /* how many times a hot frame was not served and no tensor had been seen */
    uint32_t count, capacity;
    struct gd_FrameCache **caches; /* borrowed; a FrameCache unlinks itself before it dies */
} gd_ExtraState;

/* Returns the data of the code, borrowed, or NULL if it has none. Raises nothing. */
gd_ExtraState *gd_extra_get(PyCodeObject *code);
/* Returns the data of the code, borrowed, and creates it if absent. Returns NULL with MemoryError set. */
gd_ExtraState *gd_extra_make(PyCodeObject *code);

/* Add a FrameCache to the index, or remove it. gd_extra_link returns 0, or -1 with an exception set;
 * gd_extra_unlink never fails. */
int gd_extra_link(PyCodeObject *code, struct gd_FrameCache *cache);
void gd_extra_unlink(PyCodeObject *code, struct gd_FrameCache *cache);

/* Sets flags on the code. Returns 0, or -1 with an exception set. */
int gd_code_mark(PyCodeObject *code, uint32_t flags);

/* Prepares all of this and adds code_flags to the module. Returns 0, or -1 with an exception set. */
int gd_extra_state_init(PyObject *module);

#endif
