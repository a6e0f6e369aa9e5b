/* LOAD_METHOD as a function. The instruction leaves two values on the stack, or one and NULL; a resume function's
 * arguments take neither. */
#ifndef GD_LOAD_METHOD_H
#define GD_LOAD_METHOD_H

#include "pycompat.h"

/* Adds load_method to the module. 0 or -1 */
int gd_load_method_init(PyObject *module);

#endif
