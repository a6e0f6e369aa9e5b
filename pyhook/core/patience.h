/* Ends a hold of signals (interrupt.h) when a given time is over: Ctrl-C must be able to end a backend's compilation,
 * but not at once. A separate thread does this, and changes nothing else in CPython. */
#ifndef GD_PATIENCE_H
#define GD_PATIENCE_H

#include "pycompat.h"

/* Adds let_signals_through and hold_signals_again to the module. Returns 0 or -1. */
int gd_patience_init(PyObject *module);

#endif
