/* Which values differ from those that an entry was made for. */
#ifndef GD_GUARD_VARIED_H
#define GD_GUARD_VARIED_H

#include "guards/guarded_code.h"

/* Describes the values for which an entry did not serve a call: a number that differs (an int, a float, or a scalar of
 * numpy), a tensor's sizes or strides, or a condition on sizes. If the entry failed for another reason as well, nothing
 * is described, unless `any` is set. `failed` is the result of gd_guard_eval, and regs is laid out as for
 * gd_guard_eval.
 *
 * Returns a new tuple (entry, parts, tensors, moved), or NULL without an exception if there is nothing to describe:
 *   parts    the part of each node that compares a number, if the number differs
 *   tensors  (number of the tensor in the program, mask of the dimensions whose sizes differ) for each tensor
 *   moved    the slots that hold another object than in the call the entry was made for
 *
 * Runs no Python code. A PY_CHECK node after the failed one has not run in this call. If it is about the process, it is
 * assumed to hold, and so is one that compares a number. If it reads another value of the program, nothing is
 * described; if `any` is set, only the node is left out. The same is true of tensors that only Python can read. */
PyObject *gd_varied_values(gd_GuardedCode *e, PyObject **regs, int failed, int any);

/* Records the objects in the slots of the call for which the entry was made. If memory is out, none is recorded. */
void gd_varied_made_for(gd_GuardedCode *e, PyObject *const *slots);

#endif
