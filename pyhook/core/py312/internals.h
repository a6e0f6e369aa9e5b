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

/* The tools of sys.monitoring whose numbers are not those through which CPython serves sys.settrace and
 * sys.setprofile, one byte for each event. */
#define GD_PY_OTHER_TOOLS 0x3f3f3f3f3f3f3f3fULL

/* Reports whether another tool listens to an event. tools: one byte for each event, with a bit for each tool. */
static inline int
gd_py_others_listen(const uint8_t *tools)
{
    _Static_assert(PY_MONITORING_SYS_PROFILE_ID == 6 && PY_MONITORING_SYS_TRACE_ID == 7
                       && _PY_MONITORING_UNGROUPED_EVENTS >= 8 && _PY_MONITORING_UNGROUPED_EVENTS <= 16,
                   "six tools are others, and two words cover the events");
    uint64_t first, last;
    memcpy(&first, tools, sizeof first);
    memcpy(&last, tools + _PY_MONITORING_UNGROUPED_EVENTS - sizeof last, sizeof last);
    return ((first | last) & GD_PY_OTHER_TOOLS) != 0;
}

/* Reports whether a trace or profile function is active on this thread, or a tool of sys.monitoring: events must then
 * come from CPython itself. */
static inline int
gd_py_tracing(PyThreadState *tstate)
{
    return (((tstate->c_tracefunc != NULL) | (tstate->c_profilefunc != NULL)) && tstate->tracing == 0)
           || gd_py_others_listen(tstate->interp->monitors.tools);
}

/* Reports whether a tool may listen to the events of this code alone (sys.monitoring.set_local_events): the code has
 * been instrumented before. */
static inline int
gd_py_code_may_be_observed(const PyCodeObject *code)
{
    return code->_co_monitoring != NULL;
}

/* Reports whether a tool listens to the events of this code alone. */
static inline int
gd_py_code_observed(const PyCodeObject *code)
{
    return code->_co_monitoring != NULL && gd_py_others_listen(code->_co_monitoring->local_monitors.tools);
}

/* Returns the opcode at a byte offset, specialized or not, but never an instrumented form that hides another opcode; -1
 * if the offset is outside the code. */
static inline int
gd_py_opcode_at(PyCodeObject *code, int offset)
{
    if (offset < 0 || offset >= _PyCode_NBYTES(code)) {
        return -1;
    }
    int unit = offset / (int)sizeof(_Py_CODEUNIT), op = _PyCode_CODE(code)[unit].op.code;
    const _PyCoMonitoringData *monitoring = code->_co_monitoring;
    if (op == INSTRUMENTED_LINE && monitoring != NULL && monitoring->lines != NULL) {
        op = monitoring->lines[unit].original_opcode;
    }
    if (op == INSTRUMENTED_INSTRUCTION && monitoring != NULL && monitoring->per_instruction_opcodes != NULL) {
        op = monitoring->per_instruction_opcodes[unit];
    }
    return op;
}

/* Returns the number of Python frames in use on this thread, as the recursion limit counts them. */
static inline int
gd_py_depth(PyThreadState *tstate)
{
    return tstate->py_recursion_limit - tstate->py_recursion_remaining;
}

static inline int
gd_py_depth_left(PyThreadState *tstate)
{
    return tstate->py_recursion_remaining;
}

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

/* Returns the function that the frame runs, borrowed. */
static inline PyFunctionObject *
gd_py_frame_function(const _PyInterpreterFrame *frame)
{
    return (PyFunctionObject *)frame->f_funcobj;
}

/* Ends a frame that an eval-frame function has not run: releases its references and takes it off the thread's data
 * stack. The frame is the last one on it, has no frame object, and is not linked to its caller yet. In 3.12 the eval
 * loop does this itself, so a frame that the loop never sees is left to its eval-frame function. */
void gd_py_end_frame(PyThreadState *tstate, _PyInterpreterFrame *frame);

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

/* Returns the dict of a class, borrowed; NULL if the class has none. The interpreter keeps the dicts of its own static
 * classes, whose tp_dict is NULL. */
static inline PyObject *
gd_py_type_dict(PyTypeObject *type)
{
    PyObject *dict = type->tp_dict;
    if (dict == NULL) {
        dict = PyType_GetDict(type);
        Py_XDECREF(dict); /* the class holds it */
    }
    return dict;
}

/* What one run of the eval loop takes of the thread's allowance for recursion in C (PY_EVAL_C_STACK_UNITS of
 * Python/ceval.c). Calls between Python functions take nothing from it, since they stay in one run. The limit is 1,500,
 * so if each call through the hook or a Callable took two, a program would end at 750 calls in place of 1,000. So we
 * give back what such a run takes, and check the C stack itself (GD_DEPTH_TRUSTED in runtime.h). */
#define GD_PY_EVAL_UNITS 2

/* The eval loop, as an eval-frame function. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_py_eval_default(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    tstate->c_recursion_remaining += GD_PY_EVAL_UNITS;
    PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, throwflag);
    tstate->c_recursion_remaining -= GD_PY_EVAL_UNITS;
    return result;
}

/* Calls a Python function where CPython would call it without using C stack. The frame is counted by the recursion
 * limit alone. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_py_call_function(PyThreadState *tstate, vectorcallfunc call, PyObject *function, PyObject *const *args,
                    size_t nargsf, PyObject *kwnames)
{
    tstate->c_recursion_remaining += GD_PY_EVAL_UNITS;
    PyObject *result = call(function, args, nargsf, kwnames);
    tstate->c_recursion_remaining -= GD_PY_EVAL_UNITS;
    return result;
}

/* Returns a new array (PyMem_Free) with the depth of the stack before each code unit of the code, -1 where it is
 * unknown; NULL without an exception if there is no memory. bytes: the code's instructions, not specialized. */
int16_t *gd_py_stack_depths(PyCodeObject *code, PyObject *bytes);

/* Returns the address past the top of the stack of a frame that is about to run the instruction at a unit, for a trace
 * function; NULL if it is unknown. depths: what gd_py_stack_depths returned. */
static inline PyObject **
gd_py_stack_top(_PyInterpreterFrame *frame, const int16_t *depths, Py_ssize_t unit)
{
    return depths != NULL && depths[unit] >= 0 ? _PyFrame_Stackbase(frame) + depths[unit] : NULL;
}

#include "pycommon/internals.h"
#include "py312/opcodes.h"

#endif
