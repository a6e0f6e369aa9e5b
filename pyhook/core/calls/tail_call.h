/* TailCall: how a transformed function continues in a resume function without nesting.
 *
 * The code before a graph break ends with `return resume(values)`. Calling a Callable of kind RESUME does not
 * run it, but returns a TailCall with the Callable and the arguments. The transformed function returns that,
 * and its caller (calls/callable_call.c, calls/eval_frame.c) runs it. So a loop with a graph break in its
 * body uses no more stack in each iteration, and a traceback shows only the frame that raised. No other code
 * ever sees a TailCall, since only transformed functions hold a Callable of kind RESUME.
 *
 * The frame that a TailCall runs is the only owner of its variables, as in CPython: when it starts, the
 * TailCall drops its references. CPython's call takes new ones before it starts the frame, so a special
 * eval-frame function is installed for that moment. An entry that may run again from its start
 * (GD_ENTRY_RERUN) keeps the references.
 */
#ifndef GD_TAIL_CALL_H
#define GD_TAIL_CALL_H

#include "calls/callable.h"

typedef struct gd_TailCall {
    PyObject_VAR_HEAD gd_Callable *w; /* strong */
    /* strong or NULL: the frame object of the function that made it, if something else (a traceback) holds that */
    PyObject *frame;
    PyObject *args[1]; /* strong: ob_size of them, until they are handed over */
} gd_TailCall;

extern PyTypeObject gd_TailCall_Type;

/* The vectorcall of a Callable of kind RESUME: new TailCall, or NULL with an exception (keywords, no memory). */
PyObject *gd_resume_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* Calls the Python function of a tail call's Callable with positional arguments; the first frame to start
 * takes over the references. Without a tail call, makes an ordinary call. new reference or NULL with an
 * exception */
PyObject *gd_call_handing_over(PyThreadState *tstate, vectorcallfunc call, PyObject *function, PyObject *const *args,
                               size_t n);
/* Returns the last argument of a tail call, borrowed; NULL without an exception for anything else. */
PyObject *gd_tail_call_last(PyObject *value);

/* Finishes the result of a transformed function: runs its tail calls, if any. Costs one comparison if there are
 * none. Steals `result`; new, or NULL with an exception. */
static inline PyObject *
gd_finish_tail(PyObject *result)
{
    if (GD_UNLIKELY(result != NULL && Py_IS_TYPE(result, &gd_TailCall_Type))) {
        return gd_run_tail_calls(result);
    }
    return result;
}

int gd_tail_call_init(PyObject *module);

#endif
