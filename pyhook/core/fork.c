/* The Go runtime does not survive a fork. In the child the runtime's threads are gone, and a call that reaches its
 * garbage collector hangs until SIGKILL. So the child never calls the old copy of the library again.
 *
 * This also holds inside a translation, if a backend forks and the child returns from the backend. The child cannot
 * return through Go: even the return from a C call may hang, since the thread that held Go's processor is gone. So
 * the child jumps (longjmp) from C to C, over the Go frames between, and leaks the memory of one translation.
 *
 * The atfork handler increments the fork generation. State of an older generation is stale in the child: the loaded
 * library (golib_load.c), and the translation marks of threads that do not exist there (calls/miss.c). Full garbage
 * collections no longer wait for the translations of such threads (full_collections.c).
 */
#include "callbacks.h"
#include "full_collections.h"
#include "golib_load.h"
#include "interrupt.h"
#include "runtime.h"

#include <pthread.h>
#include <setjmp.h>

struct gd_escape {
    jmp_buf place; /* in gd_golib_translate */
    int generation; /* fork generation when the Go library was called */
};

/* Runs in the child before fork() returns. It may run without the GIL, since a C library may fork on any thread, so
 * it uses no Python, no malloc and no lock. */
static void
in_child(void)
{
    gd_runtime.fork_generation++;
    gd_full_collections_forked(gd_thread.holds_collections);
}

void
gd_python_returned(void)
{
    struct gd_escape *escape = gd_thread.escape;
    if (GD_UNLIKELY(escape != NULL && escape->generation != gd_runtime.fork_generation)) {
        longjmp(escape->place, 1);
    }
    if (GD_UNLIKELY(escape != NULL && PyErr_Occurred() != NULL)) {
        gd_note_interruption();
    }
}

/* Reports whether the user's call must raise the pending exception. Any other exception belongs to the translation
 * and is cleared. */
static int
users_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) {
        return 0;
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *answer = gd_call_python("is_user_error", value);
    int users = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    if (users) {
        PyErr_Restore(type, value, traceback);
    }
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    return users;
}

int
gd_golib_translate(const gd_golib_api *api, const gd_request *request, gd_reply *reply)
{
    struct gd_escape escape = {.generation = gd_runtime.fork_generation};
    int status = 0;
    gd_thread.escape = &escape;
    if (setjmp(escape.place) == 0) {
        status = api->translate(request, reply);
        gd_thread.escape = NULL;
        return status;
    }
    gd_thread.escape = NULL;
    GD_COUNT(forked_inside);
    reply->entry = NULL;
    reply->status = users_exception() ? GD_RAISE : GD_PASS;
    return 0;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

static PyObject *
fork_generation(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(gd_runtime.fork_generation);
}

static PyMethodDef functions[] = {
    {"fork_generation", fork_generation, METH_NOARGS,
     "How many forks lie between the process that imported this and this one."},
    {NULL, NULL, 0, NULL},
};

int
gd_fork_init(PyObject *module)
{
    static int registered;
    if (!registered) {
        int error = pthread_atfork(NULL, NULL, in_child);
        if (error != 0) {
            PyErr_Format(PyExc_ImportError, "godynamo: pthread_atfork failed with %d", error);
            return -1;
        }
        registered = 1;
    }
    return PyModule_AddFunctions(module, functions);
}
