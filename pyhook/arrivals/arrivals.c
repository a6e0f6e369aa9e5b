/* arrivals: a module for tests. It delivers an arrival (a signal, an exception of another thread or a failing
 * allocation) at a chosen point of one call.
 *
 * call(cell, fn, args, how, at, signum, exc) calls fn(*args), appends the result to `cell` and delivers one
 * arrival:
 *
 *   how     at                      what arrives
 *   POINT   the `at`-th point       the signal or exception. A point is a place where CPython may handle a signal: the
 *                                   return of a C function, or any instruction that may check for signals (see
 *                                   is_quiet). Frames are traced.
 *   HOOKED  the `at`-th point       as for POINT, with a frame evaluation hook (PEP 523) installed: CPython then also
 *                                   checks for signals after calls of Python functions
 *   RAISED  the `at`-th operation   the exception, or the signal handler's exception, raised by an instruction such as
 *                                   x + y, as the C code of an operand's type could do. Frames are traced.
 *   TICK    the `at`-th tick()      the signal or exception. Test programs call tick() in operations and effects
 *   ALLOC   the `at`-th allocation  the signal or exception. Counts allocations of Python objects and memory by this
 *                                   thread
 *   HOOKED_ALLOC                    as for ALLOC, with a frame evaluation hook installed
 *   THREAD  `at` nanoseconds later  the signal or exception, sent by another thread
 *   FAIL    the `at`-th allocation  only this allocation fails
 *   FAIL_ON the `at`-th allocation  this allocation and the following ones fail, at most MOST_FAILURES. Without the
 *                                   limit, a CPython exception handler that stores its position as an int (as a `with`
 *                                   block does from instruction 257 on) would retry forever
 *
 * `at` counts from 1. If it is 0, the arrival comes at the start of the call; if it is negative, nothing arrives.
 *
 * Except with RAISED, FAIL and FAIL_ON, an arrival only sets the state that CPython sets when it catches a signal.
 * CPython, or the code under test, decides when to handle it. exc is None for signals, or else the class for
 * PyThreadState_SetAsyncExc. info() describes the last call.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "opcodes.h" /* of pyhook/core/py3xx */

enum { MOST_FAILURES = 10000 };

enum how { NEVER, POINT, RAISED, TICK, ALLOC, THREAD, FAIL, FAIL_ON, HOOKED, HOOKED_ALLOC };

static struct {
    enum how how;
    long at;
    int signum;
    PyObject *exc; /* borrowed from the caller of call(); NULL if a signal arrives */
    unsigned long ident; /* identifier of the thread that makes the call */
    pthread_t main; /* the thread that makes the call */
    long points, ticks, blocks, spared;
    long long nanoseconds;
    volatile int fired, over;
} now;

static long long
clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void
arrive(void)
{
    if (now.fired) {
        return;
    }
    now.fired = 1;
    if (now.exc != NULL) {
        PyThreadState_SetAsyncExc(now.ident, now.exc);
    }
    else {
        PyErr_SetInterruptEx(now.signum);
    }
}

/* ---- points ---- */

/* Reports whether CPython never checks for signals during or after the instruction. Instructions that
 * may release the last reference to an object are not listed, since the object's __del__ would run. */
static int
is_quiet(int opcode)
{
    switch (opcode) {
    case CACHE:
    case NOP:
    case PUSH_NULL:
    case COPY:
    case SWAP:
    case LOAD_FAST:
    case LOAD_CONST:
    case LOAD_DEREF:
    case LOAD_GLOBAL:
    case BUILD_TUPLE:
    case BUILD_LIST:
    case JUMP_FORWARD:
    case PUSH_EXC_INFO:
    case MAKE_FUNCTION:
    case RETURN_VALUE:
    case COPY_FREE_VARS:
    case MAKE_CELL:
        return 1;
    default:
        return gd_py_is_quiet_here(opcode);
    }
}

/* Reports whether torch or its tensors have a function of this name. Such a function may check for signals
 * before it does anything else. */
static int
is_torch_name(PyObject *name)
{
    static PyObject *torch, *tensor;
    if (torch == NULL) {
        torch = PyImport_ImportModule("torch");
        tensor = torch != NULL ? PyObject_GetAttrString(torch, "Tensor") : NULL;
        PyErr_Clear();
    }
    return tensor != NULL && (PyObject_HasAttr(tensor, name) || PyObject_HasAttr(torch, name));
}

/* Reports whether the instruction runs an operation that its operands' types define, or loads a method of
 * torch or of tensors for a call. */
static int
is_operation(PyCodeObject *code, const unsigned char *instruction)
{
    switch (instruction[0]) {
    case BINARY_OP:
#ifdef BINARY_SUBSCR /* up to 3.13 */
    case BINARY_SUBSCR:
#endif
    case STORE_SUBSCR:
    case COMPARE_OP:
    case UNARY_NEGATIVE:
    case UNARY_NOT:
    case UNARY_INVERT:
    case GET_ITER:
    case FOR_ITER:
    case UNPACK_SEQUENCE:
        return 1;
    default: {
        int name = gd_py_method_name(instruction[0], instruction[1]);
        return gd_py_slices(instruction[0])
               || (name >= 0 && name < PyTuple_GET_SIZE(code->co_names)
                   && is_torch_name(PyTuple_GET_ITEM(code->co_names, name)));
    }
    }
}

