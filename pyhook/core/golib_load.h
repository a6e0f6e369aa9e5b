/* The Go library: opened at the first miss, once a process; a fresh copy in a forked child. */
#ifndef GD_GOLIB_LOAD_H
#define GD_GOLIB_LOAD_H

#include "pycompat.h"
#include "golib.h"

/* The library's functions, loading it if need be; NULL when there is none to be had (one RuntimeWarning was given, all
 * runs in CPython). Leaves no exception. Needs the GIL. */
const gd_golib_api *gd_golib_get(void);

/* What the library is given; core_api.c. */
extern const gd_core_api gd_core;

/* Calls api->translate(). A child forked inside of it comes back at once: with GD_RAISE where an exception that is the
 * user's is pending (SystemExit, a backend that failed), else with GD_PASS and none. 0, or what translate() returned.
 * (fork.c) */
int gd_golib_translate(const gd_golib_api *api, const gd_request *request, gd_reply *reply);
/* -> gd_core_api.python_returned (fork.c) */
void gd_python_returned(void);

/* fork.c: registers the handler that marks the Go runtime of a child dead. 0, or -1 with an exception. */
int gd_fork_init(PyObject *module);

/* Adds golib_loaded, golib_calls, ... to the module. 0 or -1 */
int gd_golib_init(PyObject *module);
/* Adds the capsule _core_api to the module. 0 or -1 */
int gd_core_api_init(PyObject *module);

#endif
