/* Exceptions that no operation raised: a signal handler's, one that another thread sets, KeyboardInterrupt. CPython
 * raises them where its eval loop looks for requests, so they come out of whatever happens to run there.
 *
 * What is ours runs with signals held back (gd_hold_signals): translations, guards in Python, texts of failures. A
 * handler runs before or after, in the user's code or at a place where we ask for it, and its exception cannot end as
 * an answer of ours. What another thread sets cannot be held back; where it comes out of a call that the translator
 * made it is noted (gd_note_interruption).
 *
 * Transformed code runs with signals let through. There an exception that arrives is not the operation's, and the piece
 * of the frame that it ended must see it as CPython would raise it: calls/rerun.h.
 */
#ifndef GD_INTERRUPT_H
#define GD_INTERRUPT_H

#include "pycompat.h"
#include "runtime.h"

/* 1 when this call began to hold signals back on this thread, 0 where they are held or where none arrive (other
 * threads). */
static inline int
gd_hold_signals(void)
{
    int held = gd_py_hold_signals();
    gd_thread.holds |= held;
    return held;
}

/* held: what gd_hold_signals returned. */
static inline void
gd_release_signals(int held)
{
    if (held) {
        gd_thread.holds = 0;
        gd_py_release_signals(gd_py_thread_state());
    }
}

/* Runs the handlers of signals that have arrived, held back or not. 0, or -1 with an exception, which is noted. */
int gd_check_signals(void);

/* Has CPython look for requests: signals, another thread's exception, another thread that waits for the GIL. 0, or -1
 * with an exception that came from outside. */
int gd_look_for_requests(void);

/* The code of the function that gd_look_for_requests calls: borrowed. The hook leaves it to CPython (module.c). */
PyCodeObject *gd_look_code(void);

/* Whether the exception, normalized, came from outside of the operation that it left. All borrowed; traceback may be
 * NULL. Its first entry is the frame that ran the operation. What is found in it: - a frame that was called with its
 * caller's frame as an argument, as CPython calls a signal handler and nothing else calls
 *    anything; or with a signal's number, where it is that signal's handler and the frame is gone;
 * - no frame that raised it, so that it came out of C, of a type or in a form that operations do not raise: no
 * Exception, without
 *    arguments, or of a class that is neither builtin nor a tensor library's.
 * Where both fail and it did come from outside, the operation does not raise it a second time: calls/rerun.h sees
 * that. */
int gd_came_from_outside(PyObject *type, PyObject *value, PyObject *traceback);

/* Whether the frame is a signal handler's: its arguments have its caller's frame, or the number of a signal that it
 * handles. */
int gd_is_signal_handler(PyFrameObject *frame);

/* After a call that the translator made has failed: where the pending exception came from outside, keeps it for
 * gd_take_interruption; where memory is out, notes that in gd_thread.no_memory. Either ends the translation, whatever
 * became of the error on its way. The pending exception stays. */
void gd_note_interruption(void);

/* Whether an exception from outside is noted, or that memory is out. */
int gd_interrupted(void);

/* Adds came_from_outside to the module. 0 or -1 */
int gd_interrupt_init(PyObject *module);

/* What was noted on this thread since the last call of this: new reference or NULL. */
static inline PyObject *
gd_take_interruption(void)
{
    PyObject *error = gd_thread.interruption;
    gd_thread.interruption = NULL;
    return error;
}

#endif
