/* The census of the instructions that CPython runs: see calls/census.h. */
#include "calls/census.h"

#include "cache/extra_state.h"
#include "interrupt.h"
#include "calls/other_hook.h"


/* Questions to the `ask` callback; see _explain/census.py. */
enum { ASK_CODE, ASK_FUNCTION, ASK_CALLEE };
/* Answers to ASK_CODE. */
enum { OF_LIBRARY, OF_USER, HIDDEN };
/* Answers to ASK_FUNCTION: whether a call of the function counts as a torch call. TORCH_WITH_TENSOR: only if a tensor
 * is among its arguments. */
enum { NOT_TORCH, TORCH, TORCH_WITH_TENSOR };

/* How many items of a list or tuple argument (of sum(), for example) are searched for tensors. */
#define MAX_SEARCHED 64

/* The data about one code object. */
typedef struct tally tally;
typedef struct {
    PyCodeObject *code; /* strong */
    PyObject *bytes;    /* strong: its instructions, not specialized */
    int kind;           /* OF_* */
    int ours;           /* made by a translation */
    tally *tallies;
    PyObject *callees;  /* strong dict or NULL: code unit of a call → text for the first callee there */
    int16_t *depths;    /* owned: what gd_py_stack_depths returned */
} seen;

/* The cause for which CPython runs a frame: either a reason that the core has noted, or the instruction of a
 * transformed function that called it, directly or through other frames. For the frame of a transformed function
 * itself, it is the instruction that called the function. */
typedef struct {
    seen *by;
    int unit;   /* code unit of the call in `by`, or -1 */
    int reason; /* GD_COUNT_*, or -1 */
} cause;

/* How many times each code unit of a code object ran for one cause. */
struct tally {
    tally *next;
    seen *of;
    int cause;
    unsigned long starts; /* frames started; each resumption of a generator counts */
    Py_ssize_t n;
    uint32_t *runs, *torch; /* arrays of n */
};

/* A running frame. If counted code called a library, each frame of the library has a site: the instruction of the
 * counted code that led to the library. The library's torch calls are counted at the site. */
typedef struct {
    _PyInterpreterFrame *frame; /* compared only, never dereferenced */
    tally *tally; /* the site's, if the frame has a site; NULL: nothing is counted */
    int unit;     /* the site, if the frame has one, else the frame's current instruction */
    int counted;  /* 0 if the frame has a site */
    int hidden;   /* neither this frame nor its callees are counted, except transformed functions */
} running;

typedef struct gd_census {
    PyObject *ask;          /* strong */
    PyTypeObject *tensor;   /* strong */
    PyObject *properties;   /* strong frozenset of str: tensor attributes whose reads count as operations */
    seen **table;           /* open-addressing hash table by code object */
    size_t size, used;      /* size: a power of two */
    cause *causes;
    int ncauses, max_causes;
    running *stack;
    int depth, max_depth;
    PyCodeObject *noted; /* borrowed, compared only: code whose next frame runs in CPython, for `reason` */
    int reason;
    PyObject *functions; /* strong dict: address of a PyMethodDef → answer to ASK_FUNCTION */
    PyMethodDef *settrace; /* the definition of sys.settrace */
    int incomplete;        /* out of memory, or the trace function was removed */
} census;

/* ---- questions to the Python callback ---- */

/* Calls the callback. The callback is not the user's code, so nothing is translated or counted meanwhile. Returns a
 * new reference, or NULL without an exception. */
static PyObject *
ask(census *c, int what, PyObject *about)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int held = gd_hold_signals();
    gd_thread.translating++;
    PyObject *torch_callback = gd_torch_quiet();
    PyObject *answer = PyObject_CallFunction(c->ask, "iO", what, about);
    if (answer == NULL) {
        PyErr_Clear();
        c->incomplete = 1;
    }
    gd_torch_resume(torch_callback);
    gd_thread.translating--;
    gd_release_signals(held);
    PyErr_Restore(type, value, traceback);
    return answer;
}

/* Returns the answer as an int, or 0 if the answer is NULL or not an int. Steals the answer. */
static int
number(PyObject *answer)
{
    int n = answer != NULL ? (int)PyLong_AsLong(answer) : 0;
    Py_XDECREF(answer);
    if (n == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        n = 0;
    }
    return n;
}

/* ---- code objects ---- */

static size_t
slot_of(const census *c, PyCodeObject *code)
{
    size_t i = ((size_t)code >> 4) & (c->size - 1);
    while (c->table[i] != NULL && c->table[i]->code != code) {
        i = (i + 1) & (c->size - 1);
    }
    return i;
}

