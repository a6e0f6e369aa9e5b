/* ExtraState: what hangs on a code object (its co_extra slot): the frame action, and an index of the FrameCaches made
 * for it. It owns nothing: the garbage collector cannot see into code objects, so entries owned here would keep every
 * closure that reaches itself alive. A FrameCache takes itself out of the index when it goes.
 */
#ifndef GD_EXTRA_STATE_H
#define GD_EXTRA_STATE_H

#include "pycompat.h"

struct gd_FrameCache;

/* Frame action of a code object (gd_ExtraState.flags). */
enum {
    GD_CODE_SKIP = 1, /* can never be translated, or was marked so */
    GD_CODE_OURS = 2, /* made by a translation: never translated again by the hook */
    GD_CODE_ASKED = 4, /* skip_code was asked; its verdict is GD_CODE_SKIP */
    GD_CODE_SKIP_TREE = 8, /* with GD_CODE_SKIP: what runs below the frame is left alone too */
    GD_CODE_TORCH_ASKED = 16, /* names_torch was asked; its verdict is GD_CODE_NAMES_TORCH */
    GD_CODE_NAMES_TORCH = 32,
    GD_CODE_MEETS_TENSOR = 64, /* a tensor or a module was among its arguments, or it names torch */
};

typedef struct {
    uint32_t flags;
    uint32_t watched; /* its frames that were left to CPython for GD_WATCHED_CALLS; core/calls/miss.h */
    uint32_t calls; /* its frames that were left to CPython as too few, where everything is served; core/calls/heat.h */
    uint16_t idle; /* of them those below which nothing met a tensor, in a row */
    uint16_t vain; /* times it was hot and nothing was gained */
    uint32_t count, capacity;
    struct gd_FrameCache **caches; /* borrowed; a FrameCache unlinks itself before it dies */
} gd_ExtraState;

/* borrowed, or NULL where nothing hangs on the code. Raises nothing. */
gd_ExtraState *gd_extra_get(PyCodeObject *code);
/* The same, made when absent; borrowed, NULL with an exception without memory. */
gd_ExtraState *gd_extra_make(PyCodeObject *code);

/* The index. link: 0 or -1; unlink never fails. */
int gd_extra_link(PyCodeObject *code, struct gd_FrameCache *cache);
void gd_extra_unlink(PyCodeObject *code, struct gd_FrameCache *cache);

/* Sets flags on the code; 0 or -1. */
int gd_code_mark(PyCodeObject *code, uint32_t flags);

/* Requests the slot and adds code_flags to the module. 0 or -1 */
int gd_extra_state_init(PyObject *module);

#endif
