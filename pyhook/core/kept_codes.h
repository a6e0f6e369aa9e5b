/* Code objects that must survive a failed MAKE_FUNCTION. */
#ifndef GD_KEPT_CODES_H
#define GD_KEPT_CODES_H

#include "pycompat.h"

/* From now on, makes the code objects of godynamo's nested functions immortal if this CPython needs it. Returns 0. */
int gd_kept_codes_init(PyObject *module);

#endif
