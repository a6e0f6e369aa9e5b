/* LOAD_METHOD as a function. The instruction pushes two values, or one and NULL, and a resume function's
 * arguments can hold neither form. */
#ifndef GD_LOAD_METHOD_H
#define GD_LOAD_METHOD_H

#include "pycompat.h"

/* Adds load_method to the module. 0 or -1 */
int gd_load_method_init(PyObject *module);

#endif
