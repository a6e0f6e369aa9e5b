/* Sizes, strides and ints in guard programs: the nodes that follow TENSORS. */
#ifndef GD_GUARD_SIZES_H
#define GD_GUARD_SIZES_H

#include "guards/guarded_code.h"

/* Runs the n nodes that follow TENSORS, which has held on regs. Returns the number of nodes that held before the
 * first one that failed; n if all did. Runs no Python code and raises nothing. If memory is out, the node fails. */
int gd_late_nodes_hold(gd_GuardedCode *e, const gd_guard_node *nodes, int n, PyObject **regs);

/* Returns a Python int of this value, borrowed from the entry, or NULL if memory is out. */
PyObject *gd_kept_int_of(gd_kept_int *kept, int64_t value);

/* Lists what the entry's conditions read, if they compute much more than that. steps: all nsteps of them. Returns 0,
 * or -1 with an exception set. */
int gd_size_inputs_list(gd_GuardedCode *e, uint32_t nsteps);

/* Computes the value of n steps, which are one side of a condition. If regs is NULL, each load yields the value
 * it had in the translated call. Returns 1 and sets *value, or returns 0 if a value is no exact int of 64 bits, an
 * operation overflows or a divisor is zero. */
int gd_size_value(const gd_size_step *steps, uint32_t n, PyObject **regs, int64_t *value);

/* Returns the number of values that a step takes from the stack. */
static inline int
gd_size_step_takes(int op)
{
    return op < GD_SIZE_ADD ? 0 : op >= GD_SIZE_FLOAT && op < GD_SIZE_EQ ? 1 : 2;
}

/* Returns the index of the first step of the right side. The left side begins at 0, the relation is the last of the
 * n steps. */
uint32_t gd_size_right_side(const gd_size_step *steps, uint32_t n);

#endif
