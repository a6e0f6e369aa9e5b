/* Values in words. */
#ifndef GD_GUARD_SHOW_H
#define GD_GUARD_SHOW_H

#include "guards/guarded_code.h"

/* A value for a person to read; NULL: "nothing". new, or NULL with an exception */
PyObject *gd_show_value(PyObject *v);

/* A constant of the entry's that is alive for certain; borrowed; NULL for another */
PyObject *gd_guard_constant(gd_GuardedCode *e, uint32_t a);

#endif
