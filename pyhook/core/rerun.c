/* The user's own code in the place of transformed code: see rerun.h. */
#include "rerun.h"

#include "extra_state.h"

#include <frameobject.h>
#include <opcode.h>

void
gd_rerun_prepare(PyObject *place, int throws)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL) {
        PyException_SetTraceback(value, traceback != NULL ? traceback : Py_None);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    Py_XSETREF(gd_thread.raised.error, value);
    Py_XSETREF(gd_thread.raised.place, Py_XNewRef(place));
    gd_thread.raised.throws = throws;
}

/* ---- places ---- */

/* Whether two instructions come from the same piece of source. */
static int
same_source(PyCodeObject *a, int offset_a, PyCodeObject *b, int offset_b)
{
    int x[4], y[4];
    return PyCode_Addr2Location(a, offset_a, &x[0], &x[1], &x[2], &x[3])
           && PyCode_Addr2Location(b, offset_b, &y[0], &y[1], &y[2], &y[3]) && memcmp(x, y, sizeof x) == 0;
}

/* Whether the frame is at one level of the place. A resume function is a copy: its instructions keep their positions. */
static int
is_at(const gd_rerun *r, const _PyInterpreterFrame *frame, Py_ssize_t level)
{
    PyObject *item = PyTuple_GET_ITEM(r->place, level);
    PyCodeObject *code = (PyCodeObject *)PyTuple_GET_ITEM(item, 0);
    int offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(item, 2));
    PyCodeObject *runs = frame->f_code;
    if (runs != (level == 0 ? r->code : code)) {
        return 0;
    }
    return same_source(code, offset, runs, gd_py_frame_offset(frame));
}

/* Whether the running frame and those that called it are at the place. Frames between its levels are of functions that the
 * translation did not run as such. */
static int
at_place(const gd_rerun *r, const _PyInterpreterFrame *frame)
{
    Py_ssize_t level = PyTuple_GET_SIZE(r->place) - 1;
    if (level < 0 || !is_at(r, frame, level)) {
        return 0;
    }
    while (level > 0) {
        frame = gd_py_caller(frame);
        if (frame == NULL) {
            return 0;
        }
        if (is_at(r, frame, level - 1)) {
            level--;
        }
        else if (frame->f_code == r->code) {
            return 0; /* elsewhere in the outermost frame */
        }
    }
    return 1;
}

/* Whether the frame, of a resume function, has left its prologue, which ends in a jump. Nothing of the user's runs before. */
static int
in_body(gd_rerun *r, const _PyInterpreterFrame *frame)
{
    if (!r->body && frame->f_code == r->code) {
        int op = gd_py_opcode_at(frame->f_code, gd_py_frame_offset(frame));
        r->body = op == JUMP_FORWARD || op == JUMP_BACKWARD || op == JUMP_BACKWARD_NO_INTERRUPT;
        return 0;
    }
    return r->body;
}

/* ---- the trace function ---- */

static void
stop_tracing(gd_rerun *r)
{
    if (r->traced) {
        r->traced = 0;
        PyEval_SetTrace(r->previous, r->previous_object);
        Py_CLEAR(r->previous_object);
    }
}

/* Sets the exception as if it were raised now: the one that is being handled is its context. Always -1. */
static int
raise_now(gd_rerun *r)
{
    PyObject *error = r->error;
    r->error = NULL;
    PyObject *context = PyException_GetContext(error), *handled = PyErr_GetHandledException();
    if (context == NULL && handled != NULL && handled != error) {
        PyException_SetContext(error, Py_NewRef(handled));
    }
    Py_XDECREF(context);
    Py_XDECREF(handled);
    PyObject *traceback = PyException_GetTraceback(error);
    PyErr_Restore(Py_NewRef(Py_TYPE(error)), error, traceback);
    return -1;
}

static int
trace(PyObject *Py_UNUSED(object), PyFrameObject *frame, int what, PyObject *arg)
{
    gd_rerun *r = gd_thread.rerun;
    if (r == NULL || r->error == NULL || gd_thread.translating > 0) {
        return 0;
    }
    switch (what) {
    case PyTrace_CALL:
        frame->f_trace_lines = 0;
        frame->f_trace_opcodes = r->throws;
        break;
    case PyTrace_RETURN:
        frame->f_trace_lines = 1; /* a generator may live on */
        frame->f_trace_opcodes = 0;
        break;
    case PyTrace_OPCODE:
        if (r->throws && in_body(r, frame->f_frame) && (r->place == NULL || at_place(r, frame->f_frame))) {
            stop_tracing(r);
            return raise_now(r);
        }
        break;
    case PyTrace_EXCEPTION:
        if (!r->throws
            && (PyTuple_GET_ITEM(arg, 0) == (PyObject *)Py_TYPE(r->error)
                || (r->place != NULL && at_place(r, frame->f_frame)))) {
            stop_tracing(r);
            Py_CLEAR(r->error);
        }
        break;
    default:
        break;
    }
    return 0;
}

/* ---- around the call ---- */

void
gd_rerun_begin(gd_rerun *r, PyCodeObject *code)
{
    memset(r, 0, sizeof *r);
    r->error = gd_thread.raised.error;
    r->place = gd_thread.raised.place;
    r->throws = gd_thread.raised.throws;
    gd_thread.raised.error = gd_thread.raised.place = NULL;
    if (r->error == NULL) {
        return;
    }
    r->code = code;
    gd_ExtraState *extra = gd_extra_get(code);
    r->body = extra == NULL || !(extra->flags & GD_CODE_OURS);
    r->outer = gd_thread.rerun;
    gd_thread.rerun = r;
    PyThreadState *tstate = gd_py_thread_state();
    r->previous = tstate->c_tracefunc;
    r->previous_object = Py_XNewRef(tstate->c_traceobj);
    r->traced = 1;
    PyEval_SetTrace(trace, NULL);
}

PyObject *
gd_rerun_end(gd_rerun *r, PyObject *result)
{
    if (r->code == NULL) {
        return result;
    }
    gd_thread.rerun = r->outer;
    if (r->traced && gd_py_traced_by(gd_py_thread_state(), trace)) {
        stop_tracing(r);
    }
    Py_CLEAR(r->previous_object); /* the program has set a trace function of its own */
    Py_CLEAR(r->place);
    if (r->error == NULL) {
        return result;
    }
    /* Not raised so far: as if it arrived when the code had ended. */
    if (result != NULL) {
        Py_DECREF(result);
    }
    else {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        if (value != NULL && traceback != NULL) {
            PyException_SetTraceback(value, traceback);
        }
        if (value != r->error) {
            PyException_SetContext(r->error, Py_XNewRef(value));
        }
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    (void)raise_now(r);
    return NULL;
}
