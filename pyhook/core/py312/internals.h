/* CPython 3.12: its internal headers, and facts about them. Included by pycompat.h only. */
#ifndef GD_PY312_INTERNALS_H
#define GD_PY312_INTERNALS_H

/* The internal headers require this macro. It is defined after Python.h on purpose: defined earlier, it would
 * change what the public headers declare. */
#ifndef Py_BUILD_CORE
#    define Py_BUILD_CORE 1
#    define GD_DEFINED_PY_BUILD_CORE
#endif
/* The public headers of 3.12 define these macros differently from the internal ones. */
#undef _PyGC_FINALIZED
#undef _PyObject_LookupSpecial
/* The current thread's state is read by a function: the variable that holds it is not exported. */
#ifndef Py_BUILD_CORE_MODULE
#    define Py_BUILD_CORE_MODULE 1
#    define GD_DEFINED_PY_BUILD_CORE_MODULE
#endif
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#ifdef GD_DEFINED_PY_BUILD_CORE
#    undef Py_BUILD_CORE
#    undef GD_DEFINED_PY_BUILD_CORE
#endif
#ifdef GD_DEFINED_PY_BUILD_CORE_MODULE
#    undef Py_BUILD_CORE_MODULE
#    undef GD_DEFINED_PY_BUILD_CORE_MODULE
#endif
#include <opcode.h>

#include "pycommon/cframe.h"

#include "pycommon/c_units.h"
#include "pycommon/monitored.h"

/* Takes a frame off the thread's data stack, on which it is the last one. Its references have been released. */
void gd_py_pop_frame(PyThreadState *tstate, _PyInterpreterFrame *frame);

/* Reports whether a signal has arrived or a pending call waits, for the thread that runs them. */
static inline int
gd_py_signals_wait(PyThreadState *tstate)
{
    return _Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending)
           || _Py_atomic_load_relaxed(&tstate->interp->ceval.pending.calls_to_do)
           || _Py_atomic_load_relaxed(&_PyRuntime.ceval.pending_mainthread.calls_to_do);
}

/* Returns the address where an instance of a class with managed dicts keeps the pointer to its inline values. */
static inline const void *
gd_py_values_place(PyObject *v)
{
    return _PyObject_DictOrValuesPointer(v);
}

/* Returns the address where such an instance keeps the pointer to its dict: in 3.12 it is the same pointer, and bit 0
 * says which of the two it is. */
static inline const void *
gd_py_managed_dict_place(PyObject *v)
{
    return _PyObject_DictOrValuesPointer(v);
}

/* Reads where such an instance keeps its attributes. Sets *values to the inline values, or to NULL; then *dict is the
 * dict, borrowed, or NULL. */
static inline void
gd_py_managed_attributes(PyObject *v, PyDictValues **values, PyObject **dict)
{
    PyDictOrValues either = *_PyObject_DictOrValuesPointer(v);
    int inlined = _PyDictOrValues_IsValues(either);
    *values = inlined ? _PyDictOrValues_GetValues(either) : NULL;
    *dict = inlined ? NULL : _PyDictOrValues_GetDict(either);
}

/* Sets a C trace function that wants events of opcodes; NULL removes it. CPython 3.12 reports opcodes only if a frame
 * has asked for them before the function is set (Objects/frameobject.c, frame_settrace_opcodes). */
static inline void
gd_py_set_opcode_trace(PyThreadState *tstate, Py_tracefunc function)
{
    int before = tstate->interp->f_opcode_trace_set;
    tstate->interp->f_opcode_trace_set |= function != NULL;
    PyEval_SetTrace(function, NULL);
    tstate->interp->f_opcode_trace_set = before;
}

#include "pycommon/internals.h"
#include "pycommon/opcodes.h"

#endif