/* Counts an operation. Returns -1 with the exception set that arrives at this operation, or else 0. */
static int
at_operation(void)
{
    if (++now.points != now.at) {
        return 0;
    }
    if (now.exc == NULL) {
        arrive();
        return PyErr_CheckSignals();
    }
    now.fired = 1;
    PyErr_SetNone(now.exc);
    return -1;
}

static void
at_point(void)
{
    if (++now.points == now.at) {
        arrive();
    }
}

static int
on_trace(PyObject *Py_UNUSED(self), PyFrameObject *frame, int what, PyObject *Py_UNUSED(arg))
{
    if (what == PyTrace_CALL) {
        PyObject *f = (PyObject *)frame;
        return PyObject_SetAttrString(f, "f_trace_opcodes", Py_True)
               | PyObject_SetAttrString(f, "f_trace_lines", Py_False);
    }
    if (what == PyTrace_OPCODE) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *bytes = PyCode_GetCode(code);
        if (bytes == NULL) {
            Py_DECREF(code);
            return -1;
        }
        const unsigned char *instruction = (unsigned char *)PyBytes_AS_STRING(bytes) + PyFrame_GetLasti(frame);
        int operation = now.how == RAISED && is_operation(code, instruction);
        if (now.how != RAISED && !is_quiet(instruction[0])) {
            at_point();
        }
        Py_DECREF(code);
        Py_DECREF(bytes);
        return operation ? at_operation() : 0;
    }
    if (what == PyTrace_RETURN && now.how != RAISED) {
        at_point();
    }
    return 0;
}

/* Evaluates a frame as CPython does. While this function is installed as a hook, CALL does not run Python
 * functions inline. Returns a new reference. */
static PyObject *
evaluate(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throwflag)
{
    return _PyEval_EvalFrameDefault(tstate, frame, throwflag);
}

static int
on_profile(PyObject *Py_UNUSED(self), PyFrameObject *Py_UNUSED(frame), int what, PyObject *Py_UNUSED(arg))
{
    if (what == PyTrace_C_RETURN) {
        at_point();
    }
    return 0;
}

/* ---- allocations ---- */

static struct hooked {
    PyMemAllocatorDomain domain;
    PyMemAllocatorEx old;
} hooked[] = {{PYMEM_DOMAIN_RAW, {0}}, {PYMEM_DOMAIN_MEM, {0}}, {PYMEM_DOMAIN_OBJ, {0}}};

/* Counts an allocation. Returns 1 if it must fail. */
static int
is_failing(void)
{
    if (!pthread_equal(pthread_self(), now.main) || now.over || now.spared) {
        return 0;
    }
    long n = ++now.blocks;
    if ((now.how == ALLOC || now.how == HOOKED_ALLOC) && n == now.at) {
        arrive();
    }
    if ((now.how == FAIL && n == now.at)
        || (now.how == FAIL_ON && now.at >= 0 && n >= now.at && n < now.at + MOST_FAILURES)) {
        now.fired = 1;
        return 1;
    }
    return 0;
}

static void *
on_malloc(void *ctx, size_t size)
{
    PyMemAllocatorEx *old = &((struct hooked *)ctx)->old;
    return is_failing() ? NULL : old->malloc(old->ctx, size);
}

static void *
on_calloc(void *ctx, size_t n, size_t size)
{
    PyMemAllocatorEx *old = &((struct hooked *)ctx)->old;
    return is_failing() ? NULL : old->calloc(old->ctx, n, size);
}

static void *
on_realloc(void *ctx, void *block, size_t size)
{
    PyMemAllocatorEx *old = &((struct hooked *)ctx)->old;
    return is_failing() ? NULL : old->realloc(old->ctx, block, size);
}

static void
on_free(void *ctx, void *block)
{
    PyMemAllocatorEx *old = &((struct hooked *)ctx)->old;
    old->free(old->ctx, block);
}

static void
hook_allocators(int raw)
{
    for (int i = raw ? 0 : 1; i < 3; i++) {
        PyMemAllocatorEx mine = {&hooked[i], on_malloc, on_calloc, on_realloc, on_free};
        PyMem_GetAllocator(hooked[i].domain, &hooked[i].old);
        PyMem_SetAllocator(hooked[i].domain, &mine);
    }
}

static void
unhook_allocators(int raw)
{
    for (int i = raw ? 0 : 1; i < 3; i++) {
        PyMem_SetAllocator(hooked[i].domain, &hooked[i].old);
    }
}

/* ---- another thread ---- */

static void *
send_later(void *Py_UNUSED(arg))
{
    long long end = clock_ns() + now.at;
    while (clock_ns() < end) {
        if (now.over) {
            return NULL;
        }
    }
    if (now.exc != NULL) {
        PyGILState_STATE state = PyGILState_Ensure();
        if (!now.over) {
            arrive();
        }
        PyGILState_Release(state);
    }
    else {
        now.fired = 1;
        pthread_kill(now.main, now.signum);
    }
    return NULL;
}