static int
grow_table(census *c)
{
    seen **old = c->table;
    size_t n = c->size;
    seen **table = PyMem_Calloc(n ? n * 2 : 256, sizeof(*table));
    if (table == NULL) {
        return -1;
    }
    c->table = table;
    c->size = n ? n * 2 : 256;
    for (size_t i = 0; i < n; i++) {
        if (old[i] != NULL) {
            c->table[slot_of(c, old[i]->code)] = old[i];
        }
    }
    PyMem_Free(old);
    return 0;
}

/* Returns the data about a code object, made at the first use and owned by c->table. Returns NULL without an
 * exception if memory is exhausted. */
static seen *
look_up(census *c, PyCodeObject *code)
{
    if (c->size > 0) {
        seen *s = c->table[slot_of(c, code)];
        if (s != NULL) {
            return s;
        }
    }
    if (c->used * 2 >= c->size && grow_table(c) < 0) {
        return NULL;
    }
    seen *s = PyMem_Calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    s->bytes = PyCode_GetCode(code);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    if (s->bytes == NULL) {
        PyMem_Free(s);
        return NULL;
    }
    s->code = (PyCodeObject *)Py_NewRef(code);
    s->depths = gd_py_stack_depths(code, s->bytes);
    gd_ExtraState *extra = gd_extra_get(code);
    s->ours = extra != NULL && (extra->flags & GD_CODE_OURS);
    c->table[slot_of(c, code)] = s; /* added before the callback runs, which may call look_up again */
    c->used++;
    s->kind = s->ours ? OF_USER : number(ask(c, ASK_CODE, (PyObject *)code));
    return s;
}

static int
cause_of(census *c, seen *by, int unit, int reason)
{
    for (int i = c->ncauses; i-- > 0;) {
        cause *k = &c->causes[i];
        if (k->by == by && k->unit == unit && k->reason == reason) {
            return i;
        }
    }
    if (c->ncauses == c->max_causes) {
        int n = c->max_causes ? 2 * c->max_causes : 32;
        cause *grown = PyMem_Realloc(c->causes, (size_t)n * sizeof(cause));
        if (grown == NULL) {
            c->incomplete = 1;
            return 0;
        }
        c->causes = grown;
        c->max_causes = n;
    }
    c->causes[c->ncauses] = (cause){by, unit, reason};
    return c->ncauses++;
}

static tally *
tally_of(seen *s, int why)
{
    for (tally *t = s->tallies; t != NULL; t = t->next) {
        if (t->cause == why) {
            return t;
        }
    }
    Py_ssize_t n = PyBytes_GET_SIZE(s->bytes) / 2;
    tally *t = PyMem_Calloc(1, sizeof(*t));
    uint32_t *counts = PyMem_Calloc((size_t)n * 2, sizeof(*counts));
    if (t == NULL || counts == NULL) {
        PyMem_Free(t);
        PyMem_Free(counts);
        return NULL;
    }
    *t = (tally){.next = s->tallies, .of = s, .cause = why, .n = n, .runs = counts, .torch = counts + n};
    s->tallies = t;
    return t;
}

/* ---- frames ---- */

void
gd_census_note(PyCodeObject *code, int reason)
{
    census *c = gd_thread.census;
    /* Keep the first reason, which is the most specific. Steps that run later note a more general one. */
    if (c->noted != code) {
        c->noted = code;
        c->reason = reason;
    }
}

static void
frame_starts(census *c, _PyInterpreterFrame *frame)
{
    if (c->depth == c->max_depth) {
        int n = c->max_depth ? 2 * c->max_depth : 64;
        running *grown = PyMem_Realloc(c->stack, (size_t)n * sizeof(running));
        if (grown == NULL) {
            c->incomplete = 1;
            return;
        }
        c->stack = grown;
        c->max_depth = n;
    }
    PyCodeObject *code = gd_py_code_run_by(frame);
    int noted = c->noted == code;
    c->noted = NULL;
    seen *s = look_up(c, code);
    running *parent = c->depth > 0 ? &c->stack[c->depth - 1] : NULL;
    running r = {.frame = frame, .unit = -1, .counted = 1};
    if (s == NULL) {
        c->incomplete = 1;
    }
    else if (s->kind == HIDDEN || (!s->ours && parent != NULL && parent->hidden)) {
        r.hidden = 1;
    }
    else if (s->kind == OF_LIBRARY && parent != NULL && parent->tally != NULL) {
        r.tally = parent->tally;
        r.unit = parent->unit;
        r.counted = 0;
    }
    else {
        int why;
        if (noted) {
            why = cause_of(c, s, -1, c->reason);
        }
        else if (parent == NULL || parent->tally == NULL) {
            why = cause_of(c, s, -1, -1);
        }
        else if (s->ours) { /* captured code: the cause is the instruction that called it */
            why = cause_of(c, parent->tally->of, parent->unit, -1);
        }
        else {
            cause *k = &c->causes[parent->tally->cause];
            int piece = parent->tally->of->ours && k->reason < 0;
            why = piece ? cause_of(c, parent->tally->of, parent->unit, -1) : parent->tally->cause;
        }
        r.tally = tally_of(s, why);
        if (r.tally != NULL) {
            r.tally->starts++;
        }
        c->incomplete |= r.tally == NULL;
    }
    c->stack[c->depth++] = r;
}

