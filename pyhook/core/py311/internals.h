/* CPython 3.11: its internal headers, and facts about them. Included by pycompat.h only. */
#ifndef GD_PY311_INTERNALS_H
#define GD_PY311_INTERNALS_H

/* The internal headers require this macro. It is defined after Python.h on purpose: defined earlier, it would
 * change what the public headers declare. */
#ifndef Py_BUILD_CORE
#    define Py_BUILD_CORE 1
#    define GD_DEFINED_PY_BUILD_CORE
#endif
/* The public headers of 3.11 define these two macros differently from the internal ones. */
#undef _PyGC_FINALIZED
#undef _PyObject_LookupSpecial
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

#include "pycommon/cframe.h"

/* Reports whether a trace or profile function is active on this thread: events must then come from CPython itself. */
static inline int
gd_py_tracing(PyThreadState *tstate)
{
    return tstate->cframe->use_tracing != 0;
}

/* Reports whether a tool may listen to the events of this code alone. 3.11 has no such tools. */
static inline int
gd_py_code_may_be_observed(const PyCodeObject *Py_UNUSED(code))
{
    return 0;
}

static inline int
gd_py_code_observed(const PyCodeObject *Py_UNUSED(code))
{
    return 0;
}

/* Returns the opcode at a byte offset in its current form, specialized or not; -1 if the offset is outside the code. */
static inline int
gd_py_opcode_at(PyCodeObject *code, int offset)
{
    return offset >= 0 && offset < _PyCode_NBYTES(code)
               ? _Py_OPCODE(_PyCode_CODE(code)[offset / (int)sizeof(_Py_CODEUNIT)])
               : -1;
}

/* Returns the number of Python frames in use on this thread, as the recursion limit counts them. */
static inline int
gd_py_depth(PyThreadState *tstate)
{
    return tstate->recursion_limit - tstate->recursion_remaining;
}

static inline int
gd_py_depth_left(PyThreadState *tstate)
{
    return tstate->recursion_remaining;
}

/* Reports whether a signal has arrived or a pending call waits, for the thread that runs them. */
static inline int
gd_py_signals_wait(PyThreadState *tstate)
{
    return _Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending)
           || _Py_atomic_load_relaxed(&tstate->interp->ceval.pending.calls_to_do);
}

/* Returns the address where an instance of a class with managed dicts keeps the pointer to its inline values. */
static inline const void *
gd_py_values_place(PyObject *v)
{
    return _PyObject_ValuesPointer(v);
}

/* Returns the address where such an instance keeps the pointer to its dict. */
static inline const void *
gd_py_managed_dict_place(PyObject *v)
{
    return _PyObject_ManagedDictPointer(v);
}

/* Reads where such an instance keeps its attributes. Sets *values to the inline values, or to NULL; then *dict is the
 * dict, borrowed, or NULL. */
static inline void
gd_py_managed_attributes(PyObject *v, PyDictValues **values, PyObject **dict)
{
    *values = *_PyObject_ValuesPointer(v);
    *dict = *values != NULL ? NULL : *_PyObject_ManagedDictPointer(v);
}

/* Returns the function that the frame runs, borrowed. */
static inline PyFunctionObject *
gd_py_frame_function(const _PyInterpreterFrame *frame)
{
    return frame->f_func;
}

/* Ends a frame that an eval-frame function has not run. In 3.11 its caller (_PyEval_Vector, Python/ceval.c) clears and
 * pops the frame, whether it ran or not. */
static inline void
gd_py_end_frame(PyThreadState *Py_UNUSED(tstate), _PyInterpreterFrame *Py_UNUSED(frame))
{
}

/* Sets a C trace function that wants events of opcodes; NULL removes it. Steals nothing. */
static inline void
gd_py_set_opcode_trace(PyThreadState *Py_UNUSED(tstate), Py_tracefunc function)
{
    PyEval_SetTrace(function, NULL);
}

/* Returns the dict of a class, borrowed; NULL if the class has none. */
static inline PyObject *
gd_py_type_dict(PyTypeObject *type)
{
    return type->tp_dict;
}

/* 3.11 has one limit for recursion in Python and in C. */
#define gd_py_take_c_unit(tstate, units) ((void)(tstate), (void)(units))
#define gd_py_fit_c_units(tstate, bytes) ((void)(tstate), (void)(bytes), 0)

/* The eval loop, as an eval-frame function. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_py_eval_default(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    return _PyEval_EvalFrameDefault(tstate, frame, throwflag);
}

/* Calls a Python function where CPython would call it without using C stack. The frame is counted by the recursion
 * limit alone. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_py_call_function(PyThreadState *Py_UNUSED(tstate), vectorcallfunc call, PyObject *function, PyObject *const *args,
                    size_t nargsf, PyObject *kwnames)
{
    return call(function, args, nargsf, kwnames);
}

/* Calls a Python function whose parameters are exactly the n arguments. 3.11 exports nothing that ends a frame which
 * was pushed outside the eval loop. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_py_call_exact(PyThreadState *tstate, PyObject *function, PyObject *const *args, size_t n)
{
    return gd_py_call_function(tstate, ((PyFunctionObject *)function)->vectorcall, function, args, n, NULL);
}

/* The depths of the stack at each instruction, for gd_py_stack_top. 3.11 does not need them. */
static inline int16_t *
gd_py_stack_depths(PyCodeObject *Py_UNUSED(code), PyObject *Py_UNUSED(bytes))
{
    return NULL;
}

/* Returns the address past the top of the stack of a frame that is about to run the instruction at a unit, for a trace
 * function. */
static inline const gd_py_slot *
gd_py_stack_top(_PyInterpreterFrame *frame, const int16_t *Py_UNUSED(depths), Py_ssize_t Py_UNUSED(unit))
{
    return frame->localsplus + frame->stacktop;
}

#include "pycommon/internals.h"
#include "py311/opcodes.h"

#endif
