/* Readable forms of values. */
#ifndef GD_GUARD_SHOW_H
#define GD_GUARD_SHOW_H

#include "guards/guarded_code.h"

/* Returns a value as a person reads it; "nothing" for NULL. new, or NULL with an exception */
PyObject *gd_show_value(PyObject *v);

/* Returns a constant of the entry that is certainly alive; borrowed; NULL for any other */
PyObject *gd_guard_constant(gd_GuardedCode *e, uint32_t a);

#endif
