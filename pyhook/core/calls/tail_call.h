/* TailCall: how a transformed function goes on in a resume function without nesting.
 *
 * The code before a graph break ends with `return resume(values)`. Calling a W of kind RESUME does not run it: it returns
 * a TailCall with the W and the arguments. The transformed function returns that, and its caller
 * (calls/callable_call.c, calls/eval_frame.c) runs it. So a loop with a graph break in its body uses no more stack on
 * each turn, and a traceback shows the frame that raised alone. Nobody else ever sees one: only transformed functions
 * hold a W of kind RESUME.
 *
 * The frame that a TailCall runs is the only owner of its variables, as in CPython: with its start the TailCall gives
 * up its own references. CPython's call takes new ones before it starts the frame, so for that moment the eval-frame
 * function is ours. An entry that may run again from its start (GD_ENTRY_RERUN) keeps them. */
#ifndef GD_TAIL_CALL_H
#define GD_TAIL_CALL_H

#include "calls/callable.h"

typedef struct gd_TailCall {
    PyObject_VAR_HEAD gd_Callable *w; /* strong */
    PyObject *
        frame; /* strong: of the function that made it, where something holds its frame object (a traceback); or NULL */
    PyObject *args[1]; /* strong, ob_size of them until they are handed over */
} gd_TailCall;

extern PyTypeObject gd_TailCall_Type;

/* vectorcall of a W of kind RESUME: new TailCall, or NULL with an exception (keywords, no memory). */
PyObject *gd_resume_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* Calls the Python function of a tail call's W with positional arguments; the first frame to start takes the references
 * over. An ordinary call where none is under way. new reference or NULL with an exception */
PyObject *gd_call_handing_over(PyThreadState *tstate, vectorcallfunc call, PyObject *function, PyObject *const *args,
                               size_t n);
/* The last argument of a tail call, borrowed; NULL without an exception for anything else. */
PyObject *gd_tail_call_last(PyObject *value);

/* What a transformed function returned, made final. One comparison where there is no tail call. Steals `result`; new,
 * or NULL with an exception. */
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
