/* Decides which frames are worth translating when a whole program is served, rather than named functions:
 * frames that receive a tensor or module, frames whose code names torch, and frames that run often. */
#ifndef GD_HEAT_H
#define GD_HEAT_H

#include "pycompat.h"
#include "cache/extra_state.h"
#include "cache/frame_cache.h"

/* How a frame that the hook could serve is run. */
enum {
    GD_HEAT_HOT = 0, /* the frame is served or translated */
    GD_HEAT_COLD = 1, /* CPython runs the frame, whose code has not been called often enough */
    /* CPython runs the frame and its callees without the hook: recent calls have met no tensor below the frame */
    GD_HEAT_ALONE = 2,
};

/* Returns how to run a call of `code` (GD_HEAT_*), and counts the call if the frame is cold. extra belongs to
 * `code`; root->hot_calls is above 0; slots begin with the frame's arguments (borrowed; NULL if an argument has no
 * value). Raises nothing. */
int gd_heat(const gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyFunctionObject *function,
            const gd_py_slot *slots);

/* While translations have taken at most 1/GD_HEAT_BUDGET of the process's CPU time, code that meets tensors is
 * translated at once, so that short programs benefit as well. Beyond that, such code waits for hot_tensor_calls
 * calls. */
enum { GD_HEAT_BUDGET = 8 };

/* Returns the CPU time of this thread, in nanoseconds. */
uint64_t gd_heat_clock(void);
/* Adds the time of a translation. begun: what gd_heat_clock returned when the translation began. */
void gd_heat_spent(uint64_t begun);

/* Notes that a frame worth serving ran, so that the frames above it keep the hook. */
void gd_heat_met(void);
/* Returns how many frames worth serving have run. This number, read before a cold frame runs, is the argument `seen` of
 * gd_heat_below. */
uint64_t gd_heat_seen(void);
/* Notes, after a cold frame has run, whether any frame below it met a tensor. seen: what gd_heat_seen returned
 * before the cold frame ran. The caller holds code. */
void gd_heat_below(PyCodeObject *code, uint64_t seen);

/* Notes that a hot frame was not served. If the frame's code meets no tensor, the next attempt comes after
 * twice as many calls. */
void gd_heat_vain(gd_ExtraState *extra);

#endif
