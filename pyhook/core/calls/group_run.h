/* Calls of a Group. */
#ifndef GD_GROUP_RUN_H
#define GD_GROUP_RUN_H

#include "calls/group_plan.h"

/* The vectorcall of a Group: runs the units on their values. Returns None (new), or NULL with the exception of the
 * step that raised it. If that ran together with other units, these may have got further than in the program. */
PyObject *gd_group_call(PyObject *group, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