static void
frame_ends(census *c, _PyInterpreterFrame *frame)
{
    for (int i = c->depth; i-- > 0;) {
        if (c->stack[i].frame == frame) {
            c->depth = i;
            return;
        }
    }
}

/* ---- instructions ---- */

static int
is_tensor(const census *c, PyObject *v)
{
    return v != NULL && PyType_IsSubtype(Py_TYPE(v), c->tensor);
}

/* Reports whether v is a tensor, or a list or tuple with a tensor among its first items. */
static int
holds_tensor(const census *c, PyObject *v)
{
    if (v == NULL || is_tensor(c, v)) {
        return v != NULL;
    }
    if (PyList_CheckExact(v) || PyTuple_CheckExact(v)) {
        Py_ssize_t n = Py_MIN(PySequence_Fast_GET_SIZE(v), MAX_SEARCHED);
        for (Py_ssize_t i = 0; i < n; i++) {
            if (is_tensor(c, PySequence_Fast_GET_ITEM(v, i))) {
                return 1;
            }
        }
    }
    return 0;
}

/* Returns the definition of a C function or method, which outlives every bound method; NULL for any other callable. */
static PyMethodDef *
definition(PyObject *callable)
{
    if (PyCFunction_Check(callable)) {
        return ((PyCFunctionObject *)callable)->m_ml;
    }
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyClassMethodDescr_Type)) {
        return ((PyMethodDescrObject *)callable)->d_method;
    }
    return NULL;
}

/* Removes the census's trace function, since the user's program is about to set its own. The program's function must
 * get only the events that it requests, so the running frames no longer report opcodes. */
static void
make_way(census *c)
{
    for (int i = 0; i < c->depth; i++) {
        PyFrameObject *frame = c->stack[i].frame->frame_obj;
        if (frame != NULL) {
            frame->f_trace_opcodes = 0;
        }
    }
    c->depth = 0;
    c->incomplete = 1;
    PyEval_SetTrace(NULL, NULL);
}

static int
call_of(census *c, PyObject *callable)
{
    if (callable == NULL) {
        return NOT_TORCH;
    }
    PyMethodDef *key = definition(callable);
    if (key != NULL && key == c->settrace) {
        make_way(c);
        return NOT_TORCH;
    }
    if (key == NULL) {
        /* Python code is counted as a frame of its own. */
        int frames = PyFunction_Check(callable) || PyMethod_Check(callable) || PyType_Check(callable);
        return frames ? NOT_TORCH : number(ask(c, ASK_FUNCTION, callable));
    }
    PyObject *address = PyLong_FromVoidPtr(key);
    PyObject *known = address != NULL ? PyDict_GetItemWithError(c->functions, address) : NULL;
    int answer;
    if (known != NULL) {
        answer = (int)PyLong_AsLong(known);
    }
    else {
        PyObject *fresh = ask(c, ASK_FUNCTION, callable);
        if (address != NULL && fresh != NULL) {
            (void)PyDict_SetItem(c->functions, address, fresh);
        }
        answer = number(fresh);
    }
    Py_XDECREF(address);
    PyErr_Clear();
    return answer;
}

/* Records the first callee of each call in a transformed function, since explain() names the callee of a native
 * instruction (the one that a graph break leaves to CPython). */
static void
name_callee(census *c, seen *s, int unit, PyObject *callable)
{
    if (!s->ours || callable == NULL) {
        return;
    }
    PyObject *key = PyLong_FromLong(unit);
    if (s->callees == NULL) {
        s->callees = PyDict_New();
    }
    if (key != NULL && s->callees != NULL && PyDict_GetItemWithError(s->callees, key) == NULL) {
        PyObject *text = ask(c, ASK_CALLEE, callable);
        if (text != NULL) {
            (void)PyDict_SetItem(s->callees, key, text);
            Py_DECREF(text);
        }
    }
    Py_XDECREF(key);
    PyErr_Clear();
}

