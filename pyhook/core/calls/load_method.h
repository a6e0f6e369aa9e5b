/* LOAD_METHOD as a function that returns one value. The instruction itself pushes two values, or a NULL and a
 * value, and a resume function cannot take either pair as a parameter. */
#ifndef GD_LOAD_METHOD_H
#define GD_LOAD_METHOD_H

#include "pycompat.h"

/* Adds load_method to the module. Returns 0 or -1. */
int gd_load_method_init(PyObject *module);

#endif
