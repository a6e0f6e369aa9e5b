/* The Go library: loaded at the first miss, once per process; a forked child loads a fresh copy. */
#ifndef GD_GOLIB_LOAD_H
#define GD_GOLIB_LOAD_H

#include "pycompat.h"
#include "golib.h"

/* Returns the library's functions, loading it if necessary. Returns NULL without an exception if the library cannot
 * be loaded: it has given one RuntimeWarning, and everything runs in CPython. Needs the GIL. */
const gd_golib_api *gd_golib_get(void);

/* The table passed to the library; defined in core_api.c. */
extern const gd_core_api gd_core;

/* Calls api->translate() and returns its result (fork.c). A child forked inside translate() does not return through
 * Go: this function fills reply at once and returns 0. The status is then GD_RAISE if an exception for the user is
 * pending (SystemExit, or that of a backend that failed), else GD_PASS with no exception set. */
int gd_golib_translate(const gd_golib_api *api, const gd_request *request, gd_reply *reply);
/* Implements gd_core_api.python_returned (fork.c). */
void gd_python_returned(void);

/* Registers the handler that marks a child's Go runtime as dead (fork.c). Returns 0, or -1 with an exception set. */
int gd_fork_init(PyObject *module);

/* Adds golib_loaded, golib_calls, ... to the module. Returns 0 or -1. */
int gd_golib_init(PyObject *module);
/* Adds the capsule _core_api to the module. Returns 0 or -1. */
int gd_core_api_init(PyObject *module);

#endif
