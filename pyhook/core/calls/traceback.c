/* Gives an exception raised in transformed code the traceback that the user's own code would have given it.
 *
 * A chain is the stack of user frames that an instruction of transformed code represents (gd_entry_spec.chains). A row
 * of an entry's traceback table (gd_tb_row) names the chains for a range of instructions.
 */
#include "calls/traceback.h"

#include "callbacks.h"
#include "calls/rerun.h"
#include "calls/tail_call.h"
#include "guards/guarded_code.h"
#include "interrupt.h"
#include "pycommon/guard.h"
#include "runtime.h"
#include "torch/leave_modes.h"

/* Returns the last row of e's traceback table that covers the code unit, or NULL. Rows are sorted by `start`. */
static const gd_tb_row *
row_at(const gd_GuardedCode *e, uint32_t unit)
{
    uint32_t low = 0, high = e->ntb_rows;
    while (low < high) { /* find the first row that starts after the unit */
        uint32_t middle = low + (high - low) / 2;
        if (e->tb_rows[middle].start <= unit) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    for (uint32_t i = low; i > 0; i--) {
        if (unit < e->tb_rows[i - 1].end) {
            return &e->tb_rows[i - 1];
        }
    }
    return NULL;
}

/* The frame of a transformed function that ran. A traceback shows the user's frame in its place. */
typedef struct {
    PyFrameObject *frame; /* borrowed */
    int holds; /* the values of its variables are shown; otherwise only constants */
} shown_frame;

/* Returns a new traceback entry for one user frame, followed by next (stolen; NULL at the end). Returns NULL with
 * an exception set on failure. item: a level of a chain (gd_entry_spec.chains). The entry's frame is a new frame of
 * the user's code that never ran. This frame also becomes the f_back of next's frame, in place of the frame that
 * ran. */
static PyObject *
user_entry(PyObject *item, shown_frame ran, int innermost, PyObject *next)
{
    PyObject *code, *globals, *shown = NULL, *entry = NULL;
    int lasti, line, nth;
    if (!PyTuple_Check(item)
        || !PyArg_ParseTuple(item, "O!O!ii|O!i", &PyCode_Type, &code, &PyDict_Type, &globals, &lasti, &line,
                             &PyTuple_Type, &shown, &nth)) {
        Py_XDECREF(next);
        return NULL;
    }
    PyFrameObject *frame = gd_py_show_frame((PyCodeObject *)code, globals, lasti, ran.holds ? ran.frame : NULL, shown);
    if (frame != NULL) {
        if (next != NULL) {
            gd_py_set_back(((PyTracebackObject *)next)->tb_frame, innermost ? ran.frame : NULL, frame);
        }
        entry = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next != NULL ? next : Py_None, frame,
                                      lasti, line);
        Py_DECREF(frame);
    }
    Py_XDECREF(next);
    return entry;
}

/* Returns the entries of one chain, outermost first, followed by next (stolen): a new reference, or NULL with an
 * exception set. ran: the transformed frame. */
static PyObject *
user_entries(PyObject *chain, shown_frame ran, PyObject *next)
{
    if (!PyTuple_Check(chain)) {
        PyErr_SetString(PyExc_TypeError, "a chain of user frames is a tuple");
        Py_XDECREF(next);
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(chain);
    for (Py_ssize_t i = n; i-- > 0;) {
        next = user_entry(PyTuple_GET_ITEM(chain, i), ran, i == n - 1, next);
        if (next == NULL) {
            return NULL;
        }
    }
    return next;
}

/* Copies an entry, to be followed by next (stolen). Returns a new reference, or NULL with an exception set. */
static PyObject *
copy_entry(PyTracebackObject *tb, PyObject *next)
{
    PyObject *copy = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next != NULL ? next : Py_None,
                                           tb->tb_frame, tb->tb_lasti, tb->tb_lineno);
    Py_XDECREF(next);
    return copy;
}

/* Builds a traceback from parts. A part is a traceback entry, or for user frames a pair of their chain and the
 * frame that ran. Returns a new reference, or NULL with an exception set. Returns NULL without an exception if
 * there are no parts. */
