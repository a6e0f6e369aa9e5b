/* What runs after an operation that must not run twice has raised inside `try` or `with`, or has not done what the
 * translation predicts (translate/resume_side_exit.go).
 *
 * The transformed code calls
 *
 *     go_on(plain, handler, args, after_1, args, handler_1, args, ..., exception)
 *
 * If `plain` is True, the resume functions run in CPython and are not translated: nopython=True allows no graph break in
 * them. `handler` is the resume function for the handler of the innermost user frame that has one. For each caller of that
 * frame, innermost first, there is a resume function for what follows its call, and one for the handler of its call
 * (None: the exception passes through the frame). Each comes with a tuple of its arguments, except the last: the
 * result of the call, or the exception. If the operation has not raised, `handler` is the resume function for what
 * follows its call, and the result of the call is in the exception's place.
 *
 * go_on returns a TailCall of `handler`, which keeps the rest. gd_fix_caught adds the user frames for tracebacks.
 */
#ifndef GD_OUTER_FRAMES_H
#define GD_OUTER_FRAMES_H

#include "calls/tail_call.h"

/* Runs a TailCall with outer frames, and then these. Steals t. Returns a new reference, or NULL with an exception
 * set. */
PyObject *gd_run_outer_frames(gd_TailCall *t);

/* Adds go_on to the module. Returns 0 or -1. */
int gd_outer_frames_init(PyObject *module);

#endif
