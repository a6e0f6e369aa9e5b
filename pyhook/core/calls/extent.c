/* Extents, and the installation of the hook: see calls/extent.h.
 *
 * Under a hook, every call between Python functions uses C stack: call-heavy code is 1.3 to 1.4 times slower, and
 * the stack overflows at 40,000 frames instead of never. So the hook is installed only while some thread is inside
 * an extent.
 */
#include "calls/extent.h"

#include "calls/heat.h"

gd_hook_state gd_hook = {.previous = _PyEval_EvalFrameDefault};

/* Recounts the extents in a forked child, where the other threads are gone: only this thread's extents remain. */
void
gd_hook_recount(void)
{
    if (GD_UNLIKELY(gd_hook.generation != gd_runtime.fork_generation)) {
        gd_hook.generation = gd_runtime.fork_generation;
        gd_hook.count = 0;
        for (gd_extent *e = gd_thread.extent; e != NULL; e = e->outer) {
            gd_hook.count++;
        }
    }
}

static void
install(PyThreadState *tstate, gd_extent *extent)
{
    extent->replaced = gd_py_get_eval(tstate);
    extent->previous = gd_hook.previous;
    if (extent->replaced != gd_hook.ours && !gd_hook.suspended) {
        gd_hook.previous = extent->replaced;
        gd_py_set_eval(tstate, gd_hook.ours);
        GD_COUNT(hook_installs);
    }
}

/* Restores the previous eval function if ours is installed. A foreign hook that was installed later stays: it has
 * ours as its previous function. */
static void
uninstall(PyThreadState *tstate, const gd_extent *extent)
{
    if (gd_hook.count == 0) {
        gd_hook.suspended = 0;
    }
    if (gd_py_get_eval(tstate) != gd_hook.ours) {
        return;
    }
    if (gd_hook.count == 0) {
        gd_py_set_eval(tstate, gd_hook.previous);
        gd_hook.previous = _PyEval_EvalFrameDefault;
    }
    else if (extent->outer != NULL && extent->replaced != gd_hook.ours) {
        /* A foreign hook was installed between an outer extent of this thread and this one: restore the foreign
         * hook. */
        gd_py_set_eval(tstate, extent->replaced);
        gd_hook.previous = extent->previous;
    }
}

void
gd_extent_enter(PyThreadState *tstate, gd_Root *root, gd_extent *extent)
{
    gd_hook_recount();
    extent->root = (gd_Root *)Py_NewRef(root);
    extent->outer = gd_thread.extent;
    gd_thread.extent = extent;
    gd_hook.count++;
    gd_heat_met();
    install(tstate, extent);
}

void
gd_extent_leave(PyThreadState *tstate, gd_extent *extent)
{
    gd_hook_recount();
    for (gd_extent **link = &gd_thread.extent; *link != NULL; link = &(*link)->outer) {
        if (*link == extent) {
            *link = extent->outer;
            gd_hook.count--;
            uninstall(tstate, extent);
            Py_DECREF(extent->root);
            return;
        }
    }
}

int
gd_extent_count(void)
{
    gd_hook_recount();
    return gd_hook.count;
}

int
gd_hook_set_aside(PyThreadState *tstate)
{
    if (gd_py_get_eval(tstate) != gd_hook.ours) {
        return 0;
    }
    gd_hook.suspended = 1;
    gd_py_set_eval(tstate, gd_hook.previous);
    return 1;
}

void
gd_hook_put_back(PyThreadState *tstate, int aside)
{
    gd_hook_recount();
    if (!aside || !gd_hook.suspended) {
        return; /* nothing was set aside, or the outermost extent has ended meanwhile */
    }
    gd_hook.suspended = 0;
    if (gd_hook.count > 0 && gd_py_get_eval(tstate) == gd_hook.previous) {
        gd_py_set_eval(tstate, gd_hook.ours);
    }
}
