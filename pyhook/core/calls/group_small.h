/* Units of a group that run on the memory of their tensors, by the kernels of torch/kernels.h. */
#ifndef GD_GROUP_SMALL_H
#define GD_GROUP_SMALL_H

#include "calls/group_plan.h"

/* Runs one unit, operation by operation as in the program, if all its tensors are small, plain, contiguous, on the
 * CPU, alone in their storage and without NaN, and nothing could tell that torch is not called. The caller has made
 * sure that grad mode is off and no mode active. An operation without a kernel for its operands is called, as are those
 * after it; later calls of the group then try this no more. Signals are handled after the unit. Returns 1 if the unit
 * has run, 0 if it has not begun, or -1 with the exception of a step. */
int gd_group_run_small(gd_group *g, PyObject *const *external);

/* Runs the step of an Epilogue (calls/epilogue.h) in the memory of the first external, a tensor that an operation has
 * just made and nothing else reads. All tensors must be as above, and autograd may record nothing. Returns the result,
 * new: that tensor, or what the operation returns if there is no kernel for the operands. Returns NULL without an
 * exception if nothing has run, or with the operation's exception. */
PyObject *gd_group_run_fresh(gd_group *g, PyObject *const *external);

#endif
