/* Exceptions from outside, which no operation raised: see interrupt.h. */
#include "interrupt.h"

#include <signal.h>

/* strong: a Python function that does nothing. CPython looks for requests when the function starts. */
static PyObject *look;

/* Suspends the hold of signals, if there is one. Returns the argument for hold_again. */
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

PyCodeObject *
gd_look_code(void)
{
    return (PyCodeObject *)PyFunction_GET_CODE(look);
}

int
gd_look_for_requests(void)
{
    if (PyErr_CheckSignals() < 0) { /* before `look`, since a signal handler receives the frame that runs now */
        return -1;
    }
    PyObject *none = PyObject_CallNoArgs(look);
    if (none == NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Py_CLEAR(traceback); /* it has one entry: the frame of `look` */
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    Py_DECREF(none);
    return 0;
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

/* Reports whether `code` may be the code of the signal's handler. For a Python function, only its own code qualifies.
 * For any other callable every code qualifies, since the callable's code is unknown. */
static int
may_handle(PyObject *number, PyCodeObject *code)
{
    PyObject *module = PyImport_ImportModule("_signal");
    PyObject *handler = module != NULL ? PyObject_CallMethod(module, "getsignal", "O", number) : NULL;
    Py_XDECREF(module);
    if (handler == NULL) {
        int may = PyErr_ExceptionMatches(PyExc_MemoryError);
        PyErr_Clear();
        return may;
    }
    PyObject *fn = PyMethod_Check(handler) ? PyMethod_GET_FUNCTION(handler) : handler;
    int may;
    if (PyFunction_Check(fn)) {
        may = PyFunction_GET_CODE(fn) == (PyObject *)code;
    }
    else { /* SIG_DFL, SIG_IGN, a handler not set by Python, default_int_handler: none of these has a frame */
        may = fn != Py_None && !PyLong_Check(fn) && !PyCFunction_Check(fn);
    }
    Py_DECREF(handler);
    return may;
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
        /* Some handlers drop this argument, and our tracebacks replace frames. The signal's number still precedes
         * the frame. */
        int other = i > 0 && (value == NULL || value == Py_None || PyFrame_Check(value))
                    && is_signal_number(gd_py_frame_value(frame, i - 1));
        if (value == caller || (other && may_handle(gd_py_frame_value(frame, i - 1), code))) {
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

/* Reports whether C code raises exceptions of this class by itself. It does for CPython's own classes, and for
 * those of the libraries that implement operations. */
static int
raised_by_libraries(PyTypeObject *type)
{
    static const char *const libraries[] = {"torch", "numpy"};
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return 1;
    }
    PyObject *module = PyDict_GetItemString(gd_py_type_dict(type), "__module__");
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

/* Reports whether the innermost frame of the traceback raised the exception itself. */
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

/* Reports whether the exception of a call that the translator made came from outside. The test is stricter than
 * that of gd_came_from_outside: in such calls C code raises builtin exceptions without arguments, such as
 * StopIteration, as a normal result. */
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

PyObject *
gd_take_sent(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (raised_by_python(traceback) || !noteworthy(type, value, traceback)) {
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return type;
}

void
gd_send_again(PyObject *type)
{
    if (type != NULL) {
        PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type);
        Py_DECREF(type);
    }
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

static PyObject *
came_from_outside(PyObject *Py_UNUSED(module), PyObject *error)
{
    if (!PyExceptionInstance_Check(error)) {
        return PyErr_Format(PyExc_TypeError, "an exception is needed, not %s", Py_TYPE(error)->tp_name);
    }
    PyObject *traceback = PyException_GetTraceback(error);
    /* Torch adds a position to the arguments of exceptions that pass through it, so the arguments of a backend's
     * exception are not considered. */
    int outside = noteworthy((PyObject *)Py_TYPE(error), NULL, traceback);
    Py_XDECREF(traceback);
    if (outside && gd_thread.translating > 0 && gd_thread.interruption == NULL) {
        gd_thread.interruption = Py_NewRef(error);
    }
    return PyBool_FromLong(outside);
}

static PyMethodDef functions[] = {
    {"came_from_outside", came_from_outside, METH_O,
     "came_from_outside(error): whether a signal's handler raised it, or another thread: not what failed. It ends the "
     "translation that is under way."},
    {NULL, NULL, 0, NULL},
};

int
gd_interrupt_init(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) < 0) {
        return -1;
    }
    PyObject *names = PyModule_GetDict(module);
    look = PyRun_String("lambda: None", Py_eval_input, names, names);
    return look != NULL ? 0 : -1;
}