/* Reports whether the instruction counts as a torch call. sp points past the top of the stack. */
static int
is_torch(census *c, seen *s, int unit, int op, int arg, const gd_py_slot *sp)
{
    PyObject *callable;
    switch (op) {
    case BINARY_OP:
    case COMPARE_OP: { /* an instance of a Python class on the left is tried first and computes the result itself */
        PyObject *left = gd_py_slot_object(sp[-2]);
        return is_tensor(c, left)
               || (is_tensor(c, gd_py_slot_object(sp[-1])) && !gd_py_class_may_change(Py_TYPE(left))
                   && !gd_py_subscripts(op, arg));
    }
    case UNARY_NEGATIVE:
    case UNARY_INVERT:
    case CONTAINS_OP:
        return is_tensor(c, gd_py_slot_object(sp[-1]));
#ifdef BINARY_SUBSCR
    case BINARY_SUBSCR:
#endif
    case STORE_SUBSCR:
        return is_tensor(c, gd_py_slot_object(sp[-2]));
    case LOAD_ATTR: {
        int name = gd_py_attribute_name(arg);
        return name >= 0 && is_tensor(c, gd_py_slot_object(sp[-1]))
               && PySet_Contains(c->properties, PyTuple_GET_ITEM(s->code->co_names, name)) == 1;
    }
#ifdef CALL_KW
    case CALL_KW:
        sp--; /* the names */
        __attribute__((fallthrough));
#endif
    case CALL: {
        int operands = gd_py_call_operands(sp, arg, &callable);
        name_callee(c, s, unit, callable);
        int answer = call_of(c, callable);
        for (int i = 1; answer == TORCH_WITH_TENSOR && i <= operands; i++) {
            if (holds_tensor(c, gd_py_slot_object(sp[-i]))) {
                return 1;
            }
        }
        return answer == TORCH;
    }
    case CALL_FUNCTION_EX: {
        PyObject *args = gd_py_call_ex_operands(sp, arg, &callable);
        name_callee(c, s, unit, callable);
        int answer = call_of(c, callable);
        return answer == TORCH || (answer == TORCH_WITH_TENSOR && holds_tensor(c, args));
    }
    default:
        return (gd_py_is_positive(op, arg) && is_tensor(c, gd_py_slot_object(sp[-1])))
               || (gd_py_slices(op) && is_tensor(c, gd_py_slot_object(sp[-3])));
    }
}

static void
instruction_runs(census *c, _PyInterpreterFrame *frame)
{
    running *r = c->depth > 0 ? &c->stack[c->depth - 1] : NULL;
    if (r == NULL || r->frame != frame || r->tally == NULL) {
        return; /* the frame started before the census, or is not counted */
    }
    seen *s = r->counted ? r->tally->of : look_up(c, gd_py_code_run_by(frame));
    if (s == NULL) {
        return;
    }
    const unsigned char *units = (const unsigned char *)PyBytes_AS_STRING(s->bytes);
    Py_ssize_t unit = _PyInterpreterFrame_LASTI(frame), n = PyBytes_GET_SIZE(s->bytes) / 2;
    if (unit < 0 || unit >= n) {
        return;
    }
    const gd_py_slot *top = gd_py_stack_top(frame, s->depths, unit);
    int op = units[2 * unit], arg = units[2 * unit + 1];
    while (op == EXTENDED_ARG && unit + 1 < n) {
        unit++;
        op = units[2 * unit];
        arg = arg << 8 | units[2 * unit + 1];
    }
    if (r->counted) {
        r->unit = (int)unit;
        r->tally->runs[unit]++;
    }
    if (top != NULL && is_torch(c, s, (int)unit, op, arg, top) && r->unit >= 0) {
        r->tally->torch[r->unit]++;
    }
}

