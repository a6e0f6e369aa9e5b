/* Runs the user's own code in place of transformed code that an exception has ended.
 *
 * Such transformed code has left no trace, so the user's code can run from the start of the piece, and
 * CPython delivers the exception to its handlers, contexts and finally blocks. Two kinds of exceptions end
 * transformed code:
 *
 *   it came from outside (interrupt.h)   The user's code raises it at the operation that it ended (throws). If
 *                                        reaching that operation again takes long, it is raised earlier in the same
 *                                        block. If the user's code never gets there, its result is dropped and the
 *                                        exception raised instead.
 *   an operation raised it               The operation raises it again, which a trace function observes. If it does
 *                                        not, the exception came from outside after all, and is raised when the code
 *                                        has ended.
 *
 * So the exception is raised exactly once, whichever kind it is taken for.
 */
#ifndef GD_RERUN_H
#define GD_RERUN_H

#include "pycompat.h"
#include "runtime.h"

typedef struct gd_rerun {
    struct gd_rerun *outer; /* the enclosing one of this thread */
    PyObject *error; /* strong, an exception instance; NULL: an ordinary run */
    PyObject *place; /* strong: levels as in gd_entry_spec.chains; NULL: where a resumed frame continues */
    PyCodeObject *code; /* borrowed: code of the outermost frame: the user's, or a resume function's copy of it */
    int offset; /* of the place's outermost instruction in that code; -1: unknown */
    long passes; /* how often the place's instruction still runs before the run that was ended */
    int done; /* the instruction's effect is permanent: raise the exception instead of running it again */
    int reached; /* the instruction has been reached as often as `passes` required */
    int64_t begun; /* ns */
    int throws; /* the exception came from outside: raise it at the place */
    int body; /* offset of a resume function's body in its code; 0 for the user's own */
    int traced; /* our trace function is installed */
    Py_tracefunc previous;
    PyObject *previous_object; /* strong or NULL */
} gd_rerun;

/* Takes the pending exception from the error indicator for the next gd_rerun_begin of this thread. place
 * (borrowed) and throws: as in gd_rerun. */
void gd_rerun_prepare(PyObject *place, int throws);

/* Begins and ends a call of the user's own code. code: of the frame that the call starts; borrowed, alive
 * until the end. */
void gd_rerun_begin(gd_rerun *r, PyCodeObject *code);
/* result: what the call returned (stolen). Returns the result of the user's call: new, or NULL with an exception. */
PyObject *gd_rerun_end(gd_rerun *r, PyObject *result);

#endif
