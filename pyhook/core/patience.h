/* Signals that are held back (interrupt.h) are let through after a time, by a thread of its own that changes nothing
 * else in CPython: a backend that compiles must end at Ctrl-C, but not at once.
 */
#ifndef GD_PATIENCE_H
#define GD_PATIENCE_H

#include "pycompat.h"

/* Adds let_signals_through and hold_signals_again to the module. 0 or -1 */
int gd_patience_init(PyObject *module);

#endif