int
gd_census_trace(PyObject *Py_UNUSED(obj), PyFrameObject *frame, int what, PyObject *Py_UNUSED(arg))
{
    census *c = gd_thread.census;
    if (c == NULL || gd_thread.translating > 0) {
        return 0;
    }
    switch (what) {
    case PyTrace_CALL:
        gd_py_trace_opcodes(frame, 1);
        frame_starts(c, frame->f_frame);
        break;
    case PyTrace_RETURN:
        frame->f_trace_opcodes = 0; /* a generator may outlive the census */
        frame_ends(c, frame->f_frame);
        break;
    case PyTrace_OPCODE:
        instruction_runs(c, frame->f_frame);
        break;
    default:
        break;
    }
    return 0;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

static void
census_free(census *c)
{
    for (size_t i = 0; i < c->size; i++) {
        seen *s = c->table[i];
        if (s == NULL) {
            continue;
        }
        for (tally *t = s->tallies, *next; t != NULL; t = next) {
            next = t->next;
            PyMem_Free(t->runs);
            PyMem_Free(t);
        }
        Py_DECREF(s->code);
        Py_DECREF(s->bytes);
        Py_XDECREF(s->callees);
        PyMem_Free(s->depths);
        PyMem_Free(s);
    }
    PyMem_Free(c->table);
    PyMem_Free(c->causes);
    PyMem_Free(c->stack);
    Py_XDECREF(c->functions);
    Py_XDECREF(c->properties);
    Py_XDECREF(c->ask);
    Py_XDECREF(c->tensor);
    PyMem_Free(c);
}

static PyObject *
census_start(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *callback, *tensor, *properties;
    if (!PyArg_ParseTuple(args, "OO!O!:census_start", &callback, &PyType_Type, &tensor, &PyFrozenSet_Type,
                          &properties)) {
        return NULL;
    }
    if (gd_thread.census != NULL || gd_py_tracing(gd_py_thread_state())) {
        Py_RETURN_FALSE;
    }
    census *c = PyMem_Calloc(1, sizeof(*c));
    if (c == NULL) {
        return PyErr_NoMemory();
    }
    c->ask = Py_NewRef(callback);
    c->tensor = (PyTypeObject *)Py_NewRef(tensor);
    c->properties = Py_NewRef(properties);
    c->functions = PyDict_New();
    PyObject *settrace = PySys_GetObject("settrace");
    c->settrace = settrace != NULL ? definition(settrace) : NULL;
    if (c->functions == NULL) {
        census_free(c);
        return NULL;
    }
    gd_thread.census = c;
    gd_py_set_opcode_trace(gd_py_thread_state(), gd_census_trace);
    Py_RETURN_TRUE;
}

/* Returns a new list [(unit, runs, torch calls), ...] of the code units that ran, or NULL with an exception set. */
static PyObject *
counts_of(const tally *t)
{
    PyObject *out = PyList_New(0);
    for (Py_ssize_t i = 0; out != NULL && i < t->n; i++) {
        if (t->runs[i] == 0 && t->torch[i] == 0) {
            continue;
        }
        PyObject *row = Py_BuildValue("(nkk)", i, (unsigned long)t->runs[i], (unsigned long)t->torch[i]);
        if (row == NULL || PyList_Append(out, row) < 0) {
            Py_CLEAR(out);
        }
        Py_XDECREF(row);
    }
    return out;
}

/* Returns one row of census_stop's result: a new tuple, or NULL with an exception set. */
static PyObject *
row_of(const census *c, const tally *t)
{
    const cause *k = &c->causes[t->cause];
    const char *reason = k->reason >= 0 ? gd_counter_name(k->reason) : "";
    return Py_BuildValue("(OiiOiskNO)", t->of->code, t->of->kind, t->of->ours, k->by->code, k->unit, reason, t->starts,
                         counts_of(t), t->of->callees != NULL ? t->of->callees : Py_None);
}

static PyObject *
census_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    census *c = gd_thread.census;
    if (c == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this thread takes no census");
        return NULL;
    }
    gd_thread.census = NULL;
    PyThreadState *tstate = gd_py_thread_state();
    if (gd_py_traced_by(tstate, gd_census_trace)) {
        PyEval_SetTrace(NULL, NULL);
    }
    else {
        c->incomplete = 1; /* the user's code set or removed a trace function; if it set one, that one stays */
    }
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows != NULL && i < c->size; i++) {
        for (tally *t = c->table[i] != NULL ? c->table[i]->tallies : NULL; rows != NULL && t != NULL; t = t->next) {
            PyObject *row = row_of(c, t);
            if (row == NULL || PyList_Append(rows, row) < 0) {
                Py_CLEAR(rows);
            }
            Py_XDECREF(row);
        }
    }
    PyObject *complete = c->incomplete ? Py_False : Py_True;
    census_free(c);
    return rows != NULL ? Py_BuildValue("(NO)", rows, complete) : NULL;
}

static PyMethodDef functions[] = {
    {"census_start", census_start, METH_VARARGS,
     "census_start(ask, tensor type, properties): counts from now on what CPython runs on this thread. False where a "
     "trace "
     "or profile function is set already."},
    {"census_stop", census_stop, METH_NOARGS,
     "census_stop(): ends it; returns ([(code, kind, ours?, code of the cause, unit there or -1, reason, frames, "
     "[(unit, "
     "runs, torch calls), ...], {unit: callee} or None), ...], whether nothing was missed)."},
    {NULL, NULL, 0, NULL},
};

int
gd_census_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
