/* Calls that the translator has made ahead of the program, and what functools.lru_cache keeps.
 *
 * A call of a function under lru_cache that misses the cache runs the function. If the function has no side effects,
 * the translator calls it at once and uses the result (variables/function_cached.go). The translation repeats such
 * calls, so that the cache counts them. The first repetition is the call that has been made already:
 *
 *     call = AheadCall(function)
 *     call(*args)    does nothing the first time, whatever the arguments
 *     call(*args)    is function(*args) from then on
 *
 * A cache of limited size keeps each result in a link. link_holds(link, value) returns whether it is this result. */
#ifndef GD_AHEAD_CALL_H
#define GD_AHEAD_CALL_H

#include "pycompat.h"

/* Adds the type AheadCall and the function link_holds to the module. Returns 0 or -1. */
int gd_ahead_call_init(PyObject *module);

#endif
