/* Tracebacks of exceptions raised in transformed code: they show the user's frames, as CPython would. */
#ifndef GD_TRACEBACK_H
#define GD_TRACEBACK_H

#include "guards/guarded_code.h"

/* Rewrites the pending exception's traceback after the function of entry e raised: adds one entry per inlined user
 * frame, drops the entries marked GD_TB_DROP, and replaces the frames of a graph by the user frames of the failed
 * operation. Keeps the exception set. */
void gd_fix_traceback(gd_GuardedCode *e);

/* Returns a new traceback that starts with a user frame (a level of a chain, gd_entry_spec.chains), followed by
 * traceback (borrowed; NULL: none). NULL with an exception set on failure. */
PyObject *gd_traceback_with(PyObject *level, PyObject *traceback);

/* Adds keep_in_traceback to the module. Returns 0 or -1. */
int gd_traceback_init(PyObject *module);

/* Rewrites the traceback of an exception that the function of entry e has caught. The function returned the
 * exception as the last argument of a tail call. If there is no exception, but the tail call's outer frames go on
 * later, sets their chain. result: what the function returned, borrowed; if it is not such a tail call, nothing
 * happens. Raises nothing. */
void gd_fix_caught(gd_GuardedCode *e, PyObject *result);

/* Rewrites the pending exception's traceback after a resume function has run untransformed: shows the user's frame
 * in place of the resume function's frame. Keeps the exception set. */
void gd_fix_resumed(PyFunctionObject *function);

/* Decides whether the user's own code runs from its start, after the pending exception has ended the function of
 * entry e.
 *
 *    GD_RAISED_GRAPH      It does: the compiled graph raised the exception, and nothing outside has seen the graph's
 *                         operations (may_run_again in _called/runtime.py). The exception stays pending.
 *    GD_RAISED_PROTECTED  It does, between gd_rerun_begin and gd_rerun_end: the user's code may handle the exception,
 *                         or the exception came from outside. The error indicator is cleared.
 *    0                    It does not. The exception stays pending. */
enum { GD_RAISED_GRAPH = 1, GD_RAISED_PROTECTED };
int gd_graph_raised(gd_GuardedCode *e);

#endif
