/* What CPython 3.12 and 3.13 have in common: an allowance for recursion in C. Included by py3xx/internals.h only. */
#ifndef GD_PYCOMMON_C_UNITS_H
#define GD_PYCOMMON_C_UNITS_H

/* Takes units of the allowance. */
static inline void
gd_py_take_c_unit(PyThreadState *tstate, int units)
{
    tstate->c_recursion_remaining -= units;
}

/* The bytes of C stack that a unit is assumed to need. CPython 3.13 has 10,000 units for the 8 MiB of a main thread. */
#define GD_PY_UNIT_BYTES 768

/* Lowers the allowance to what fits into that many bytes of C stack. Returns the units taken, for the caller to give
 * back. */
static inline int
gd_py_fit_c_units(PyThreadState *tstate, ptrdiff_t bytes)
{
    ptrdiff_t excess = tstate->c_recursion_remaining - bytes / GD_PY_UNIT_BYTES;
    int units = excess > 0 ? (int)excess : 0;
    gd_py_take_c_unit(tstate, units);
    return units;
}

/* Releases the code that a frame runs. */
#define gd_py_release_code(frame) Py_DECREF(gd_py_code_run_by(frame))

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
 * limit alone. An eval-frame function other than CPython's calls gd_py_eval_default itself. Returns a new reference, or
 * NULL with an exception set. */
static inline PyObject *
gd_py_call_function(PyThreadState *tstate, vectorcallfunc call, PyObject *function, PyObject *const *args,
                    size_t nargsf, PyObject *kwnames)
{
    int units = tstate->interp->eval_frame == NULL ? GD_PY_EVAL_UNITS : 0;
    tstate->c_recursion_remaining += units;
    PyObject *result = call(function, args, nargsf, kwnames);
    tstate->c_recursion_remaining -= units;
    return result;
}

/* Pushes the frame of a function. The slots from n on are empty; the caller fills the others. The thread has space for
 * it. */
#define gd_py_push_function(tstate, function, n) \
    _PyFrame_PushUnchecked(tstate, (PyFunctionObject *)Py_NewRef(function), n)

#include "pycommon/push_frame.h"

#endif
