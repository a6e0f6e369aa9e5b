/* Calls from the core into godynamo's Python modules, and the errors that go there: bugs of ours, and compiled graphs
 * that raise where the program does not. */
#ifndef GD_CALLBACKS_H
#define GD_CALLBACKS_H

#include "runtime.h"

/* Calls one of Python's callbacks: `name` as in the table of callbacks.c, e.g. "limit_reached", with one argument
 * (borrowed). new result, or NULL with an exception. Nothing is translated while it runs. */
PyObject *gd_call_python(const char *name, PyObject *arg);

/* Reports a bug of ours: takes the pending exception, if any, counts, and tells Python. The code that was being
 * translated gets no further attempts (gd_serve_miss). Leaves no exception. where: a short phrase; function: borrowed
 * or NULL. */
void gd_internal_error(const char *where, PyObject *function);

/* Takes the current exception, a compiled graph's, off the error indicator: the user's own code is run instead. */
void gd_keep_graph_error(void);
/* What gd_keep_graph_error left on this thread, given up to the caller: new reference or NULL. */
static inline PyObject *
gd_take_graph_error(void)
{
    PyObject *error = gd_thread.graph_error;
    gd_thread.graph_error = NULL;
    return error;
}
/* After the user's own code ran instead: a graph that raised where the program does not is reported. Steals error. */
void gd_graph_error_done(PyObject *error, PyObject *function, PyObject *result);

/* Adds set_callback, set_translate_callback, report_internal_error to the module. 0 or -1 */
int gd_callbacks_init(PyObject *module);

#endif
