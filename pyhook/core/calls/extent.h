/* An extent is a call (or the body of a `with` statement) during which the hook serves the frames of a family of
 * callables. While any extent of the process is in force, CPython calls our eval-frame function
 * (calls/eval_frame.c). */
#ifndef GD_EXTENT_H
#define GD_EXTENT_H

#include "pycompat.h"
#include "cache/frame_cache.h"
#include "runtime.h"

/* One extent in force: an element of its thread's stack of extents. The code that entered the extent owns the
 * memory. */
typedef struct gd_extent {
    gd_Root *root; /* strong: the family whose frames are served */
    struct gd_extent *outer; /* the next outer extent of this thread */
    gd_py_eval_function replaced; /* the eval function before entering */
    gd_py_eval_function previous; /* gd_hook.previous before entering */
} gd_extent;

/* The state of the hook, one for the process. */
typedef struct {
    int count; /* extents in force in the process */
    int generation; /* fork generation in which `count` was counted */
    int suspended; /* the hook stays uninstalled until the last extent ends or gd_hook_put_back runs */
    gd_py_eval_function ours; /* our eval function; eval_frame.c sets it, once */
    gd_py_eval_function previous; /* runs the frames that we do not serve */
} gd_hook_state;

extern gd_hook_state gd_hook;

/* gd_extent_enter begins an extent, in which the hook serves this thread's frames with the options and caches of
 * `root`. gd_extent_leave ends the extent, on the same thread. root is borrowed; the extent keeps a reference of its
 * own until it ends. Extents may end out of order, as when a `with` statement ends inside a call that has begun an
 * extent itself. Neither function fails. */
void gd_extent_enter(PyThreadState *tstate, gd_Root *root, gd_extent *extent);
void gd_extent_leave(PyThreadState *tstate, gd_extent *extent);

/* Returns how many extents are in force in the process. */
int gd_extent_count(void);

/* gd_hook_set_aside uninstalls the hook, and gd_hook_put_back reinstalls it. Between them runs code that must not
 * notice the hook, such as code that examines its own specialization: CPython specializes no call under a hook. aside:
 * the result of gd_hook_set_aside. Both act on the whole process: meanwhile, frames of other threads are not served
 * either. */
int gd_hook_set_aside(PyThreadState *tstate);
void gd_hook_put_back(PyThreadState *tstate, int aside);

/* Recounts the extents in a forked child. */
void gd_hook_recount(void);

/* Uninstalls the hook if no extent is in force, as in a forked child, where the extents of the other threads are
 * gone. */
static inline void
gd_hook_leave_unused(PyThreadState *tstate)
{
    if (GD_UNLIKELY(gd_hook.generation != gd_runtime.fork_generation)) {
        gd_hook_recount();
    }
    if (gd_hook.count == 0 && gd_py_get_eval(tstate) == gd_hook.ours) {
        gd_py_set_eval(tstate, gd_hook.previous);
    }
}

#endif
