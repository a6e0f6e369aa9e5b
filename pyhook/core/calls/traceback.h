/* Tracebacks of exceptions raised in transformed code: they show the user's frames, as CPython would. */
#ifndef GD_TRACEBACK_H
#define GD_TRACEBACK_H

#include "guards/guarded_code.h"

/* Fixes the current exception's traceback after `function` raised: adds one entry per inlined user frame,
 * drops the entries marked GD_TB_DROP, and replaces the frames of a graph by the user frames of the failed
 * operation. Keeps the exception set. */
void gd_fix_traceback(gd_GuardedCode *e);

/* Adds keep_in_traceback to the module. Returns 0 or -1. */
int gd_traceback_init(PyObject *module);

/* Fixes the traceback of an exception that the entry's function has caught and passes on as the last argument
 * of the tail call it returned. result: borrowed, anything. Raises nothing. */
void gd_fix_caught(gd_GuardedCode *e, PyObject *result);

/* Fixes the current exception's traceback after a resume function has run untransformed: shows the user's
 * frame in place of the resume function's. Raises nothing else. */
void gd_fix_resumed(PyFunctionObject *function);

/* Decides whether the user's own code runs from its start instead, after the pending exception has ended e's
 * function. GD_RAISED_GRAPH: the compiled graph raised it, and nothing outside has seen the graph's
 * operations (may_run_again in _called/runtime.py); it stays pending. GD_RAISED_PROTECTED: the user's code
 * may handle it, or it came from outside; the error indicator is cleared, and the code runs between
 * gd_rerun_begin and gd_rerun_end. 0: neither; it stays pending. */
enum { GD_RAISED_GRAPH = 1, GD_RAISED_PROTECTED };
int gd_graph_raised(gd_GuardedCode *e);

#endif
