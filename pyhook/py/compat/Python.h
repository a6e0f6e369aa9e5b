/* Python.h as go-python3 expects it.
 *
 * go-python3's last version was written for CPython 3.7. It builds on 3.11 to 3.14 except for the calls
 * below, which 3.9 to 3.13 removed. This directory is first on the include path (scripts/go_env.py), so
 * go-python3's `#include "Python.h"` finds this file; the real header follows at once. The one function
 * that they declare but do not define, PySignal_SetWakeupFd, is in pyhook/py/compat_missing.c: an inline
 * definition would conflict with the declaration.
 *
 * godynamo calls none of the functions defined here. They exist because a library opened with RTLD_NOW must not
 * have an undefined function, used or not.
 */
#ifndef GD_COMPAT_PYTHON_H
#define GD_COMPAT_PYTHON_H

#include_next <Python.h>

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030f0000
#    error "pyhook/py/compat has been checked against CPython 3.11 to 3.14 only"
#endif

/* Since 3.9 gc.collect() clears free lists. Each of these four functions returned the number of blocks that
 * it freed. */
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

/* Removed in 3.11: PyOS_AfterFork_Child does this work. */
static inline void
PyEval_ReInitThreads(void)
{
}

#if PY_VERSION_HEX >= 0x030d0000
/* Removed in 3.13: an embedder sets these in a PyConfig. */
static inline void
PySys_AddWarnOption(const wchar_t *Py_UNUSED(option))
{
}
static inline void
PySys_AddXOption(const wchar_t *Py_UNUSED(option))
{
}
static inline void
PySys_SetPath(const wchar_t *Py_UNUSED(path))
{
}
static inline void
Py_SetPath(const wchar_t *Py_UNUSED(path))
{
}
static inline int
Py_SetStandardStreamEncoding(const char *Py_UNUSED(encoding), const char *Py_UNUSED(errors))
{
    return -1;
}
/* Removed in 3.13: there have always been threads since 3.7. */
static inline int
PyEval_ThreadsInitialized(void)
{
    return 1;
}
#endif

#endif
