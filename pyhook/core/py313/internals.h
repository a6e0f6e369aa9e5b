/* CPython 3.13: its internal headers, and facts about them. Included by pycompat.h only. */
#ifndef GD_PY313_INTERNALS_H
#define GD_PY313_INTERNALS_H

/* The internal headers require this macro. It is defined after Python.h on purpose: defined earlier, it would
 * change what the public headers declare. */
#ifndef Py_BUILD_CORE
#    define Py_BUILD_CORE 1
#    define GD_DEFINED_PY_BUILD_CORE
#endif
/* The public headers define these macros differently from the internal ones. */
#undef _PyGC_FINALIZED
/* The current thread's state is read by a function: the variable that holds it is not exported. */
#ifndef Py_BUILD_CORE_MODULE
#    define Py_BUILD_CORE_MODULE 1
#    define GD_DEFINED_PY_BUILD_CORE_MODULE
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter" /* in functions of the headers */
#include <internal/pycore_call.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_setobject.h>
#pragma GCC diagnostic pop
#ifdef GD_DEFINED_PY_BUILD_CORE
#    undef Py_BUILD_CORE
#    undef GD_DEFINED_PY_BUILD_CORE
#endif
#ifdef GD_DEFINED_PY_BUILD_CORE_MODULE
#    undef Py_BUILD_CORE_MODULE
#    undef GD_DEFINED_PY_BUILD_CORE_MODULE
#endif
#include <opcode.h>
/* opcode.h of 3.13 has the numbers from opcode_ids.h, and no longer what sys.monitoring puts in their place. */

#ifdef Py_GIL_DISABLED
#    error "godynamo does not serve free-threaded builds; see docs/porting.md"
#endif

#include "pycommon/slots.h"

#include "pycommon/c_units.h"
#include "pycommon/calls.h"
#include "pycommon/monitored.h"

/* Returns the code that the frame runs, borrowed. Frames of the interpreter itself have None in its place; the hook
 * sees none of them, and gd_py_caller skips them. */
static inline PyCodeObject *
gd_py_code_run_by(const _PyInterpreterFrame *frame)
{
    return (PyCodeObject *)frame->f_executable;
}

/* Reports whether the dict has a new version after every change. The dict of an instance that shares its inline values
 * has none after a store to an attribute (store_instance_attr_lock_held in Objects/dictobject.c). */
static inline int
gd_dict_is_tagged(PyObject *dict)
{
    const PyDictValues *values = ((PyDictObject *)dict)->ma_values;
    return values == NULL || !values->embedded;
}

#include "pycommon/instr_ptr.h"
#include "pycommon/ma_version.h"
#include "pycommon/internals.h"
#include "pycommon/opcodes.h"

#endif
