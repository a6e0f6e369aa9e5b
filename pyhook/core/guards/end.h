/* Finds out whether the user's code runs when objects are deallocated. */
#ifndef GD_GUARD_END_H
#define GD_GUARD_END_H

#include "pycompat.h"

/* Reports whether the user's code may run when the frame drops `places` references to the value. True if
 * these are the last references, and the value, or an object that only the value refers to, has a __del__
 * or a weak reference with a callback. Also true if there are too many objects to check. Runs no code and
 * raises nothing. */
int gd_ends_in_code(PyObject *v, int places);

/* Does the same as gd_ends_in_code for an item of a list, tuple or deque, or for the contents of a cell.
 * Returns 0 if the item does not exist or the cell is empty. */
int gd_item_ends_in_code(PyObject *v, Py_ssize_t i, int places);

/* Does the same as gd_ends_in_code for the value that an instance or a dict holds under a name, a key or an
 * index. If `slot` is set, the value is in the instance's slot of that name. Returns -1 with an exception
 * set on failure. */
int gd_ends_in_code_at(PyObject *owner, PyObject *at, int slot, int places);

/* Does the same as gd_ends_in_code for a variable of a resumed frame, but returns 0 if there are too many
 * objects to check. Returning 1 would affect most frames: a module that the frame no longer reads has many
 * objects, and the frame's caller keeps that module alive. */
int gd_variable_ends_in_code(PyObject *v, int places);

/* Calls gd_ends_in_code for a value to which the translation also holds references: each of its `attempts` keeps what
 * it has read. If attempts is 0, calls gd_variable_ends_in_code, for a variable. */
int gd_end_may_run_code(PyObject *v, int attempts);

#endif
