/* Exceptions that no operation raised: see interrupt.h. */
#include "interrupt.h"

#include "torch_state.h"

#include <errno.h>
#include <opcode.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

/* Ends a hold for a while; what it returns goes to hold_again. */
static int
let_through(void)
{
    int held = gd_thread.holds;
    gd_release_signals(held);
    return held;
}

static void
hold_again(int was_held)
{
    if (was_held) {
        gd_hold_signals();
    }
}

int
gd_check_signals(void)
{
    int held = let_through();
    int failed = PyErr_CheckSignals();
    if (failed) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        if (traceback != NULL) {
            PyException_SetTraceback(value, traceback);
        }
        if (gd_thread.interruption == NULL) {
            gd_thread.interruption = Py_XNewRef(value);
        }
        PyErr_Restore(type, value, traceback);
    }
    hold_again(held);
    return failed;
}

static int
is_signal_number(PyObject *value)
{
    long n = value != NULL && PyLong_CheckExact(value) ? PyLong_AsLong(value) : 0;
    if (n == -1) {
        PyErr_Clear();
    }
    return n > 0 && n < NSIG;
}

int
gd_is_signal_handler(PyFrameObject *frame)
{
    PyObject *caller = (PyObject *)PyFrame_GetBack(frame);
    if (caller == NULL) {
        return 0;
    }
    Py_DECREF(caller); /* the frame holds it */
    PyCodeObject *code = gd_py_frame_code_of(frame);
    int flags = code->co_flags, n = code->co_argcount + code->co_kwonlyargcount;
    for (int i = 0; i < n; i++) {
        PyObject *value = gd_py_frame_value(frame, i);
        /* Some handlers drop the frame, and our tracebacks replace frames: the signal's number still precedes it. */
        int other = i > 0 && (value == NULL || value == Py_None || PyFrame_Check(value))
                    && is_signal_number(gd_py_frame_value(frame, i - 1));
        if (value == caller || other) {
            return 1;
        }
    }
    PyObject *rest = flags & CO_VARARGS ? gd_py_frame_value(frame, n) : NULL;
    for (Py_ssize_t i = 0; rest != NULL && PyTuple_Check(rest) && i < PyTuple_GET_SIZE(rest); i++) {
        PyObject *value = PyTuple_GET_ITEM(rest, i);
        if (value == caller || (i > 0 && PyFrame_Check(value) && is_signal_number(PyTuple_GET_ITEM(rest, i - 1)))) {
            return 1;
        }
    }
    return 0;
}

static int
has_arguments(PyObject *value)
{
    return value != NULL && PyExceptionInstance_Check(value)
           && PyTuple_GET_SIZE(((PyBaseExceptionObject *)value)->args) > 0;
}

/* Whether C raises exceptions of this class by itself: CPython's own, and those of the libraries that operations are written in. */
static int
raised_by_libraries(PyTypeObject *type)
{
    static const char *const libraries[] = {"torch", "numpy"};
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return 1;
    }
    PyObject *module = PyDict_GetItemString(type->tp_dict, "__module__");
    const char *name = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    if (name == NULL) {
        PyErr_Clear();
        return 0;
    }
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        size_t n = strlen(libraries[i]);
        if (strncmp(name, libraries[i], n) == 0 && (name[n] == '\0' || name[n] == '.')) {
            return 1;
        }
    }
    return 0;
}

/* Whether the innermost frame of the traceback raised the exception itself. */
static int
raised_by_python(PyObject *traceback)
{
    PyTracebackObject *last = (PyTracebackObject *)traceback;
    if (last == NULL) {
        return 0;
    }
    while (last->tb_next != NULL) {
        last = last->tb_next;
    }
    int op = gd_py_opcode_at(gd_py_frame_code_of(last->tb_frame), last->tb_lasti);
    return op == RAISE_VARARGS || op == RERAISE;
}

static int
runs_a_handler(PyObject *traceback)
{
    PyTracebackObject *entry = (PyTracebackObject *)traceback;
    while (entry != NULL && (entry = entry->tb_next) != NULL) {
        if (gd_is_signal_handler(entry->tb_frame)) {
            return 1;
        }
    }
    return 0;
}

int
gd_came_from_outside(PyObject *type, PyObject *value, PyObject *traceback)
{
    if (runs_a_handler(traceback)) {
        return 1;
    }
    if (raised_by_python(traceback)) {
        return 0;
    }
    return !PyErr_GivenExceptionMatches(type, PyExc_Exception) || !has_arguments(value)
           || !raised_by_libraries((PyTypeObject *)type);
}

int
gd_interrupted(void)
{
    return gd_thread.interruption != NULL || gd_thread.no_memory;
}

/* gd_came_from_outside for calls that the translator makes: much is computed by CPython there, so that StopIteration and its like come out
 * of C without arguments. */
static int
noteworthy(PyObject *type, PyObject *value, PyObject *traceback)
{
    return !PyErr_GivenExceptionMatches(type, PyExc_Exception) || runs_a_handler(traceback)
           || (!raised_by_libraries((PyTypeObject *)type) && !raised_by_python(traceback) && !has_arguments(value));
}

void
gd_note_interruption(void)
{
    if (gd_thread.interruption != NULL) {
        return;
    }
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
        gd_thread.no_memory = 1;
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (noteworthy(type, value, traceback)) {
        if (value != NULL && traceback != NULL) {
            PyException_SetTraceback(value, traceback);
        }
        gd_thread.interruption = Py_XNewRef(value);
    }
    PyErr_Restore(type, value, traceback);
}

void
gd_leave_modes(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *left = gd_torch_mode_active() ? gd_call_python("leave_dispatch_modes", Py_None) : Py_NewRef(Py_None);
    if (left == NULL) {
        gd_swallow(Py_None);
    }
    Py_XDECREF(left);
    PyErr_Restore(type, value, traceback);
}

/* ---- for Python ---- */

/* What another thread needs to let signals through once the time is over. Both threads have a reference. */
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

/* new, with its thread started; NULL where that fails. All signals are blocked in the thread: none is delivered to it. */
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
        (void)let_through();
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
        hold_again(1);
    }
    Py_RETURN_NONE;
}

static PyObject *
came_from_outside(PyObject *Py_UNUSED(module), PyObject *error)
{
    if (!PyExceptionInstance_Check(error)) {
        return PyErr_Format(PyExc_TypeError, "an exception is needed, not %s", Py_TYPE(error)->tp_name);
    }
    PyObject *traceback = PyException_GetTraceback(error);
    /* Torch writes where it was into the arguments of what passes through, so a backend's are not looked at. */
    int outside = noteworthy((PyObject *)Py_TYPE(error), NULL, traceback);
    Py_XDECREF(traceback);
    if (outside && gd_thread.translating > 0 && gd_thread.interruption == NULL) {
        gd_thread.interruption = Py_NewRef(error);
    }
    return PyBool_FromLong(outside);
}

static PyMethodDef functions[] = {
    {"let_signals_through", let_signals_through, METH_O,
     "let_signals_through(seconds): ends, after so long, that signals are held back as during a translation; returns "
     "what "
     "hold_signals_again needs, once."},
    {"hold_signals_again", hold_signals_again, METH_O, "hold_signals_again(held): holds them back again."},
    {"came_from_outside", came_from_outside, METH_O,
     "came_from_outside(error): whether a signal's handler raised it, or another thread: not what failed. It ends the "
     "translation that is under way."},
    {NULL, NULL, 0, NULL},
};

int
gd_interrupt_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
