/* Calls after which CPython looks for no request.
 *
 * CPython looks for signals, and for exceptions that other threads have set, after each CALL: one that has done its
 * work may raise what was not its own. Where transformed code has done something that cannot be done again, inside of a
 * block of the user, no handler of the user's would see it. There calls are written as subscripts, which are followed
 * by no such look:
 *
 *     quiet_calls[f, a, b]                    f(a, b)
 *     quiet_calls[f, a, b, keywords(("k",))]  f(a, k=b)
 *     held_calls[f, a, b]                     the same with signals held back while f runs, which may be Python: what
 *                                             puts state back
 *
 * The next CALL, jump back or frame of the user's looks again.
 */
#ifndef GD_QUIET_CALL_H
#define GD_QUIET_CALL_H

#include "pycompat.h"

/* Adds quiet_calls, held_calls and the type Keywords to the module. 0 or -1 */
int gd_quiet_call_init(PyObject *module);

#endif
