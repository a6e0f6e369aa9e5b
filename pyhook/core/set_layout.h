/* The hash table of a set, which determines the iteration order after every later change. */
#ifndef GD_SET_LAYOUT_H
#define GD_SET_LAYOUT_H

#include "pycompat.h"

/* Adds set_clone and set_layout to the module. Returns 0, or -1 with an exception set. */
int gd_set_layout_init(PyObject *module);

#endif
