/* Calls after which CPython does not check for signals.
 *
 * After each CALL, CPython checks for signals and for exceptions that other threads have set. So a call may raise such
 * an exception after it has done its work. If that work cannot be repeated, and the call is inside a block of the
 * user's code, the user's handlers would not see the exception. In these places calls are written as subscripts, which
 * no check follows:
 *
 *     quiet_calls[f, a, b]                    f(a, b)
 *     quiet_calls[f, a, b, keywords(("k",))]  f(a, k=b)
 *     held_calls[f, a, b]                     f(a, b) with signals held back while f runs; for Python functions that
 *                                             restore state
 *
 * The next CALL, backward jump or frame of the user's code checks again.
 */
#ifndef GD_QUIET_CALL_H
#define GD_QUIET_CALL_H

#include "pycompat.h"

/* Adds quiet_calls, held_calls and the type Keywords to the module. Returns 0 or -1. */
int gd_quiet_call_init(PyObject *module);

#endif