static PyObject *
assembled(PyObject *parts)
{
    PyObject *next = NULL, *chain;
    PyFrameObject *ran;
    for (Py_ssize_t i = PyTuple_GET_SIZE(parts); i-- > 0;) {
        PyObject *part = PyTuple_GET_ITEM(parts, i);
        if (PyTraceBack_Check(part)) {
            next = copy_entry((PyTracebackObject *)part, next);
        }
        else if (PyTuple_Check(part) && PyArg_ParseTuple(part, "OO!", &chain, &PyFrame_Type, &ran)) {
            next = user_entries(chain, (shown_frame){ran, 0}, next);
        }
        else {
            Py_CLEAR(next);
        }
        if (next == NULL) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "a part of a traceback is an entry or (chain, frame)");
            }
            return NULL;
        }
    }
    return next;
}

/* Finds the operation of entry e that raised. rest: the traceback entries after that of the transformed frame. If a
 * graph raised and the operation is known, sets *chain to the chain of the operation's user frames. Removes the
 * frames of graphs from *rest. *chain and *rest are new references; a replaced *rest is released. */
static void
known_operation(const gd_GuardedCode *e, int graph, PyObject **chain, PyObject **rest)
{
    PyObject *found = NULL, *after = NULL, *inward = NULL;
    PyObject *question = PyTuple_Pack(3, e->operations, *rest, graph ? Py_True : Py_False);
    PyObject *answer = question != NULL ? gd_call_python("user_frames", question) : NULL;
    if (answer != NULL && PyTuple_Check(answer) && PyArg_ParseTuple(answer, "OO", &found, &after)
        && (found == Py_None || PyTuple_Check(found))) {
        inward = PyTuple_Check(after) ? assembled(after) : after != Py_None ? Py_NewRef(after) : NULL;
        if (!PyErr_Occurred()) {
            Py_XSETREF(*rest, inward);
            *chain = found != Py_None ? Py_NewRef(found) : NULL;
        }
    }
    Py_XDECREF(answer);
    Py_XDECREF(question);
    PyErr_Clear();
}

/* How many traceback entries are examined, from the outermost. The transformed frame is among the first. */
enum { MAX_ENTRIES = 64 };

/* Returns copies of the first n entries, followed by rest (stolen): a new reference, or NULL with an exception set. */
static PyObject *
before(PyTracebackObject **entries, int n, PyObject *rest)
{
    while (rest != NULL && n-- > 0) {
        rest = copy_entry(entries[n], rest);
    }
    return rest;
}

/* Returns the traceback entry of the transformed frame, that of e's function, borrowed; NULL if there is none. Stores
 * the entries up to it in `entries`, and their number in *n. */
static PyTracebackObject *
find_ours(const gd_GuardedCode *e, PyObject *traceback, PyTracebackObject **entries, int *n)
{
    PyObject *code = ((PyFunctionObject *)e->function)->func_code;
    *n = 0;
    for (PyTracebackObject *tb = (PyTracebackObject *)traceback; tb != NULL && *n < MAX_ENTRIES; tb = tb->tb_next) {
        entries[(*n)++] = tb;
        if (gd_py_frame_code(tb->tb_frame) == code) {
            return tb;
        }
    }
    return NULL;
}

/* Returns the row of e's traceback table for the entry `ours`, or NULL. */
static const gd_tb_row *
row_of(const gd_GuardedCode *e, const PyTracebackObject *ours)
{
    return ours != NULL && ours->tb_lasti >= 0 ? row_at(e, (uint32_t)ours->tb_lasti / sizeof(_Py_CODEUNIT)) : NULL;
}

/* Reports whether the entry is that of a function which makes a call for captured code: of numpy, from a line of an
 * inlined function (_translator/arrays.placed), or of backward() (_called/gradients.py). The chain of the call has the
 * user's line. */
static int
calls_for_line(const PyObject *entry)
{
    PyFrameObject *frame = ((const PyTracebackObject *)entry)->tb_frame;
    PyCodeObject *code = (PyCodeObject *)gd_py_frame_code(frame);
    return PyUnicode_CompareWithASCIIString(code->co_qualname, "<a call of numpy>") == 0
           || PyUnicode_CompareWithASCIIString(code->co_qualname, "<a call of backward>") == 0;
}

