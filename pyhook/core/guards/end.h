/* Whether the user's code runs when objects are deallocated. */
#ifndef GD_GUARD_END_H
#define GD_GUARD_END_H

#include "pycompat.h"

/* Whether the user's code may run when the frame drops `places` references to the value. True if these
 * are the last references, and the value, or something that only it refers to, has a __del__ or a weak
 * reference with a callback. Also true when there are too many objects to check. Runs nothing, raises
 * nothing. */
int gd_ends_in_code(PyObject *v, int places);

/* The same for an item of a list, tuple or deque, or for the contents of a cell; 0 when there is none. */
int gd_item_ends_in_code(PyObject *v, Py_ssize_t i, int places);

/* The same for the value that an instance or a dict holds under a name, a key or an index (slot: in the
 * slot of that name). -1 with an exception */
int gd_ends_in_code_at(PyObject *owner, PyObject *at, int slot, int places);

/* The same for a variable of a resumed frame, but false when there are too many objects to check.
 * Otherwise most frames would be affected: a module that the frame no longer reads has many objects, and
 * its caller keeps it alive. */
int gd_variable_ends_in_code(PyObject *v, int places);

/* gd_ends_in_code (stores) or gd_variable_ends_in_code (not stores), for a value that the translation holds as well. */
int gd_end_may_run_code(PyObject *v, int stores);

#endif
