/* What CPython 3.12 to 3.14 have in common: C code can push and run a function's frame without binding arguments.
 * Included by py3xx/internals.h only, after gd_py_push_function and gd_py_slot_new. */
#ifndef GD_PYCOMMON_PUSH_FRAME_H
#define GD_PYCOMMON_PUSH_FRAME_H

/* Calls a Python function whose parameters are exactly the n arguments (gd_py_code_for_exact_call), as CPython's
 * specialized call does: no code binds arguments. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_py_call_exact(PyThreadState *tstate, PyObject *function, PyObject *const *args, size_t n)
{
    PyFunctionObject *f = (PyFunctionObject *)function;
    if (GD_UNLIKELY(!_PyThreadState_HasStackSpace(tstate, ((PyCodeObject *)f->func_code)->co_framesize))) {
        return gd_py_call_function(tstate, f->vectorcall, function, args, n, NULL);
    }
    _PyInterpreterFrame *frame = gd_py_push_function(tstate, f, (int)n);
    for (size_t i = 0; i < n; i++) {
        frame->localsplus[i] = gd_py_slot_new(args[i]);
    }
    _PyFrameEvalFunction eval = tstate->interp->eval_frame;
    return GD_LIKELY(eval == NULL) ? gd_py_eval_default(tstate, frame, 0) : eval(tstate, frame, 0);
}

#endif
