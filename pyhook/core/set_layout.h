/* The table inside a set, which decides the order of iteration after every change to come. */
#ifndef GD_SET_LAYOUT_H
#define GD_SET_LAYOUT_H

#include "pycompat.h"

/* Adds set_clone and set_layout to the module. 0, or -1 with an exception. */
int gd_set_layout_init(PyObject *module);

#endif
