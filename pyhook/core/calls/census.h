/* The census counts the instructions that CPython itself runs during one call, and says why. Only explain()
 * uses it.
 *
 * While a thread takes one, CPython's opcode events (a C trace function) report each instruction of each
 * Python frame, whether or not the eval-frame hook is installed. The core notes why it leaves a frame to
 * CPython. The same code is captured as without a census: sys.gettrace() shows nothing, and gd_observed does
 * not count this trace function.
 *
 * The program could observe one difference: CPython specializes no bytecode while events are taken.
 *
 *   frame of ...            what is counted
 *   the user's code         every instruction; torch calls and operators on tensors also count as torch
 *   a transformed function  the same; _explain/census.py knows which of its few instructions represent the user's
 *   a library               its torch calls, at the user's instruction that led there
 */
#ifndef GD_CENSUS_H
#define GD_CENSUS_H

#include "pycompat.h"
#include "runtime.h"

/* The census's trace function; others compare its address only. */
int gd_census_trace(PyObject *obj, PyFrameObject *frame, int what, PyObject *arg);

/* Notes why the next frame of this code runs in CPython. Borrows code. */
void gd_census_note(PyCodeObject *code, int reason);

/* Calls gd_census_note if a census is under way. reason: a GD_COUNT_*. */
static inline void
gd_census_left(PyCodeObject *code, int reason)
{
    if (GD_UNLIKELY(gd_thread.census != NULL)) {
        gd_census_note(code, reason);
    }
}

/* Reports whether a trace or profile function other than the census's is active on this thread. */
static inline int
gd_observed(PyThreadState *tstate)
{
    return gd_py_tracing(tstate) && !(gd_thread.census != NULL && gd_py_traced_by(tstate, gd_census_trace));
}

/* Adds census_start and census_stop to the module. Returns 0 or -1. */
int gd_census_init(PyObject *module);

#endif
