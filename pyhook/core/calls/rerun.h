/* The user's own code run in the place of transformed code that an exception has ended.
 *
 * Such code has left no trace by then, so the user's code may run from the piece's start, and CPython brings the
 * exception to its handlers, contexts and finally blocks. Two kinds of exceptions end transformed code:
 *
 *   it came from outside (interrupt.h)   it is raised in the user's code at the operation that it ended, or, where
 *                                        getting there again takes long, before that inside of the same block: throws.
 *                                        Where the code does not get there, its result is dropped and the exception
 *                                        raised in its place.
 *   an operation raised it               the operation raises it again. A trace function sees that it does; one that
 *                                        does not was from outside after all, and is raised when the code has ended.
 *
 * So an exception arrives once, whatever it is taken for.
 */
#ifndef GD_RERUN_H
#define GD_RERUN_H

#include "pycompat.h"
#include "runtime.h"

typedef struct gd_rerun {
    struct gd_rerun *outer; /* of the same thread */
    PyObject *error; /* strong, an exception instance; NULL: an ordinary run */
    PyObject *place; /* strong: levels as in gd_entry_spec.chains; NULL: where a resumed frame goes on */
    PyCodeObject *code; /* borrowed: of the outermost frame: the user's, or a resume function's copy of it */
    int offset; /* of the place's outermost instruction in that code; -1: not known */
    long passes; /* how often the place's instruction still runs before it is the one */
    int done; /* what the instruction leaves behind stays: it does not run again before the exception is raised */
    int reached; /* the instruction has been met as often */
    int64_t begun; /* ns */
    int throws;
    int body; /* offset of a resume function's body in its code; 0 for the user's own */
    int traced; /* our trace function is in place */
    Py_tracefunc previous;
    PyObject *previous_object; /* strong or NULL */
} gd_rerun;

/* Takes the pending exception off the error indicator, for the next gd_rerun_begin of this thread. place as above,
 * borrowed. */
void gd_rerun_prepare(PyObject *place, int throws);

/* Around a call of the user's own code. code: of the frame that it starts; borrowed, alive until the end. */
void gd_rerun_begin(gd_rerun *r, PyCodeObject *code);
/* result: what that call returned (stolen). Returns what the user's call is to return: new, or NULL with an
 * exception. */
PyObject *gd_rerun_end(gd_rerun *r, PyObject *result);

#endif
