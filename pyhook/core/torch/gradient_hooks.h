/* Hooks on leaf tensors, which run code of the program in backward(), read without running code. */
#ifndef GD_GRADIENT_HOOKS_H
#define GD_GRADIENT_HOOKS_H

#include "pycompat.h"

/* Adds gradients_run_code() to the module. Returns 0, or -1 with an exception set. */
int gd_gradient_hooks_init(PyObject *module);

#endif
