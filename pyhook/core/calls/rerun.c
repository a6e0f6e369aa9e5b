/* Runs of the user's own code in place of transformed code: see calls/rerun.h. */
#include "calls/rerun.h"

#include "cache/extra_state.h"

#include <frameobject.h>
#include <time.h>

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

/* ---- places: where the exception is raised (calls/rerun.h) ---- */

/* Returns the code of one level of the place, borrowed, and sets *offset to the offset of the level's instruction. */
static PyCodeObject *
level_at(const gd_rerun *r, Py_ssize_t level, int *offset)
{
    PyObject *item = PyTuple_GET_ITEM(r->place, level);
    if (level == 0) {
        *offset = r->offset;
        return r->code;
    }
    *offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(item, 2));
    return (PyCodeObject *)PyTuple_GET_ITEM(item, 0);
}

static int
same_source(PyCodeObject *a, int offset_a, PyCodeObject *b, int offset_b)
{
    int x[4], y[4];
    return PyCode_Addr2Location(a, offset_a, &x[0], &x[1], &x[2], &x[3])
           && PyCode_Addr2Location(b, offset_b, &y[0], &y[1], &y[2], &y[3]) && memcmp(x, y, sizeof x) == 0;
}

/* Returns the offset of a resume function's body, which follows the jump at the end of the prologue. bytes: the
 * function's instructions. */
static int
body_of(PyObject *bytes)
{
    const unsigned char *units = (const unsigned char *)PyBytes_AS_STRING(bytes);
    Py_ssize_t at = 0, n = PyBytes_GET_SIZE(bytes);
    while (at < n && units[at] != JUMP_FORWARD) {
        at += 2;
    }
    return (int)at + 2;
}

/* Returns the offset in `copy`, a resume function's code, of the instruction at `offset` of the user's code, or -1.
 * The body of a resume function is a copy of the user's code: instructions keep their opcodes, source positions and
 * order. Raises nothing. */
static int
offset_in_copy(PyCodeObject *code, int offset, PyCodeObject *copy)
{
    PyObject *from = PyCode_GetCode(code), *to = from != NULL ? PyCode_GetCode(copy) : NULL;
    int found = -1;
    /* A damaged file of translations may name a place that the code does not have. */
    if (to != NULL && offset >= 0 && offset < PyBytes_GET_SIZE(from)) {
        const unsigned char *x = (const unsigned char *)PyBytes_AS_STRING(from);
        const unsigned char *y = (const unsigned char *)PyBytes_AS_STRING(to);
        Py_ssize_t ny = PyBytes_GET_SIZE(to), at = 0;
        int before = 0;
        for (Py_ssize_t i = 0; i < offset; i += 2) {
            before += x[i] == x[offset] && same_source(code, (int)i, code, offset);
        }
        for (at = body_of(to); at < ny && found < 0; at += 2) {
            if (y[at] == x[offset] && same_source(code, offset, copy, (int)at) && before-- == 0) {
                found = (int)at;
            }
        }
    }
    Py_XDECREF(from);
    Py_XDECREF(to);
    PyErr_Clear();
    return found;
}

/* Reads a number from an exception table and advances *p (Objects/exception_handling_notes.txt of 3.11). */
static int
read_varint(const unsigned char **p)
{
    int b = *(*p)++, value = b & 63;
    while (b & 64) {
        b = *(*p)++;
        value = value << 6 | (b & 63);
    }
    return value;
}

/* Returns the code unit of the handler for an exception raised at `offset`, or -1. */
static int
handler_of(PyCodeObject *code, int offset)
{
    const unsigned char *p = (const unsigned char *)PyBytes_AS_STRING(code->co_exceptiontable);
    const unsigned char *end = p + PyBytes_GET_SIZE(code->co_exceptiontable);
    int unit = offset / (int)sizeof(_Py_CODEUNIT);
    while (p < end) {
        int start = read_varint(&p), length = read_varint(&p), target = read_varint(&p);
        (void)read_varint(&p);
        if (start <= unit && unit < start + length) {
            return target;
        }
    }
    return -1;
}

/* Reports whether CPython may check for signals just before the instruction at `offset`, so that an exception raised
 * by the check reaches the same handler as an exception of the instruction. Called for each instruction that runs. */
static int
after_a_check(gd_rerun *r, PyCodeObject *code, int offset)
{
    PyObject *bytes = PyCode_GetCode(code);
    if (bytes == NULL) {
        PyErr_Clear();
        return 1;
    }
    const unsigned char *units = (const unsigned char *)PyBytes_AS_STRING(bytes);
    int before = offset - 2, found;
    while (before > 0 && units[before] == CACHE) {
        before -= 2;
    }
    int jumps = gd_py_jumps_back(units[offset]), landed = r->landing;
    r->landing = GD_PY_CHECKS_AFTER_JUMP && jumps;
    if (jumps && !GD_PY_CHECKS_AFTER_JUMP) {
        found = 1;
    }
    else {
        found =
            landed
            || (before >= 0 && (gd_py_calls(units[before]) || (units[before] == RESUME && (units[before + 1] & 3) < 2))
                && handler_of(code, before) == handler_of(code, offset));
    }
    Py_DECREF(bytes);
    return found;
}

/* Reports whether the frame is at the call that leads from the given level of the place to the next level, or at an
 * inline cache of that call. */
