/* The Go library: loaded at the first miss, once per process; a forked child loads a fresh copy. */
#ifndef GD_GOLIB_LOAD_H
#define GD_GOLIB_LOAD_H

#include "pycompat.h"
#include "golib.h"

/* Returns the library's functions, loading it if necessary. Returns NULL if it cannot be loaded: one
 * RuntimeWarning was given, and everything runs in CPython. Leaves no exception. Needs the GIL. */
const gd_golib_api *gd_golib_get(void);

/* The table passed to the library; core_api.c. */
extern const gd_core_api gd_core;

/* Calls api->translate(). In a child forked inside it, returns at once: with GD_RAISE if an exception for the
 * user is pending (SystemExit, a backend that failed), else with GD_PASS and none. Returns 0, or what
 * translate() returned. (fork.c) */
int gd_golib_translate(const gd_golib_api *api, const gd_request *request, gd_reply *reply);
/* Implements gd_core_api.python_returned (fork.c). */
void gd_python_returned(void);

/* fork.c: registers the handler that marks a child's Go runtime as dead. Returns 0, or -1 with an exception. */
int gd_fork_init(PyObject *module);

/* Adds golib_loaded, golib_calls, ... to the module. Returns 0 or -1. */
int gd_golib_init(PyObject *module);
/* Adds the capsule _core_api to the module. Returns 0 or -1. */
int gd_core_api_init(PyObject *module);

#endif
