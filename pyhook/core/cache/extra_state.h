/* ExtraState: the data in a code object's co_extra slot: the frame action, and an index of the
 * FrameCaches made for the code. It owns no objects. The garbage collector cannot see into code objects,
 * so entries owned here would keep every closure that reaches itself alive. A dying FrameCache removes
 * itself from the index.
 */
#ifndef GD_EXTRA_STATE_H
#define GD_EXTRA_STATE_H

#include "pycompat.h"

struct gd_FrameCache;

/* Frame action of a code object (gd_ExtraState.flags). */
enum {
    GD_CODE_SKIP = 1, /* never translated: it cannot be, or skip_code or the user decided so */
    GD_CODE_OURS = 2, /* made by a translation: the hook never translates it again */
    GD_CODE_ASKED = 4, /* skip_code was called; the result is GD_CODE_SKIP */
    GD_CODE_SKIP_TREE = 8, /* with GD_CODE_SKIP: frames below this one are left alone as well */
    GD_CODE_TORCH_ASKED = 16, /* names_torch was called; the result is GD_CODE_NAMES_TORCH */
    GD_CODE_NAMES_TORCH = 32,
    GD_CODE_MEETS_TENSOR = 64, /* a tensor or a module was among its arguments, or it names torch */
};

typedef struct {
    uint32_t flags;
    uint32_t watched; /* calls left to CPython by gd_watched_call (core/calls/miss.h), at most GD_WATCHED_CALLS */
    uint32_t calls; /* where everything is served: cold calls, which ran in CPython; core/calls/heat.h */
    uint16_t idle; /* how many of the latest cold calls in a row ran nothing worth serving below them */
    uint16_t vain; /* how often a hot frame was not served, and no tensor had been met */
    uint32_t count, capacity;
    struct gd_FrameCache **caches; /* borrowed; a FrameCache unlinks itself before it dies */
} gd_ExtraState;

/* borrowed, or NULL if the code has none. Raises nothing. */
gd_ExtraState *gd_extra_get(PyCodeObject *code);
/* The same, created when absent; borrowed, NULL with an exception without memory. */
gd_ExtraState *gd_extra_make(PyCodeObject *code);

/* Adds to and removes from the index. link: 0 or -1; unlink never fails. */
int gd_extra_link(PyCodeObject *code, struct gd_FrameCache *cache);
void gd_extra_unlink(PyCodeObject *code, struct gd_FrameCache *cache);

/* Sets flags on the code; 0 or -1. */
int gd_code_mark(PyCodeObject *code, uint32_t flags);

/* Requests the slot and adds code_flags to the module. 0 or -1 */
int gd_extra_state_init(PyObject *module);

#endif
