/* Python.h as go-python3 expects it.
 *
 * go-python3's last version was written for CPython 3.7. It still builds on 3.11 but for the calls below, which 3.9 to
 * 3.11 took away. This directory stands first on the include path (scripts/go_env.py), so this file is what its
 * `#include "Python.h"` finds; the real header follows at once. The one function that 3.11 declares without defining,
 * PySignal_SetWakeupFd, is in pyhook/py/compat_311.c: an inline definition would clash with the declaration.
 *
 * godynamo calls none of these. They exist because a library that is opened with RTLD_NOW must not leave a function
 * undefined, used or not.
 */
#ifndef GD_COMPAT_PYTHON_H
#define GD_COMPAT_PYTHON_H

#include_next <Python.h>

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#    error "pyhook/py/compat has been checked against CPython 3.11 only"
#endif

/* Free lists are cleared by gc.collect() since 3.9; each of these returned the number of blocks it gave back. */
static inline int
PyDict_ClearFreeList(void)
{
    return 0;
}
static inline int
PyFloat_ClearFreeList(void)
{
    return 0;
}
static inline int
PyList_ClearFreeList(void)
{
    return 0;
}
static inline int
PyTuple_ClearFreeList(void)
{
    return 0;
}

/* Gone in 3.11: PyOS_AfterFork_Child does its work. */
static inline void
PyEval_ReInitThreads(void)
{
}

#endif
