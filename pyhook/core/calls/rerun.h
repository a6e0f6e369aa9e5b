/* Runs the user's own code in place of transformed code that an exception has ended.
 *
 * The transformed code has had no visible effect yet, so the user's code can run from the start of the piece (the
 * code between two graph breaks). CPython then delivers the exception to the handlers, contexts and `finally`
 * blocks of the user's code. The exception may have come from two sources:
 *
 *   from outside (interrupt.h)  The user's code raises the exception at the operation that was ended (`throws`). If
 *                               reaching that operation takes long, the exception is raised earlier in the same
 *                               block. If the user's code ends without reaching the operation, the exception
 *                               replaces the code's result.
 *   from an operation           The operation raises the exception again, and a trace function observes this. If the
 *                               operation raises nothing, the exception came from outside after all, and is raised
 *                               when the user's code has ended.
 *
 * So the exception is raised exactly once, whichever source is assumed.
 *
 * The `place` of a run is the stack of user frames at the operation where the user's code raises the exception: a
 * chain (gd_entry_spec.chains) with one level for each frame.
 */
#ifndef GD_RERUN_H
#define GD_RERUN_H

#include "pycompat.h"
#include "runtime.h"

typedef struct gd_rerun {
    struct gd_rerun *outer; /* the enclosing run of this thread, or NULL */
    PyObject *error; /* strong: an exception instance; NULL: there is none to raise */
    /* strong: where to raise the exception; NULL: where the outermost frame begins or continues */
    PyObject *place;
    PyCodeObject *code; /* borrowed: the outermost frame's code, either the user's or a resume function's copy of it */
    int offset; /* byte offset in `code` of the place's outermost instruction; -1: unknown */
    long passes; /* how many more runs of the place's instruction come before the run that the exception ended */
    int done; /* the instruction's effect is permanent: raise the exception instead of running the instruction again */
    int reached; /* the instruction has been reached as many times as `passes` requires */
    int64_t begun; /* when the run began, in ns */
    int throws; /* the exception came from outside: raise it at the place */
    int body; /* byte offset of a resume function's body in its code; 0 for the user's own code */
    int landing; /* the instruction before was a backward jump, whose check comes after it */
    int traced; /* our trace function is installed */
    Py_tracefunc previous;
    PyObject *previous_object; /* strong or NULL */
} gd_rerun;

/* Takes the pending exception from the error indicator for the next gd_rerun_begin of this thread. place (borrowed)
 * and throws: as in gd_rerun. */
void gd_rerun_prepare(PyObject *place, int throws);

/* Begins a call of the user's own code. code: the code of the frame that the call starts; borrowed, and alive until
 * gd_rerun_end. */
void gd_rerun_begin(gd_rerun *r, PyCodeObject *code);
/* Ends the call. Steals result, the value that the call returned. Returns the value of the user's call, a new
 * reference, or NULL with an exception set. */
PyObject *gd_rerun_end(gd_rerun *r, PyObject *result);

#endif
