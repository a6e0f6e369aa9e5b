/* Finds torch's C++ functions and variables by their mangled names, without libtorch's headers, and torch's Python
 * objects by their paths. */
#ifndef GD_TORCH_SYMBOLS_H
#define GD_TORCH_SYMBOLS_H

#include "pycompat.h"

/* Returns the address of a symbol in torch's libraries, or NULL with no exception set if there is none. torch must
 * have been imported. */
void *gd_torch_symbol(const char *name);

/* Returns the attribute of torch at a dotted path as a new reference, or NULL with an exception set. Imports torch. */
PyObject *gd_torch_attribute(const char *path);

#endif
