/* Full garbage collections wait while a function is translated: see full_collections.h. */
#include "full_collections.h"

static struct {
    int holds;
    gd_py_collections state; /* what to restore; valid while holds > 0 */
} waiting;

void
gd_hold_full_collections(PyThreadState *tstate)
{
    if (waiting.holds++ == 0) {
        waiting.state = gd_py_hold_full_collections(tstate->interp);
    }
}

void
gd_release_full_collections(void)
{
    if (waiting.holds > 0 && --waiting.holds == 0) {
        gd_py_release_full_collections(waiting.state);
    }
}

void
gd_full_collections_forked(int holds)
{
    if (waiting.holds > 0 && holds == 0) {
        gd_py_release_full_collections(waiting.state);
    }
    waiting.holds = waiting.holds > 0 ? holds : 0;
}
