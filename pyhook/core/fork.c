/* Fork: the Go runtime does not survive it. In the child its threads are gone: a call that reaches its garbage
 * collector hangs for good, and only SIGKILL helps. So nothing of the old copy is ever called again there.
 *
 * That holds inside of a translation too: a backend forks, and the child returns out of it. The way back would lead
 * through Go, which may not even let a C call return (the processor it ran on is with a thread that is gone). So such a
 * child jumps from C to C, over the Go frames between: what the translation held is lost to it, one translation's
 * memory.
 *
 * The handler only counts. Whatever carries an older count is out of date in the child: the loaded library (golib.c),
 * and the translation marks of threads that do not exist there (calls/miss.c).
 */
#include "callbacks.h"
#include "golib_load.h"
#include "interrupt.h"
#include "runtime.h"

#include <pthread.h>
#include <setjmp.h>

struct gd_escape {
    jmp_buf place; /* in gd_golib_translate */
    int generation; /* of forks, when the Go library was called */
};

/* Runs in the child between fork() and its return, perhaps without the GIL (a C library may fork from any thread): no
 * Python, no malloc, no lock. */
static void
in_child(void)
{
    gd_runtime.fork_generation++;
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

/* Whether the pending exception ends the user's call; if not, it is a translation's own and cleared. */
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

/* ---- for Python: new references, NULL with an exception ---- */

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
