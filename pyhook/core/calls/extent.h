/* Extents: the calls inside of which a family's frames are served. While one is in force in the process, CPython calls
 * our eval-frame function (calls/eval_frame.c). */
#ifndef GD_EXTENT_H
#define GD_EXTENT_H

#include "pycompat.h"
#include "cache/frame_cache.h"
#include "runtime.h"

/* One extent in force: a link of its thread's stack of extents, in the memory of whoever entered it. */
typedef struct gd_extent {
    gd_Root *root; /* strong: whose frames are served */
    struct gd_extent *outer; /* the one entered before on this thread */
    gd_py_eval_function replaced; /* the eval function found when entering */
    gd_py_eval_function previous; /* what ours was chained to before */
} gd_extent;

/* The hook of the process. */
typedef struct {
    int count; /* extents in force in the process */
    int generation; /* fork generation in which they were counted */
    int suspended; /* stay out until the outermost extent ends (a thread ran short of C stack), or it is put back */
    gd_py_eval_function ours; /* eval_frame.c sets it, once */
    gd_py_eval_function previous; /* what the frames we do not serve are passed to */
} gd_hook_state;

extern gd_hook_state gd_hook;

/* Serves the frames run on this thread from now on with root's family. Borrows root, keeps a reference until the extent
 * is left, on the same thread; a `with` that ends inside a call of ours leaves out of order, and may. Never fails. */
void gd_extent_enter(PyThreadState *tstate, gd_Root *root, gd_extent *extent);
void gd_extent_leave(PyThreadState *tstate, gd_extent *extent);

/* How many extents of the process are in force. */
int gd_extent_count(void);

/* Takes the hook out while code runs whose specializing by CPython the user looks at, and puts it back: CPython
 * specializes no call under a hook. aside: what gd_hook_set_aside returned. Process-wide as the hook is: other threads'
 * frames run unserved meanwhile. */
int gd_hook_set_aside(PyThreadState *tstate);
void gd_hook_put_back(PyThreadState *tstate, int aside);

/* Counts the extents again in a forked child. */
void gd_hook_recount(void);

/* Takes the hook out where no extent is in force: in a forked child, those of the other threads are gone. */
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