/* Returns the rest of a traceback without the entry of such a function at its start, a new reference or NULL. The rest
 * may also be NULL or a tuple of parts. */
static PyObject *
past_call_for_line(PyObject *rest)
{
    if (rest != NULL && PyTraceBack_Check(rest) && calls_for_line(rest)) {
        rest = (PyObject *)((PyTracebackObject *)rest)->tb_next;
    }
    return Py_XNewRef(rest);
}

/* Returns a new traceback in which user frames replace the transformed frame, that of e's function. Returns NULL
 * without an exception if the traceback has no such frame, NULL with an exception on failure. goes_on: the user's
 * frame has not ended, so the traceback must not keep the values of its variables alive. Constants are shown in either
 * case. */
static PyObject *
rewrite(const gd_GuardedCode *e, PyObject *traceback, int goes_on)
{
    PyTracebackObject *entries[MAX_ENTRIES];
    int n;
    PyTracebackObject *ours = find_ours(e, traceback, entries, &n);
    const gd_tb_row *row = row_of(e, ours);
    if (row == NULL) {
        return NULL;
    }
    int found = n - 1;
    PyObject *rest = past_call_for_line((PyObject *)ours->tb_next), *chain = NULL;
    shown_frame ran = {ours->tb_frame, !goes_on};
    if (!(row->flags & GD_TB_DROP) && rest != NULL && e->operations != Py_None) {
        known_operation(e, row->flags & GD_TB_GRAPH, &chain, &rest);
        Py_XSETREF(rest, past_call_for_line(rest)); /* the graph has called it */
    }
    if (chain != NULL) {
        rest = user_entries(chain, ran, rest);
        Py_DECREF(chain);
        return before(entries, found, rest);
    }
    if (!(row->flags & GD_TB_DROP) || rest == NULL) {
        if (!PyTuple_Check(e->chains) || row->chain >= PyTuple_GET_SIZE(e->chains)) {
            Py_XDECREF(rest);
            return NULL;
        }
        rest = user_entries(PyTuple_GET_ITEM(e->chains, row->chain), ran, rest);
    }
    return before(entries, found, rest);
}

void
gd_fix_traceback(gd_GuardedCode *e)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (traceback != NULL && PyTraceBack_Check(traceback) && e->function != NULL && e->chains != NULL) {
        PyObject *fixed = rewrite(e, traceback, 0);
        if (fixed != NULL) {
            Py_SETREF(traceback, fixed);
            if (value != NULL && PyExceptionInstance_Check(value)) {
                PyException_SetTraceback(value, traceback);
            }
        }
        PyErr_Clear(); /* if memory is exhausted, the traceback stays as it is */
    }
    PyErr_Restore(type, value, traceback);
}

/* Returns the part of a traceback that starts at the user frame whose handler the TailCall runs, borrowed. The frames
 * before it are those that the TailCall goes on with later; it keeps the chain for them. */
static PyObject *
from_handler(gd_TailCall *t, PyObject *chain, PyObject *traceback)
{
    PyTracebackObject *tb = (PyTracebackObject *)traceback;
    if (t->outer != NULL) {
        Py_XSETREF(t->chain, Py_NewRef(chain));
        for (Py_ssize_t n = PyTuple_GET_SIZE(t->outer) / GD_PER_FRAME; n > 0 && tb->tb_next != NULL; n--) {
            tb = tb->tb_next;
        }
    }
    return (PyObject *)tb;
}

