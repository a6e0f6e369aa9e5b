/* CPython 3.12 and later: ends a frame that the eval loop has not run. CPython's own function for this is not exported.
 * This follows clear_thread_frame in Python/ceval.c. */
#include "pycompat.h"

#if PY_VERSION_HEX >= 0x030C0000

void
gd_py_end_frame(PyThreadState *tstate, _PyInterpreterFrame *frame)
{
    /* Finalizers that run here push their own frames after this one, so it stays on the stack until the end. */
    gd_py_take_c_unit(tstate, 1);
    int n = (int)gd_py_frame_height(frame);
    for (int i = 0; i < n; i++) {
        gd_py_slot_release(frame->localsplus[GD_PY_CLEARS_BACKWARD ? n - 1 - i : i]);
    }
    Py_XDECREF(frame->f_locals);
    gd_py_slot_release(frame->f_funcobj);
    gd_py_release_code(frame);
    gd_py_take_c_unit(tstate, -1);
    gd_py_pop_frame(tstate, frame);
}

#endif
