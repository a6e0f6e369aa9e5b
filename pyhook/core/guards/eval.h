/* Running a guard program. */
#ifndef GD_GUARD_EVAL_H
#define GD_GUARD_EVAL_H

#include "guards/guarded_code.h"

/* Runs the program. regs: room for e->nregs pointers; the caller has filled registers 0 .. nslots-1 with the slots,
 * [nslots] with the globals dict, [nslots+1] with the builtins dict (all borrowed). Runs none of the user's code,
 * allocates nothing (PY_CHECK nodes and a new memo excepted), raises nothing. Returns -1 when the program holds, else
 * the index of the failed node. After success the caller may gather the values of extra_regs: they ascend, and
 * extra_regs[i] >= nslots + i, so they can be moved down to regs[nslots + i] in place, and regs is then the argument
 * array of `function`. */
int gd_guard_eval(gd_GuardedCode *e, PyObject **regs);

#endif
