/* The census counts the instructions that CPython itself runs during one call, and records why CPython runs them.
 * Only explain() uses it.
 *
 * While a thread takes a census, CPython reports each instruction of each Python frame to the census's C trace
 * function, whether or not the eval-frame hook is installed. Whenever the core leaves a frame to CPython, it notes
 * the reason. A census does not change what is captured: sys.gettrace() does not show its trace function, and
 * gd_observed ignores it.
 *
 * The user's program can observe one difference: under a trace function CPython specializes no bytecode.
 *
 *    frame of ...            what is counted
 *    the user's code         every instruction. Torch calls and operators on tensors are also counted as torch calls
 *    a transformed function  as above. _explain/census.py knows which few of its instructions represent the user's code
 *    a library               its torch calls, each at the user's instruction that led to the library
 */
#ifndef GD_CENSUS_H
#define GD_CENSUS_H

#include "pycompat.h"
#include "runtime.h"

/* Counts the events of a census, as its C trace function. Other files only compare the address. */
int gd_census_trace(PyObject *obj, PyFrameObject *frame, int what, PyObject *arg);

/* Notes the reason (a GD_COUNT_*) why the next frame of this code runs in CPython. Borrows code. */
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
