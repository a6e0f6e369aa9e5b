/* Explains in words why a guard program failed. */
#ifndef GD_GUARD_FAILURE_H
#define GD_GUARD_FAILURE_H

#include "guards/guarded_code.h"

/* Returns a new str for recompile logs: the failed part of the guard text, and the value found now. */
PyObject *gd_guard_failure_text(gd_GuardedCode *e, int failed_node, PyObject **regs);

#endif
