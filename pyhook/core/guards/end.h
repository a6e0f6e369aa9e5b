/* Whether the user's code runs when objects end. */
#ifndef GD_GUARD_END_H
#define GD_GUARD_END_H

#include "pycompat.h"

/* Whether the user's code may run when the frame drops `places` references to the value: nothing else refers to it, and
 * it, or something that only it refers to, has a __del__ or a weak reference with a callback. True as well when there
 * are too many objects to look at. Runs nothing, raises nothing. */
int gd_ends_in_code(PyObject *v, int places);

/* The same for an item of a list, tuple or deque, or the contents of a cell, if there are any. */
int gd_item_ends_in_code(PyObject *v, Py_ssize_t i, int places);

/* The same for what lies in an instance or a dict under a name (slot: in a slot of that name), or key, or at an index.
 * -1 with an exception */
int gd_ends_in_code_at(PyObject *owner, PyObject *at, int slot, int places);

/* The same for a variable of a resumed frame; more objects than a look takes in count as silence. A module that the
 * frame no longer reads, and its caller holds, would end most frames else. */
int gd_variable_ends_in_code(PyObject *v, int places);

/* Either for a value that a translation holds, too. */
int gd_end_may_run_code(PyObject *v, int stores);

#endif
