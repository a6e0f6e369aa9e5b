/* Ends a hold of signals (interrupt.h) after a time, on a separate thread that changes nothing else in CPython.
 * Ctrl-C must be able to end a backend's compilation, but not at once. */
#ifndef GD_PATIENCE_H
#define GD_PATIENCE_H

#include "pycompat.h"

/* Adds let_signals_through and hold_signals_again to the module. Returns 0 or -1. */
int gd_patience_init(PyObject *module);

#endif
