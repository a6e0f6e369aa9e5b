/* Which frames are worth a translation where a whole program is served, and not what the user has named: those that a
 * tensor or a module comes into, those whose code names torch, and those that run often. */
#ifndef GD_HEAT_H
#define GD_HEAT_H

#include "pycompat.h"
#include "cache/extra_state.h"
#include "cache/frame_cache.h"

/* What becomes of a frame that the hook could serve. */
enum {
    GD_HEAT_HOT = 0, /* it is served, or translated */
    GD_HEAT_COLD = 1, /* CPython runs it, as one of too few calls */
    GD_HEAT_ALONE =
        2, /* CPython runs it and what it calls without the hook: nothing below it has met a tensor for long */
};

/* Judges a call of the frame's code and counts it. extra belongs to code, root has hot_calls above 0, slots begin with
 * the frame's arguments (borrowed, NULL for none). Raises nothing. */
int gd_heat(const gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyFunctionObject *function,
            PyObject *const *slots);

/* What translations have cost so far is no more than this part of the process's CPU time: code that meets tensors is
 * translated at once, so that short programs are served too; else after hot_tensor_calls. */
enum { GD_HEAT_BUDGET = 8 };

/* CPU time of this thread, in nanoseconds. */
uint64_t gd_heat_clock(void);
/* Adds what a translation has taken, since gd_heat_clock gave begun. */
void gd_heat_spent(uint64_t begun);

/* Something was met that the hook is for: a frame below which that happens keeps it. */
void gd_heat_met(void);
/* For gd_heat_below: taken before a cold frame runs. */
uint64_t gd_heat_seen(void);
/* A cold frame has run: takes note of whether something below it met a tensor. seen: what gd_heat_seen gave. The code
 * is held. */
void gd_heat_below(PyCodeObject *code, uint64_t seen);

/* A hot frame was not served: where no tensor was met, twice as many calls go by before the next attempt. */
void gd_heat_vain(gd_ExtraState *extra);

#endif
