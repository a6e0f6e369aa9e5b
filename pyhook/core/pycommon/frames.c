/* CPython 3.12 and 3.13: ends a frame that the eval loop has not run. CPython's own function for this is not exported.
 * This follows clear_thread_frame in Python/ceval.c. */
#include "pycompat.h"

#if PY_VERSION_HEX >= 0x030C0000

void
gd_py_end_frame(PyThreadState *tstate, _PyInterpreterFrame *frame)
{
    /* Finalizers that run here push their own frames after this one, so it stays on the stack until the end. */
    tstate->c_recursion_remaining--;
    for (int i = 0; i < frame->stacktop; i++) {
        Py_XDECREF(frame->localsplus[i]);
    }
    Py_XDECREF(frame->f_locals);
    Py_DECREF(frame->f_funcobj);
    Py_DECREF(gd_py_code_run_by(frame));
    tstate->c_recursion_remaining++;
    gd_py_pop_frame(tstate, frame);
}

#endif
