/* Running a guard program. */
#ifndef GD_GUARD_EVAL_H
#define GD_GUARD_EVAL_H

#include "guards/guarded_code.h"

/* Runs the program. regs has room for e->nregs pointers. The caller has filled registers 0 .. nslots-1
 * with the slots, [nslots] with the globals dict and [nslots+1] with the builtins dict (all borrowed).
 * Runs none of the user's code, allocates nothing (except for PY_CHECK nodes and a new memo), and raises
 * nothing. Returns -1 if the program holds, or else the index of the failed node. After success the caller
 * may gather the values of extra_regs. Their indices ascend and extra_regs[i] >= nslots + i, so the values
 * can be moved down to regs[nslots + i] in place; regs is then the argument array of `function`. */
int gd_guard_eval(gd_GuardedCode *e, PyObject **regs);

/* Runs one node of the program, other than PY_CHECK, TENSORS and those that follow TENSORS. Its source register has a
 * value. Returns 1 if the node holds. An access node that fails writes NULL. */
int gd_guard_node_runs(gd_GuardedCode *e, const gd_guard_node *node, PyObject **regs);

/* Reports whether the tensors of a TENSORS node that are marked GD_TENSOR_DISTINCT are distinct objects. */
int gd_tensors_distinct(const gd_GuardedCode *e, const gd_guard_node *node, PyObject **regs);

#endif
