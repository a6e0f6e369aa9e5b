/* Exceptions from outside, which no operation raised: those of signal handlers, KeyboardInterrupt among them, and
 * those that another thread sets. CPython raises them where its eval loop checks eval_breaker ("looks for
 * requests"), so they seem to come from whatever code runs there.
 *
 * Our own code (translations, Python guards, failure texts) runs with signals held back (gd_hold_signals). A
 * handler runs before or after our code, or where we check for signals, so its exception cannot be taken for a
 * result of our code. An exception that another thread sets cannot be held back. If a call made by the translator
 * raises such an exception, the core notes it (gd_note_interruption).
 *
 * Transformed code runs with signals enabled. An exception from outside may end one of its operations. The user's
 * code must then see the exception where CPython would raise it: calls/rerun.h.
 */
#ifndef GD_INTERRUPT_H
#define GD_INTERRUPT_H

#include "pycompat.h"
#include "runtime.h"

/* Holds signals back. Returns 1 if this call began the hold on this thread; 0 if signals are held back already, or
 * if CPython runs no handlers on this thread. */
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

/* Runs the handlers of signals that have arrived, even if signals are held back. Returns 0. If a handler raises,
 * notes the exception and returns -1 with the exception set. */
int gd_check_signals(void);

/* Makes CPython look for requests: signals, an exception or GIL request of another thread. Returns 0, or -1 with an
 * exception from outside set. */
int gd_look_for_requests(void);

/* Returns the code of the function that gd_look_for_requests calls, borrowed. The hook never serves this code
 * (module.c marks it). */
PyCodeObject *gd_look_code(void);

/* Reports whether a normalized exception came from outside, rather than from the operation that it ended. All
 * arguments are borrowed; traceback may be NULL. The first entry of the traceback is the frame that ran the
 * operation. The exception came from outside if one of these holds:
 *
 *   - A frame has its caller's frame as an argument, as only a signal handler has. If that argument has been dropped
 *     or replaced, the argument before it must be a signal's number, and the frame must run that signal's handler.
 *   - No frame raised it, so it came out of C, and operations do not raise such exceptions: it is not an Exception, it
 *     has no arguments, or its class is neither builtin nor a tensor library's.
 *
 * For some exceptions from outside neither holds. Then the operation does not raise again, which calls/rerun.h
 * detects.
 */
int gd_came_from_outside(PyObject *type, PyObject *value, PyObject *traceback);

/* Reports whether the frame runs a signal handler: its arguments include its caller's frame, or the number of a
 * signal that it handles. */
int gd_is_signal_handler(PyFrameObject *frame);

/* Notes the pending exception of a call that the translator made: an exception from outside is kept for
 * gd_take_interruption, and a MemoryError is recorded in gd_thread.no_memory. Either exception ends the
 * translation, even if other code catches it later. Other exceptions are ignored. The exception stays pending. */
void gd_note_interruption(void);

/* If another thread has set the pending exception, clears it and returns its class, a new reference; else returns NULL.
 * For a call whose result only decides about our own code (a guard): the caller repeats the call, then hands the class
 * to gd_send_again. Signals must be held back. */
PyObject *gd_take_sent(void);

/* Sets an exception for this thread, as another thread does: CPython raises it where it next looks for requests.
 * Steals type, which may be NULL. */
void gd_send_again(PyObject *type);

/* Reports whether an exception from outside, or lack of memory, has been noted. */
int gd_interrupted(void);

/* Adds came_from_outside to the module. Returns 0 or -1. */
int gd_interrupt_init(PyObject *module);

/* Returns the exception that was noted on this thread, a new reference, and forgets it; NULL if there is none. */
static inline PyObject *
gd_take_interruption(void)
{
    PyObject *error = gd_thread.interruption;
    gd_thread.interruption = NULL;
    return error;
}

#endif
