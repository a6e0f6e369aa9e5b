/* Code objects that must survive a failed MAKE_FUNCTION. */
#ifndef GD_KEPT_CODES_H
#define GD_KEPT_CODES_H

#include "pycompat.h"

/* Makes the code objects of nested functions of godynamo and torch immortal that are made from now on, if this CPython
 * needs it. Returns 0. */
int gd_kept_codes_init(PyObject *module);

#endif
