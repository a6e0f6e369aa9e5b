/* Guards for Python: functions with which tests make and check entries, and helpers that make the guard text
 * executable. */
#ifndef GD_GUARD_ENV_H
#define GD_GUARD_ENV_H

#include "pycompat.h"

/* Adds the GuardedCode type, make_entry, guard_check and the helpers to the module. Returns 0 or -1. */
int gd_guard_env_init(PyObject *module);

#endif
