/* Decides which frames are worth translating when a whole program is served, rather than named functions:
 * frames that receive a tensor or module, frames whose code names torch, and frames that run often. */
#ifndef GD_HEAT_H
#define GD_HEAT_H

#include "pycompat.h"
#include "cache/extra_state.h"
#include "cache/frame_cache.h"

/* How a frame that the hook could serve is run. */
enum {
    GD_HEAT_HOT = 0, /* it is served or translated */
    GD_HEAT_COLD = 1, /* CPython runs it: it has not been called often enough */
    GD_HEAT_ALONE =
        2, /* CPython runs it and its callees without the hook, after many calls with no tensor below them */
};

/* Classifies a call of the frame's code and counts it. extra belongs to code, root->hot_calls is above 0,
 * slots start with the frame's arguments (borrowed, NULL for none). Raises nothing. */
int gd_heat(const gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyFunctionObject *function,
            PyObject *const *slots);

/* While translations have taken at most 1/GD_HEAT_BUDGET of the process's CPU time, code that meets tensors
 * is translated at once, so that short programs benefit as well. Otherwise it waits for hot_tensor_calls calls. */
enum { GD_HEAT_BUDGET = 8 };

/* Returns the CPU time of this thread, in nanoseconds. */
uint64_t gd_heat_clock(void);
/* Adds the time of a translation that began at `begun`, by gd_heat_clock. */
void gd_heat_spent(uint64_t begun);

/* Notes that a frame worth serving ran: the frames above keep the hook. */
void gd_heat_met(void);
/* Returns how many frames worth serving have run. Call it before a cold frame runs, for gd_heat_below. */
uint64_t gd_heat_seen(void);
/* Notes, after a cold frame has run, whether anything below it met a tensor. seen: what gd_heat_seen
 * returned. The caller holds code. */
void gd_heat_below(PyCodeObject *code, uint64_t seen);

/* Notes that a hot frame was not served. If it meets no tensor, the next attempt comes after twice as many calls. */
void gd_heat_vain(gd_ExtraState *extra);

#endif
