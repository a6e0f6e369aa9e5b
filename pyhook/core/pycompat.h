/* The only header through which the C files of the core include Python.h and CPython's internal headers. Besides it
 * they include only public headers that Python.h leaves out (opcode.h, structmember.h, frameobject.h).
 *
 * Public headers come first, then the internal ones of the running minor version, through py3xx/internals.h. That
 * file also gives version-specific facts the names that other files use (gd_py_*). An unchecked version does
 * not compile, since field offsets and calling conventions of internal structs change silently between minor
 * versions.
 *
 * Ownership in the core: arguments are borrowed; a result is a new reference, or NULL with an exception set. A
 * function's comment says where the function differs; docs/style.md defines the words.
 */
#ifndef GD_PYCOMPAT_H
#define GD_PYCOMPAT_H

#ifndef PY_SSIZE_T_CLEAN
#    define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#define GD_LIKELY(x) __builtin_expect(!!(x), 1)
#define GD_UNLIKELY(x) __builtin_expect(!!(x), 0)

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#    include "py311/internals.h"
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#    include "py312/internals.h"
#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#    include "py313/internals.h"
#elif PY_VERSION_HEX >= 0x030E0000 && PY_VERSION_HEX < 0x030F0000
#    include "py314/internals.h"
#else
#    error "godynamo: this CPython version has not been checked; see docs/porting.md"
#endif

#endif
