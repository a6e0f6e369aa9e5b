/* Attaches one pointer to each code object. Up to CPython 3.13 the pointer is in the code object's co_extra. CPython
 * 3.14 does not pass a function to another interpreter if its code has a co_extra, so there the pointer is in a hash
 * table.
 */
#ifndef GD_CODE_DATA_H
#define GD_CODE_DATA_H

#include "pycompat.h"

/* Must be called first. `release` frees a pointer when its code object dies, possibly at the interpreter's exit or in a
 * forked child. Returns 0, or -1 with an exception set if CPython has no room for one more user of code objects. */
int gd_code_data_init(void (*release)(void *));

/* Returns the pointer of the code object, or NULL. Raises nothing. */
void *gd_code_data_get(PyCodeObject *code);

/* Sets the pointer of a code object that has none. Returns 0, or -1 with an exception set. */
int gd_code_data_set(PyCodeObject *code, void *data);

#endif
