/* Whether tensors share memory. */
#ifndef GD_SHARED_MEMORY_H
#define GD_SHARED_MEMORY_H

#include "pycompat.h"

/* Adds shares_memory() to the module. Returns 0, or -1 with an exception set. */
int gd_shared_memory_init(PyObject *module);

#endif
