/* Readable forms of values. */
#ifndef GD_GUARD_SHOW_H
#define GD_GUARD_SHOW_H

#include "guards/guarded_code.h"

/* Returns a readable form of the value ("nothing" for NULL) as a new str, or NULL with an exception set. */
PyObject *gd_show_value(PyObject *v);

/* Returns a constant of the entry, borrowed, if it is certainly alive, or else NULL. */
PyObject *gd_guard_constant(gd_GuardedCode *e, uint32_t a);

#endif
