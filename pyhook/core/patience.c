/* Ends a hold of signals after some time: see patience.h. */
#include "patience.h"

#include "interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>


/* The data that the other thread needs to enable signals when the time is over. Both threads have a reference. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct timespec until;
    unsigned long main_thread;
    PyInterpreterState *interp;
    int references, over, through;
} patience;

static void
patience_free(patience *p)
{
    int last = --p->references == 0;
    pthread_mutex_unlock(&p->lock);
    if (last) {
        pthread_cond_destroy(&p->changed);
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

static void *
patience_wait(void *arg)
{
    patience *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->over && pthread_cond_timedwait(&p->changed, &p->lock, &p->until) != ETIMEDOUT) {}
    if (!p->over) {
        p->through = 1;
        gd_py_release_signals_of(p->main_thread, p->interp);
    }
    patience_free(p);
    return NULL;
}

/* Returns a new patience with its thread started; NULL on failure. The thread blocks all signals, so none is
 * delivered to it. */
static patience *
patience_new(double seconds)
{
    patience *p = calloc(1, sizeof *p);
    pthread_condattr_t attr;
    if (p == NULL || pthread_condattr_init(&attr) != 0) {
        free(p);
        return NULL;
    }
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&p->lock, NULL);
    clock_gettime(CLOCK_MONOTONIC, &p->until);
    int64_t at = p->until.tv_nsec + (int64_t)(seconds * 1e9);
    p->until.tv_sec += at / 1000000000;
    p->until.tv_nsec = at % 1000000000;
    p->main_thread = PyThread_get_thread_ident();
    p->interp = PyInterpreterState_Get();
    p->references = 2;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, patience_wait, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        p->references = 1;
        pthread_mutex_lock(&p->lock);
        patience_free(p);
        return NULL;
    }
    pthread_detach(thread);
    return p;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

static PyObject *
let_signals_through(PyObject *Py_UNUSED(module), PyObject *after)
{
    double seconds = PyFloat_AsDouble(after);
    if (seconds == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!gd_thread.holds) {
        return PyLong_FromLong(0);
    }
    patience *p = patience_new(seconds);
    if (p == NULL) {
        gd_release_signals(gd_thread.holds);
        return PyLong_FromLong(1);
    }
    PyObject *held = PyLong_FromVoidPtr(p);
    if (held == NULL) {
        pthread_mutex_lock(&p->lock);
        p->over = 1;
        pthread_cond_signal(&p->changed);
        patience_free(p);
    }
    return held;
}

static PyObject *
hold_signals_again(PyObject *Py_UNUSED(module), PyObject *held)
{
    patience *p = PyLong_AsVoidPtr(held);
    int through = p == (void *)1;
    if (p != NULL && !through) {
        pthread_mutex_lock(&p->lock);
        p->over = 1;
        through = p->through;
        pthread_cond_signal(&p->changed);
        patience_free(p);
    }
    if (through) {
        gd_thread.holds = 0;
        gd_hold_signals();
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"let_signals_through", let_signals_through, METH_O,
     "let_signals_through(seconds): ends, after so long, that signals are held back as during a translation; returns "
     "what "
     "hold_signals_again needs, once."},
    {"hold_signals_again", hold_signals_again, METH_O, "hold_signals_again(held): holds them back again."},
    {NULL, NULL, 0, NULL},
};

int
gd_patience_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
