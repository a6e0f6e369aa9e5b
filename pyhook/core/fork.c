/* Fork: the Go runtime does not survive it. In the child its threads are gone: a call that reaches its garbage collector
 * hangs for good, and only SIGKILL helps. So nothing of the old copy is ever called again there.
 *
 * The handler only counts. Whatever carries an older count is out of date in the child: the loaded library (golib.c), and
 * the translation marks of threads that do not exist there (miss.c).
 */
#include "golib_load.h"
#include "runtime.h"

#include <pthread.h>

/* Runs in the child between fork() and its return, perhaps without the GIL (a C library may fork from any thread): no
 * Python, no malloc, no lock. */
static void
in_child(void)
{
    gd_runtime.fork_generation++;
}

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