void
gd_fix_caught(gd_GuardedCode *e, PyObject *result)
{
    PyObject *value = gd_tail_call_last(result);
    if (value == NULL || e->function == NULL || e->chains == NULL) {
        return;
    }
    gd_TailCall *t = (gd_TailCall *)result;
    if (t->unit >= 0) {
        const gd_tb_row *row = t->outer != NULL ? row_at(e, (uint32_t)t->unit) : NULL;
        if (row != NULL) {
            Py_XSETREF(t->chain, Py_NewRef(PyTuple_GET_ITEM(e->chains, row->chain)));
        }
        return;
    }
    if (!PyExceptionInstance_Check(value)) {
        return;
    }
    PyObject *traceback = PyException_GetTraceback(value);
    PyObject *fixed = traceback != NULL && PyTraceBack_Check(traceback) ? rewrite(e, traceback, 1) : NULL;
    if (fixed != NULL) {
        PyTracebackObject *entries[MAX_ENTRIES];
        int n;
        const gd_tb_row *row = row_of(e, find_ours(e, traceback, entries, &n));
        PyObject *chain = PyTuple_GET_ITEM(e->chains, row->chain);
        PyException_SetTraceback(value, from_handler(t, chain, fixed));
    }
    PyErr_Clear();
    Py_XDECREF(fixed);
    Py_XDECREF(traceback);
}

PyObject *
gd_traceback_with(PyObject *level, PyObject *traceback)
{
    return user_entry(level, (shown_frame){NULL, 0}, 0, Py_XNewRef(traceback));
}

/* ---- resume functions that ran untransformed ---- */

/* Returns the byte offset of the first instruction of `code` whose source position is that of the instruction of
 * `copy` at `lasti`; -1 if there is none. `copy`: the code of a resume function, made from `code`. */
static int
same_place(PyCodeObject *code, PyCodeObject *copy, int lasti)
{
    int want[4], found[4];
    if (!PyCode_Addr2Location(copy, lasti, &want[0], &want[1], &want[2], &want[3])) {
        return -1;
    }
    int step = (int)sizeof(_Py_CODEUNIT);
    for (int at = 0; at < (int)Py_SIZE(code) * step; at += step) {
        if (PyCode_Addr2Location(code, at, &found[0], &found[1], &found[2], &found[3])
            && memcmp(want, found, sizeof(want)) == 0) {
            return at;
        }
    }
    return -1;
}

/* Pairs the variables of `code` with those of `copy` that have the same names. Returns a new tuple of pairs (index in
 * `code`, index in `copy`), or NULL with an exception set. */
static PyObject *
by_name(PyCodeObject *code, PyCodeObject *copy)
{
    PyObject *shown = PyList_New(0);
    for (int i = 0; shown != NULL && i < code->co_nlocalsplus; i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        for (int k = 0; k < copy->co_nlocalsplus; k++) {
            if (PyUnicode_Compare(name, PyTuple_GET_ITEM(copy->co_localsplusnames, k)) == 0) {
                PyObject *pair = Py_BuildValue("(ii)", i, k);
                if (pair == NULL || PyList_Append(shown, pair) < 0) {
                    Py_CLEAR(shown);
                }
                Py_XDECREF(pair);
                break;
            }
        }
    }
    PyObject *out = shown != NULL ? PyList_AsTuple(shown) : NULL;
    Py_XDECREF(shown);
    return out;
}

/* Replaces the frame of the resume function, the outermost one of tb, by the user's frame. Returns a new traceback, or
 * NULL, perhaps with an exception set, if the outermost frame is another one. */
static PyObject *
rewrite_resumed(PyFunctionObject *function, PyTracebackObject *tb)
{
    PyCodeObject *copy = (PyCodeObject *)function->func_code;
    if (gd_py_frame_code(tb->tb_frame) != (PyObject *)copy || function->func_dict == NULL) {
        return NULL;
    }
    PyObject *origin = PyDict_GetItemString(function->func_dict, "__godynamo_origin__");
    if (origin == NULL || !PyTuple_Check(origin) || PyTuple_GET_SIZE(origin) == 0
        || !PyCode_Check(PyTuple_GET_ITEM(origin, 0))) {
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)PyTuple_GET_ITEM(origin, 0);
    int lasti = same_place(code, copy, tb->tb_lasti);
    int line = tb->tb_lineno >= 0 ? tb->tb_lineno : PyCode_Addr2Line(copy, tb->tb_lasti);
    if (lasti < 0 || line <= 0) {
        return NULL;
    }
    PyObject *shown = by_name(code, copy);
    PyObject *item = shown != NULL ? Py_BuildValue("(OOiiN)", code, function->func_globals, lasti, line, shown) : NULL;
    PyObject *fixed =
        item != NULL ? user_entry(item, (shown_frame){tb->tb_frame, 1}, 1, Py_XNewRef((PyObject *)tb->tb_next)) : NULL;
    Py_XDECREF(item);
    return fixed;
}

