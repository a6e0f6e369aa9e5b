/* The census: which instructions CPython itself runs beneath one call, and why. For explain() alone.
 *
 * While a thread takes one, CPython's own opcode events (a C trace function) name each instruction of each Python
 * frame, whether the eval-frame hook is in force or not, and the core says why it leaves a frame to CPython. What is
 * captured stays the same: sys.gettrace() shows nothing, and the tests for a trace function (gd_observed) see through
 * this one.
 *
 * What CPython has specialized is the one thing the program could ask for that differs: nothing is, while events are
 * taken.
 *
 *   frame of ...            what is counted
 *   the user's code         every instruction; those that call torch or are an operator on a tensor
 *   a transformed function  the same: its reader knows which few instructions stand for the user's own
 *   a library               its torch calls, at the instruction of the user that led there
 */
#ifndef GD_CENSUS_H
#define GD_CENSUS_H

#include "pycompat.h"
#include "runtime.h"

/* The trace function; compared by address only. */
int gd_census_trace(PyObject *obj, PyFrameObject *frame, int what, PyObject *arg);

/* Notes why a frame of this code, the next of its code to start, is CPython's. Borrows code. */
void gd_census_note(PyCodeObject *code, int reason);

/* reason: a GD_COUNT_*. Nothing outside explain(). */
static inline void
gd_census_left(PyCodeObject *code, int reason)
{
    if (GD_UNLIKELY(gd_thread.census != NULL)) {
        gd_census_note(code, reason);
    }
}

/* Whether somebody else's trace or profile function is active here. */
static inline int
gd_observed(PyThreadState *tstate)
{
    return gd_py_tracing(tstate) && !(gd_thread.census != NULL && gd_py_traced_by(tstate, gd_census_trace));
}

/* Adds census_start and census_stop to the module. 0 or -1 */
int gd_census_init(PyObject *module);

#endif
