/* Exceptions that no operation raised: from a signal handler, set by another thread, KeyboardInterrupt.
 * CPython raises them where its eval loop checks eval_breaker ("looks for requests"), so any code that runs
 * there may raise them.
 *
 * Our own code (translations, Python guards, failure texts) runs with signals held back (gd_hold_signals). A
 * handler runs before or after, in the user's code or where we check for signals, so its exception cannot be
 * taken for a result of our code. An exception that another thread sets cannot be held back. If a call made
 * by the translator raises one, it is noted (gd_note_interruption).
 *
 * Transformed code runs with signals enabled. An exception that arrives there is not the operation's. The
 * user's code whose transformed form it ended must see it as CPython would raise it: calls/rerun.h.
 */
#ifndef GD_INTERRUPT_H
#define GD_INTERRUPT_H

#include "pycompat.h"
#include "runtime.h"

/* Holds signals back. Returns 1 if this call began it on this thread, 0 if they are held already or if this
 * thread receives none. */
static inline int
gd_hold_signals(void)
{
    int held = gd_py_hold_signals();
    gd_thread.holds |= held;
    return held;
}

/* Ends the hold. held: what gd_hold_signals returned. */
static inline void
gd_release_signals(int held)
{
    if (held) {
        gd_thread.holds = 0;
        gd_py_release_signals(gd_py_thread_state());
    }
}

/* Runs the handlers of signals that have arrived, held back or not. Returns 0, or -1 with an exception, which
 * is noted. */
int gd_check_signals(void);

/* Makes CPython look for requests: signals, an exception or GIL request of another thread. Returns 0, or -1
 * with an exception that came from outside. */
int gd_look_for_requests(void);

/* Returns the code of the function that gd_look_for_requests calls: borrowed. The hook leaves it to CPython
 * (module.c). */
PyCodeObject *gd_look_code(void);

/* Reports whether the exception, normalized, came from outside the operation that it left. All borrowed;
 * traceback may be NULL. The first entry of the traceback is the frame that ran the operation. One of these
 * must hold:
 *
 *   - A frame has its caller's frame as an argument, as only a signal handler has. If that argument has been dropped
 *     or replaced, the frame counts if a signal's number precedes it and the frame runs that signal's handler.
 *   - No frame raised it, so it came out of C, and operations do not raise its type or form: it is no Exception, it
 *     has no arguments, or its class is neither builtin nor a tensor library's.
 *
 * If neither holds although it came from outside, the operation does not raise it again: calls/rerun.h
 * detects that.
 */
int gd_came_from_outside(PyObject *type, PyObject *value, PyObject *traceback);

/* Reports whether the frame is a signal handler's: its arguments include its caller's frame, or the number of
 * a signal that it handles. */
int gd_is_signal_handler(PyFrameObject *frame);

/* Notes why a call made by the translator failed. An exception from outside is kept for gd_take_interruption;
 * out of memory is recorded in gd_thread.no_memory. Either ends the translation, even if the error is caught
 * later. The pending exception stays. */
void gd_note_interruption(void);

/* Reports whether an exception from outside, or lack of memory, has been noted. */
int gd_interrupted(void);

/* Adds came_from_outside to the module. Returns 0 or -1. */
int gd_interrupt_init(PyObject *module);

/* Takes what was noted on this thread since the last call: new reference or NULL. */
static inline PyObject *
gd_take_interruption(void)
{
    PyObject *error = gd_thread.interruption;
    gd_thread.interruption = NULL;
    return error;
}

#endif