void
gd_fix_resumed(PyFunctionObject *function)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (traceback != NULL && PyTraceBack_Check(traceback)) {
        PyObject *fixed = rewrite_resumed(function, (PyTracebackObject *)traceback);
        if (fixed != NULL) {
            Py_SETREF(traceback, fixed);
            if (value != NULL && PyExceptionInstance_Check(value)) {
                PyException_SetTraceback(value, traceback);
            }
        }
        PyErr_Clear();
    }
    PyErr_Restore(type, value, traceback);
}

/* Returns the part of the traceback that begins with a signal handler's frame, borrowed, or NULL if there is none.
 * Of the frames after the transformed frame, only these are the user's. Frames of compiled code are not shown,
 * since the user's own code is about to run instead. */
static PyObject *
handlers_part(PyObject *traceback)
{
    PyTracebackObject *entry = (PyTracebackObject *)traceback;
    while (entry != NULL && (entry = entry->tb_next) != NULL) {
        if (gd_is_signal_handler(entry->tb_frame)) {
            return (PyObject *)entry;
        }
    }
    return NULL;
}

/* Clears the frames before `until`: the interrupted frame, which a signal handler may have kept, and those of
 * compiled code. Only the user's own frame may hold their values. */
static void
clear_frames(PyObject *traceback, PyObject *until)
{
    for (PyTracebackObject *tb = (PyTracebackObject *)traceback; tb != NULL && (PyObject *)tb != until;
         tb = tb->tb_next) {
        PyObject *cleared = PyObject_CallMethod((PyObject *)tb->tb_frame, "clear", NULL);
        if (cleared == NULL) {
            PyErr_Clear();
        }
        Py_XDECREF(cleared);
    }
}

/* Returns the chain of user frames of the graph's operation that raised, a new reference. Returns NULL without an
 * exception if the operation is unknown. */
static PyObject *
graph_place(const gd_GuardedCode *e, PyObject *traceback)
{
    PyObject *chain = NULL, *rest = Py_XNewRef((PyObject *)((PyTracebackObject *)traceback)->tb_next);
    if (rest != NULL && e->operations != Py_None) {
        known_operation(e, 1, &chain, &rest);
    }
    Py_XDECREF(rest);
    for (Py_ssize_t i = 0; chain != NULL && i < PyTuple_GET_SIZE(chain); i++) {
        /* The line is known, but not which of its operations raised. */
        if (PyLong_AsLong(PyTuple_GET_ITEM(PyTuple_GET_ITEM(chain, i), 2)) < 0) {
            Py_CLEAR(chain);
        }
    }
    return chain;
}

/* Prepares a run of the user's own code that raises an exception from outside at the failed operation of a graph, if
 * it is known, else at row->place. Steals type, value and traceback. */
static void
raise_again(const gd_GuardedCode *e, const gd_tb_row *row, PyObject *type, PyObject *value, PyObject *traceback)
{
    PyObject *place = row->flags & GD_TB_GRAPH ? graph_place(e, traceback) : NULL;
    if (place == NULL && PyTuple_Check(e->chains) && row->place < PyTuple_GET_SIZE(e->chains)) {
        place = Py_NewRef(PyTuple_GET_ITEM(e->chains, row->place));
    }
    PyObject *part = Py_XNewRef(handlers_part(traceback));
    if (part != NULL) {
        clear_frames(traceback, part);
    }
    Py_XDECREF(traceback);
    PyErr_Restore(type, value, part);
    gd_leave_modes();
    gd_rerun_prepare(place, 1);
    Py_XDECREF(place);
}

