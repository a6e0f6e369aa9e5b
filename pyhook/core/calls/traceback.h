/* Tracebacks of what transformed code raises: the user's frames, as CPython would show them. */
#ifndef GD_TRACEBACK_H
#define GD_TRACEBACK_H

#include "guards/guarded_code.h"

/* After `function` raised: gives the current exception's traceback one entry per inlined user frame, drops the entries
 * marked GD_TB_DROP, and puts the user frames of the failed operation in place of the frames of a graph. Keeps the
 * exception set. */
void gd_fix_traceback(gd_GuardedCode *e);

/* Adds keep_in_traceback. */
int gd_traceback_init(PyObject *module);

/* The same for an exception that the entry's function has caught and hands on in the tail call that it returned.
 * result: borrowed, anything. Raises nothing. */
void gd_fix_caught(gd_GuardedCode *e, PyObject *result);

/* The same for the exception that is set, after a resume function has run as it is: its frame is the user's. Raises
 * nothing else. */
void gd_fix_resumed(PyFunctionObject *function);

/* The pending exception has ended e's function: whether the user's own code is to run instead, from its start.
 * GD_RAISED_GRAPH: an exception of the compiled graph's own, and nothing outside has seen the graph's operations
 * (may_run_again in _called/runtime.py); it stays pending. GD_RAISED_PROTECTED: one that the user's code may handle, or
 * that came from outside; it is off the error indicator, and the code runs between gd_rerun_begin and gd_rerun_end. 0:
 * neither, it stays pending. */
enum { GD_RAISED_GRAPH = 1, GD_RAISED_PROTECTED };
int gd_graph_raised(gd_GuardedCode *e);

#endif
