/* TailCall: how a transformed function continues in a resume function without nesting.
 *
 * The code before a graph break ends with `return resume(values)`. Calling a Callable of kind RESUME does not run
 * the resume function, but returns a TailCall with the Callable and the arguments. The transformed function returns
 * the TailCall, and the caller (calls/callable_call.c, calls/eval_frame.c) runs it. So a loop with a graph break in
 * its body uses no more stack in each iteration, and a traceback shows only the frame that raised. No other code
 * ever sees a TailCall, since only transformed functions hold a Callable of kind RESUME.
 *
 * As in CPython, only the frame that a TailCall runs owns its variables: when the frame starts, the TailCall drops
 * its references to them. CPython's call takes references of its own before it starts the frame, so a special
 * eval-frame function is installed for that moment and drops those of the TailCall. If the entry may run again from
 * its start (GD_ENTRY_RERUN), the TailCall keeps its references until the transformed code calls hand_over().
 */
#ifndef GD_TAIL_CALL_H
#define GD_TAIL_CALL_H

#include "calls/callable.h"

typedef struct gd_TailCall {
    PyObject_VAR_HEAD gd_Callable *w; /* strong */
    /* strong or NULL: the frame object of the function that made this TailCall. It exists only if something, such as a
     * traceback, has needed it */
    PyObject *frame;
    /* strong or NULL: the functions that run after the resume function, GD_PER_FRAME items for each frame
     * (calls/outer_frames.h), and a chain that starts with these frames, for tracebacks (gd_entry_spec.chains) */
    PyObject *outer, *chain;
    int unit; /* the code unit of the transformed function whose chain this is, until gd_fix_caught sets it; or -1 */
    int plain; /* the resume function runs untransformed */
    PyObject *args[1]; /* strong, ob_size references, until the started frame takes them over */
} gd_TailCall;

enum { GD_PER_FRAME = 4 }; /* a resume function, its arguments, another one for exceptions, its arguments */

extern PyTypeObject gd_TailCall_Type;

/* Implements the vectorcall of a Callable of kind RESUME. Returns a new TailCall, or NULL with an exception set
 * (TypeError for keywords, MemoryError). */
PyObject *gd_resume_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* Returns a new TailCall without its n arguments, which the caller must set before anything else runs. NULL with
 * MemoryError on failure. */
gd_TailCall *gd_tail_call_new(gd_Callable *w, Py_ssize_t n);

/* Calls a Python function with positional arguments. If a TailCall is being run (gd_thread.tail), the first frame
 * that starts takes over its references. Returns a new reference, or NULL with an exception set. */
PyObject *gd_call_handing_over(PyThreadState *tstate, vectorcallfunc call, PyObject *function, PyObject *const *args,
                               size_t n);
/* Returns the last argument of a TailCall, borrowed; NULL without an exception for any other value. */
PyObject *gd_tail_call_last(PyObject *value);

/* Sets MemoryError if a frame has ended with neither a result nor an exception. From 3.13 on, CPython loses a pending
 * exception if a frame that it ends releases an object with a __dict__, and there is no memory for taking the dict over
 * from the object (PyObject_ClearManagedDict). */
void gd_require_exception(void);

/* Finishes the result of a transformed function: runs its tail calls, if any. Costs one comparison if there are
 * none. Steals `result`. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_finish_tail(PyObject *result)
{
    if (GD_UNLIKELY(result == NULL)) {
        gd_require_exception();
        return NULL;
    }
    return GD_UNLIKELY(Py_IS_TYPE(result, &gd_TailCall_Type)) ? gd_run_tail_calls(result) : result;
}

int gd_tail_call_init(PyObject *module);

#endif