int
gd_graph_raised(gd_GuardedCode *e)
{
    PyObject *type, *value, *traceback;
    if (e->function == NULL) {
        return 0;
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *code = ((PyFunctionObject *)e->function)->func_code;
    const gd_tb_row *row = NULL;
    if (traceback != NULL && PyTraceBack_Check(traceback)) {
        PyTracebackObject *tb = (PyTracebackObject *)traceback; /* the outermost entry is the transformed frame's */
        if (gd_py_frame_code(tb->tb_frame) == code && tb->tb_lasti >= 0) {
            row = row_at(e, (uint32_t)tb->tb_lasti / sizeof(_Py_CODEUNIT));
        }
    }
    if (row == NULL || !(row->flags & (GD_TB_GRAPH | GD_TB_PROTECTED))) {
        PyErr_Restore(type, value, traceback);
        return 0;
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    if (gd_came_from_outside(type, value, traceback)) {
        raise_again(e, row, type, value, traceback);
        return GD_RAISED_PROTECTED;
    }
    if (!(row->flags & GD_TB_GRAPH)) {
        PyObject *place = PyTuple_Check(e->chains) && row->chain < PyTuple_GET_SIZE(e->chains)
                              ? PyTuple_GET_ITEM(e->chains, row->chain)
                              : NULL;
        PyErr_Restore(type, value, traceback);
        gd_rerun_prepare(place, 0);
        return GD_RAISED_PROTECTED;
    }
    PyObject *answer = gd_call_python("may_run_again", value != NULL ? value : Py_None);
    int blameless = answer == Py_None, again = answer == Py_True; /* None: the backend failed, not the graph */
    Py_XDECREF(answer);
    PyErr_Clear();
    if (!blameless && row->flags & GD_TB_PROTECTED) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return GD_RAISED_PROTECTED;
    }
    PyErr_Restore(type, value, traceback);
    return again ? GD_RAISED_GRAPH : 0;
}

/* Gives a frame of a traceback, `shown`, the values of the calling frame's variables, by name. code: the code of
 * `shown`. Returns 0, or -1 with an exception set. */
static int
keep_all(PyFrameObject *shown, PyObject *code)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyObject *pairs = frame != NULL ? by_name((PyCodeObject *)code, (PyCodeObject *)gd_py_frame_code(frame)) : NULL;
    int kept = frame != NULL && pairs == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; kept == 0 && pairs != NULL && i < PyTuple_GET_SIZE(pairs); i++) {
        int to, from;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, i), "ii", &to, &from)) {
            kept = -1;
            break;
        }
        PyObject *value = gd_py_frame_value(frame, from);
        kept = value != NULL ? gd_py_show_value(shown, to, value) : 0;
    }
    Py_XDECREF(pairs);
    return kept;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

/* Implements keep_in_traceback(exception, code, index, value, ...). A transformed resume function calls it before
 * it raises an exception again (None: the exception being handled). When an exception is raised again, CPython adds no
 * traceback entry, so the frame's existing entry, the outermost one, gets the variables that the frame still holds:
 * the given ones, or all of them if none are given. */
static PyObject *
keep_in_traceback(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (n < 2 || !PyCode_Check(args[1])) {
        return PyErr_Format(PyExc_TypeError, "keep_in_traceback: an exception and code, then indices and values");
    }
    PyObject *exception = args[0] == Py_None ? PyErr_GetHandledException() : Py_NewRef(args[0]);
    PyObject *traceback =
        exception != NULL && PyExceptionInstance_Check(exception) ? PyException_GetTraceback(exception) : NULL;
    if (traceback != NULL && PyTraceBack_Check(traceback)) {
        PyFrameObject *frame = ((PyTracebackObject *)traceback)->tb_frame;
        int ours = gd_py_frame_code(frame) == args[1], kept = ours && n == 2 ? keep_all(frame, args[1]) : 0;
        for (Py_ssize_t i = 2; ours && kept == 0 && i + 1 < n; i += 2) {
            kept = gd_py_show_value(frame, (int)PyLong_AsLong(args[i]), args[i + 1]);
        }
        if (kept < 0) {
            PyErr_Clear(); /* if memory is exhausted, the frame's variables die with the frame */
        }
    }
    Py_XDECREF(traceback);
    Py_XDECREF(exception);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"keep_in_traceback", (PyCFunction)(void (*)(void))keep_in_traceback, METH_FASTCALL,
     "Called by the rest of a frame before it raises an exception again: its traceback keeps these variables."},
    {NULL, NULL, 0, NULL},
};

int
gd_traceback_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