/* ---- the module ---- */

/* Runs call(). cell, fn, args, exc: borrowed. Returns a new reference to None, or NULL with the exception
 * that fn raised or that arrived. */
static PyObject *
call(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *cell, *fn, *args, *exc;
    int how, signum;
    long at;
    if (!PyArg_ParseTuple(arguments, "O!OO!iliO", &PyList_Type, &cell, &fn, &PyTuple_Type, &args, &how, &at, &signum,
                          &exc)) {
        return NULL;
    }
    memset(&now, 0, sizeof now);
    now.how = how;
    now.at = at;
    now.signum = signum;
    now.exc = exc == Py_None ? NULL : exc;
    now.ident = PyThread_get_thread_ident();
    now.main = pthread_self();
    pthread_t other;
    int fails = how == FAIL || how == FAIL_ON;
    int traced = how == POINT || how == RAISED || how == HOOKED, is_hooked = how == HOOKED || how == HOOKED_ALLOC;
    int counts = how == ALLOC || how == HOOKED_ALLOC;
    PyInterpreterState *interp = PyInterpreterState_Get();
    _PyFrameEvalFunction evaluator = _PyInterpreterState_GetEvalFrameFunc(interp);
    if (is_hooked) {
        _PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
    }
    if (traced) {
        /* From 3.12 on, opcodes are reported only if a frame has asked for them before the function is set. */
        PyObject *caller = (PyObject *)PyEval_GetFrame();
        if (PyObject_SetAttrString(caller, "f_trace_opcodes", Py_True) < 0) {
            return NULL;
        }
        PyEval_SetTrace(on_trace, NULL);
        if (PyObject_SetAttrString(caller, "f_trace_opcodes", Py_False) < 0) {
            return NULL;
        }
        PyEval_SetProfile(how != RAISED ? on_profile : NULL, NULL);
    }
    else if (counts || fails) {
        hook_allocators(fails);
    }
    else if (how == THREAD && pthread_create(&other, NULL, send_later, NULL) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "pthread_create");
        return NULL;
    }
    if (at == 0) {
        arrive();
    }
    long long start = clock_ns();
    PyObject *result = PyObject_Call(fn, args, NULL);
    now.nanoseconds = clock_ns() - start;
    now.over = 1;
    if (traced) {
        PyEval_SetTrace(NULL, NULL);
        PyEval_SetProfile(NULL, NULL);
    }
    if (is_hooked) {
        _PyInterpreterState_SetEvalFrameFunc(interp, evaluator);
    }
    if (counts || fails) {
        unhook_allocators(fails);
    }
    else if (how == THREAD) {
        Py_BEGIN_ALLOW_THREADS pthread_join(other, NULL);
        Py_END_ALLOW_THREADS
    }
    now.how = NEVER;
    if (result == NULL) {
        return NULL;
    }
    int failed = PyList_Append(cell, result);
    Py_DECREF(result);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* Counts a tick, and delivers the arrival if this tick is the chosen one. Returns a copy of the given tensor, or None
 * without one, as a new reference. Any exception comes from copying. */
static PyObject *
tick(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    now.ticks++;
    if (now.how == TICK && now.ticks == now.at) {
        arrive();
    }
    return n == 0 ? Py_NewRef(Py_None) : PyObject_CallMethod(args[0], "clone", NULL);
}

/* Allocations between spare(1) and spare(-1) do not fail and are not counted. Returns a new reference to None. */
static PyObject *
spare(PyObject *Py_UNUSED(module), PyObject *by)
{
    long change = PyLong_AsLong(by);
    if (change == -1 && PyErr_Occurred()) {
        return NULL;
    }
    now.spared += change;
    return Py_NewRef(Py_None);
}

/* Returns (fired, points, ticks, allocations, nanoseconds) of the last call, a new reference. */
static PyObject *
info(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return Py_BuildValue("(illlL)", now.fired, now.points, now.ticks, now.blocks, now.nanoseconds);
}

static PyMethodDef methods[] = {
    {"call", call, METH_VARARGS, "call(cell, fn, args, how, at, signum, exc)"},
    {"tick", (PyCFunction)(void (*)(void))tick, METH_FASTCALL, "tick(tensor=None)"},
    {"info", info, METH_NOARGS, "info() -> (fired, points, ticks, allocations, nanoseconds)"},
    {"spare", spare, METH_O, "spare(change)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "arrivals", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit_arrivals(void)
{
    PyObject *m = PyModule_Create(&definition);
    static const char *names[] = {"NEVER",  "POINT", "RAISED",  "TICK",   "ALLOC",
                                  "THREAD", "FAIL",  "FAIL_ON", "HOOKED", "HOOKED_ALLOC"};
    for (size_t i = 0; m != NULL && i < sizeof names / sizeof *names; i++) {
        PyModule_AddIntConstant(m, names[i], (long)i);
    }
    return m;
}
