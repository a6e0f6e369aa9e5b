/* Why a guard program failed, in words. */
#ifndef GD_GUARD_FAILURE_H
#define GD_GUARD_FAILURE_H

#include "guards/guarded_code.h"

/* Text of the failed part with what was found there, for recompile logs: new str. */
PyObject *gd_guard_failure_text(gd_GuardedCode *e, int failed_node, PyObject **regs);

#endif
