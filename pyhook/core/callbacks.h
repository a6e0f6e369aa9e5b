/* Calls from the core into godynamo's Python modules, and the errors reported there: internal errors, and
 * compiled graphs that raise although the user's own code does not. */
#ifndef GD_CALLBACKS_H
#define GD_CALLBACKS_H

#include "runtime.h"

/* Calls one of Python's callbacks. `name` is from the table in callbacks.c, e.g. "limit_reached"; arg is borrowed.
 * Returns a new reference to the callback's result, or NULL with an exception set. Nothing is translated meanwhile. */
PyObject *gd_call_python(const char *name, PyObject *arg);

/* Reports an internal error: takes the pending exception, if any, counts the error, and calls Python. The code that is
 * being translated is not translated again (gd_serve_miss). Leaves no exception. where: a short phrase; function:
 * borrowed or NULL. */
void gd_internal_error(const char *where, PyObject *function);

/* Takes a compiled graph's exception from the error indicator and keeps it while the user's own code runs instead. */
void gd_keep_graph_error(void);
/* Returns the exception that gd_keep_graph_error kept on this thread, a new reference, and forgets it; NULL if
 * there is none. */
static inline PyObject *
gd_take_graph_error(void)
{
    PyObject *error = gd_thread.graph_error;
    gd_thread.graph_error = NULL;
    return error;
}
/* Ends a run of the user's own code in place of a graph that raised. Reports the graph's error if the code did not
 * raise. Steals error. result: what the code returned, borrowed; NULL if it raised. */
void gd_graph_error_done(PyObject *error, PyObject *function, PyObject *result);

/* Adds set_callback, set_translate_callback, report_internal_error to the module. Returns 0 or -1. */
int gd_callbacks_init(PyObject *module);

#endif