static int
calls_on(const gd_rerun *r, const _PyInterpreterFrame *frame, Py_ssize_t level)
{
    int offset;
    PyCodeObject *code = level_at(r, level, &offset);
    return gd_py_code_run_by(frame) == code && offset >= 0
           && same_source(code, offset, code, gd_py_frame_offset(frame));
}

/* Reports whether an exception raised in the frame, or passing through it, comes from the place. Its type may
 * differ from the type that transformed code raised. */
static int
passes_through(const gd_rerun *r, const _PyInterpreterFrame *frame)
{
    for (Py_ssize_t level = r->place != NULL ? PyTuple_GET_SIZE(r->place) : 0; level-- > 0;) {
        if (calls_on(r, frame, level)) {
            return 1;
        }
    }
    return 0;
}

/* Reports whether the running frame is at the place's instruction (with `block`: at any instruction with the same
 * handler), and its callers are at their calls. Between the frames of two levels there may be frames of functions
 * that the translation did not execute as frames. */
static int
at_place(const gd_rerun *r, const _PyInterpreterFrame *frame, int block)
{
    Py_ssize_t level = PyTuple_GET_SIZE(r->place) - 1;
    int offset = -1, runs = gd_py_frame_offset(frame);
    PyCodeObject *code = level >= 0 ? level_at(r, level, &offset) : NULL;
    if (code != gd_py_code_run_by(frame) || offset < 0
        || (block ? handler_of(code, runs) != handler_of(code, offset) : runs != offset)) {
        return 0;
    }
    while (level > 0) {
        frame = gd_py_caller(frame);
        if (frame == NULL) {
            return 0;
        }
        if (calls_on(r, frame, level - 1)) {
            level--;
        }
        else if (gd_py_code_run_by(frame) == r->code) {
            return 0; /* elsewhere in the outermost frame */
        }
    }
    return 1;
}

/* Reports whether the frame is past a resume function's prologue, which runs no user code. */
static int
in_body(const gd_rerun *r, const _PyInterpreterFrame *frame)
{
    return gd_py_code_run_by(frame) != r->code || gd_py_frame_offset(frame) >= r->body;
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

/* Sets the exception as if it were raised now: the exception being handled becomes its context. Returns -1. */
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

/* The transformed code may have run for a long time before it ended, and Ctrl-C should not take twice as
 * long as the program. After this time, the exception is raised at any check for signals in the same block. */
#define LONGEST 100000000 /* ns */

static int64_t
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Reports whether the exception must be raised at the frame's current instruction, which is the case at the first
 * check for signals at or after the place. */
static int
is_due(gd_rerun *r, const _PyInterpreterFrame *frame)
{
    int checked = after_a_check(r, gd_py_code_run_by(frame), gd_py_frame_offset(frame));
    if (r->reached) {
        return checked;
    }
    if (at_place(r, frame, 0)) {
        r->reached = r->passes-- <= 0;
        return r->reached && (checked || r->done);
    }
    return checked && now() - r->begun > LONGEST && at_place(r, frame, 1);
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
        gd_py_trace_opcodes(frame, r->throws);
        break;
    case PyTrace_RETURN:
        frame->f_trace_lines = 1; /* a generator may resume later */
        frame->f_trace_opcodes = 0;
        break;
    case PyTrace_OPCODE:
        if (r->throws && in_body(r, frame->f_frame) && is_due(r, frame->f_frame)) {
            stop_tracing(r);
            return raise_now(r);
        }
        break;
    case PyTrace_EXCEPTION:
        if (!r->throws
            && (PyTuple_GET_ITEM(arg, 0) == (PyObject *)Py_TYPE(r->error) || passes_through(r, frame->f_frame))) {
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
    if (extra != NULL && extra->flags & GD_CODE_OURS) {
        PyObject *bytes = PyCode_GetCode(code);
        r->body = bytes != NULL ? body_of(bytes) : 0;
        Py_XDECREF(bytes);
        PyErr_Clear();
    }
    r->offset = -1;
    r->reached = r->place == NULL;
    if (r->place != NULL && PyTuple_GET_SIZE(r->place) > 0) {
        PyObject *item = PyTuple_GET_ITEM(r->place, 0);
        PyCodeObject *outer = (PyCodeObject *)PyTuple_GET_ITEM(item, 0);
        int offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(item, 2));
        r->offset = outer == code ? offset : offset_in_copy(outer, offset, code);
        long nth = PyTuple_GET_SIZE(item) > 5 ? PyLong_AsLong(PyTuple_GET_ITEM(item, 5)) : 0;
        r->done = nth < 0;
        r->passes = nth < 0 ? ~nth : nth;
    }
    r->begun = now();
    r->outer = gd_thread.rerun;
    gd_thread.rerun = r;
    PyThreadState *tstate = gd_py_thread_state();
    r->previous = tstate->c_tracefunc;
    r->previous_object = Py_XNewRef(tstate->c_traceobj);
    r->traced = 1;
    gd_py_set_opcode_trace(tstate, trace);
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
    Py_CLEAR(r->previous_object); /* not NULL here only if the user's program has set a trace function */
    Py_CLEAR(r->place);
    if (r->error == NULL) {
        return result;
    }
    /* The exception has not been raised so far: raise it as if it had arrived when the code ended. */
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
