/* The PEP 523 eval-frame function, installed only for the dynamic extents that need it. */
#ifndef GD_EVAL_FRAME_H
#define GD_EVAL_FRAME_H

#include "pycompat.h"
#include "cache/frame_cache.h"

/* One extent in force: a link of its thread's stack of extents, in the memory of whoever entered it. */
typedef struct gd_extent {
    gd_Root *root;                 /* strong: whose frames are served */
    struct gd_extent *outer;       /* the one entered before on this thread */
    gd_py_eval_function replaced;  /* the eval function found when entering */
    gd_py_eval_function previous;  /* what ours was chained to before */
} gd_extent;

/* Serves the frames run on this thread from now on with root's family. Borrows root, keeps a reference until the extent is
 * left, on the same thread; a `with` that ends inside a call of ours leaves out of order, and may. Never fails. */
void gd_extent_enter(PyThreadState *tstate, gd_Root *root, gd_extent *extent);
void gd_extent_leave(PyThreadState *tstate, gd_extent *extent);

/* Takes the hook out while code runs whose specializing by CPython the user looks at, and puts it back: CPython specializes no call
 * under a hook. aside: what gd_hook_set_aside returned. Process-wide as the hook is: other threads' frames run unserved meanwhile. */
int gd_hook_set_aside(PyThreadState *tstate);
void gd_hook_put_back(PyThreadState *tstate, int aside);

/* Adds enter_extent, exit_extent, hook_installed, ... to the module. 0 or -1 */
int gd_eval_frame_init(PyObject *module);

#endif
