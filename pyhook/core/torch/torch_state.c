/* Implements torch/torch_state.h. Each field of the state is a row of a table: the C++ symbol that yields the field,
 * and the Python function to call if the symbol is missing. */
#include "golib.h"
#include "runtime.h"
#include "torch/tensor_python.h"
#include "torch/torch_fx.h"
#include "torch/torch_places.h"
#include "torch/torch_state.h"
#include "torch/torch_symbols.h"

/* How a symbol is read. */
enum how {
    CALL_BOOL, /* bool f() */
    CALL_INT, /* int f() or int64_t f() */
    CALL_BYTE, /* a one-byte enum f() */
    CALL_SELF, /* bool f(const Context *) */
    CALL_DEVICE, /* one-byte enum f(DeviceType) */
    AUTOGRAD, /* bits of the struct to which AutogradState::get_tls_state() points, found by probing */
    THREAD_WORD, /* a word of the thread-local c10::impl::raw_local_dispatch_key_set */
    GRAD, /* bool f(); gd_torch_grad_enabled also reads it alone */
};

/* When a snapshot contains a row. A call costs 3 to 7 ns, so a row is left out if other rows imply its value. */
enum needed {
    ALWAYS,
    /* left out if zero. The dispatch keys then imply the value: a dispatch mode sets the key Python, and autocast its
     * own key */
    WHEN_SET,
    /* left out if the value of the row named by `other` is zero, since this row has no effect then. The row named
     * by `other` must be compared itself, or be implied by compared rows */
    WHEN_ROW_SET,
    /* left out if the guard does not ask for the number of threads, the only row that takes a call */
    WHEN_THREADS,
};

typedef struct {
    const char *name;
    enum how how;
    int argument; /* DeviceType, or index of the word */
    const char *symbol;
    /* path of a Python function below torch; NULL: if the symbol is missing, nothing is checked */
    const char *python;
    enum needed needed;
    int other;
} state_row;

#define AUTOGRAD_SYMBOL "_ZN3c1013AutogradState13get_tls_stateEv"
#define KEYS_SYMBOL "_ZN3c104impl26raw_local_dispatch_key_setE"
#define CONTEXT_SYMBOL "_ZN2at13globalContextEv"
#define SET_DISABLED_SYMBOL "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateENS0_26TorchFunctionDisabledStateE"
#define FUNCTIONS_SYMBOL "_ZN2at4impl22PythonTorchFunctionTLS9get_stateEv"
#define AUTOCAST_DTYPE "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE"
#define AUTOCAST_ENABLED "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE"
enum { DEVICE_CPU = 0, DEVICE_CUDA = 1 };

enum {
    ROW_AUTOGRAD,
    ROW_GRAD,
    ROW_INFERENCE,
    ROW_INCLUDED,
    ROW_EXCLUDED,
    ROW_FUNCTION_MODES,
    ROW_FUNCTION_STATE,
    ROW_DISPATCH_MODES,
    ROW_DETERMINISTIC,
    ROW_WARN_ONLY,
    ROW_DEFAULT_DTYPE,
    ROW_THREADS,
    ROW_AUTOCAST_CPU,
    ROW_AUTOCAST_CUDA,
    ROW_AUTOCAST_CPU_DTYPE,
    ROW_AUTOCAST_CUDA_DTYPE,
    ROW_AUTOCAST_CACHE,
    NROWS
};

/* The rows that change most often come first. */
static const state_row rows[NROWS] = {
    [ROW_AUTOGRAD] = {"autograd", AUTOGRAD, 0, AUTOGRAD_SYMBOL, NULL, ALWAYS, 0},
    [ROW_GRAD] = {"grad mode", GRAD, 0, "_ZN3c108GradMode10is_enabledEv", "is_grad_enabled", ALWAYS, 0},
    [ROW_INFERENCE] = {"inference mode", CALL_BOOL, 0, "_ZN3c1013InferenceMode10is_enabledEv",
                       "is_inference_mode_enabled", ALWAYS, 0},
    [ROW_INCLUDED] = {"included dispatch keys", THREAD_WORD, 0, KEYS_SYMBOL, "_C._dispatch_tls_local_include_set",
                      ALWAYS, 0},
    [ROW_EXCLUDED] = {"excluded dispatch keys", THREAD_WORD, 1, KEYS_SYMBOL, "_C._dispatch_tls_local_exclude_set",
                      ALWAYS, 0},
    [ROW_FUNCTION_MODES] = {"torch function modes", CALL_INT, 0, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv",
                            "_C._len_torch_function_stack", ALWAYS, 0},
    [ROW_FUNCTION_STATE] = {"torch function state", CALL_BYTE, 0,
                            "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv",
                            "_C._is_torch_function_enabled", ALWAYS, 0},
    [ROW_DISPATCH_MODES] = {"dispatch modes", CALL_INT, 0, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv",
                            "_C._len_torch_dispatch_stack", WHEN_SET, 0},
    [ROW_DETERMINISTIC] = {"deterministic algorithms", CALL_SELF, 0, "_ZNK2at7Context23deterministicAlgorithmsEv",
                           "are_deterministic_algorithms_enabled", ALWAYS, 0},
    [ROW_WARN_ONLY] = {"deterministic warn only", CALL_SELF, 0, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv",
                       "is_deterministic_algorithms_warn_only_enabled", WHEN_ROW_SET, ROW_DETERMINISTIC},
    [ROW_DEFAULT_DTYPE] = {"default dtype", CALL_BYTE, 0, "_ZN3c1031get_default_dtype_as_scalartypeEv",
                           "get_default_dtype", ALWAYS, 0},
    [ROW_THREADS] = {"threads", CALL_INT, 0, "_ZN2at15get_num_threadsEv", "get_num_threads", WHEN_THREADS, 0},
    [ROW_AUTOCAST_CPU] = {"autocast on the CPU", CALL_DEVICE, DEVICE_CPU, AUTOCAST_ENABLED, "is_autocast_cpu_enabled",
                          WHEN_SET, 0},
    [ROW_AUTOCAST_CUDA] = {"autocast on CUDA", CALL_DEVICE, DEVICE_CUDA, AUTOCAST_ENABLED, "is_autocast_enabled",
                           WHEN_SET, 0},
    [ROW_AUTOCAST_CPU_DTYPE] = {"autocast dtype on the CPU", CALL_DEVICE, DEVICE_CPU, AUTOCAST_DTYPE,
                                "get_autocast_cpu_dtype", WHEN_ROW_SET, ROW_AUTOCAST_CPU},
    [ROW_AUTOCAST_CUDA_DTYPE] = {"autocast dtype on CUDA", CALL_DEVICE, DEVICE_CUDA, AUTOCAST_DTYPE,
                                 "get_autocast_gpu_dtype", WHEN_ROW_SET, ROW_AUTOCAST_CUDA},
    [ROW_AUTOCAST_CACHE] = {"autocast cache", CALL_BOOL, 0, "_ZN2at8autocast25is_autocast_cache_enabledEv",
                            "is_autocast_cache_enabled", WHEN_ROW_SET, ROW_EXCLUDED},
};

/* How gd_torch_state_equal calls the function that reads a row. Every function is called with one word as its
 * argument; functions without parameters ignore the register that holds it. The value is in the low bytes of the
 * result register. */
typedef struct {
    uint64_t (*call)(uintptr_t argument);
    uintptr_t argument;
    uint64_t mask; /* the bytes of the result that hold the value */
    uint64_t want;
} state_call;

/* A value that is read without a call. */
typedef struct {
    const uint8_t *at;
    uint8_t want;
} state_byte;

enum { NBYTES = 2 }; /* a snapshot compares at most two bytes without a call */

/* The compared rows and their values, in the order in which gd_torch_state_equal compares them: words of the thread,
 * bytes of the process, rows read by calls, and the remaining rows, which Python reads. What most comparisons read
 * comes first. */
typedef struct {
    uint8_t has_autograd, has_keys, has_functions;
    uint8_t autograd, autograd_byte, autograd_mask; /* the value; its place as in state_reads */
    uint8_t disabled; /* __torch_function__, as in gd_torch_functions */
    ptrdiff_t modes; /* bytes of the vector of function modes */
    uint64_t keys[2];
    state_byte bytes[NBYTES]; /* unused ones compare a byte that does not change */
    uint32_t ncalls, nrest;
    state_call calls[NROWS];
    uint8_t rest[NROWS]; /* indices of `readers` */
    /* all compared rows */
    uint32_t n, nbytes;
    uint8_t readers[NROWS]; /* indices of state.readers */
    uint64_t values[NROWS];
} snapshot;

/* How a row is read. */
typedef struct {
    void *address; /* address of the symbol; NULL: the row is read by Python */
    const uint8_t *byte; /* the byte that the symbol's function returns; NULL: not known */
    PyObject *python; /* strong */
    uint8_t row;
    uint8_t how;
    int argument;
} reader;

/* How the rows are read. Preparing this struct runs Python, so several threads may do it at once, each
 * with a struct of its own. */
typedef struct {
    int ready;
    uint32_t nreaders;
    reader readers[NROWS];
    const void *context; /* at::Context, a static object */
    uint8_t autograd_byte; /* the byte of AutogradState that holds the modes */
    uint8_t autograd_mask;
    uint8_t knows_functions; /* whether torch's struct has the layout of gd_torch_functions */
} state_reads;

static state_reads state;

/* This thread's AutogradState, its dispatch keys {included, excluded}, and its state of __torch_function__. They are
 * thread-local variables of torch, which live as long as the thread. Their addresses are kept in one variable, so that
 * only one thread-local address is computed. */
typedef struct {
    int found;
    const uint8_t *autograd;
    const uint64_t *keys;
    const gd_torch_functions *functions;
} thread_pointers;

static __thread thread_pointers this_thread;

/* Returns the thread's pointers, which are found on the thread's first call. Each may be NULL if torch has no such
 * symbol. The asm statement keeps GCC from computing the address again for each use, which calls __tls_get_addr. */
static inline const thread_pointers *
pointers_of_thread(void)
{
    thread_pointers *t = &this_thread;
    __asm__("" : "+r"(t));
    if (GD_UNLIKELY(!t->found)) {
        t->found = 1;
        void *get_tls_state = gd_torch_symbol(AUTOGRAD_SYMBOL);
        t->autograd = get_tls_state != NULL ? ((const uint8_t *(*)(void))get_tls_state)() : NULL;
        t->keys = gd_torch_symbol(KEYS_SYMBOL);
        void *get_functions = gd_torch_symbol(FUNCTIONS_SYMBOL);
        t->functions = get_functions != NULL ? ((const gd_torch_functions *(*)(void))get_functions)() : NULL;
    }
    return t;
}

/* Calls one of torch's Python functions and returns the result as a bit pattern: numbers by value, key
 * sets by raw_repr, dtypes by address. */
static uint64_t
read_python(PyObject *function)
{
    PyObject *result = PyObject_CallNoArgs(function);
    if (result != NULL && !PyLong_Check(result) && PyObject_HasAttrString(result, "raw_repr")) {
        Py_SETREF(result, PyObject_CallMethod(result, "raw_repr", NULL));
    }
    /* the value of a read that fails: the check holds while the read keeps failing */
    uint64_t value = UINT64_MAX;
    if (result != NULL && PyLong_Check(result)) {
        value = PyLong_AsUnsignedLongLongMask(result);
    }
    else if (result != NULL) {
        value = (uint64_t)(uintptr_t)result;
    }
    Py_XDECREF(result);
    PyErr_Clear();
    return value;
}

static inline uint64_t
read_value(const reader *r, const thread_pointers *t)
{
    switch ((enum how)r->how) {
    case AUTOGRAD:
        return t->autograd[state.autograd_byte] & state.autograd_mask;
    case THREAD_WORD:
        return t->keys[r->argument];
    case CALL_BOOL:
    case CALL_BYTE:
    case GRAD:
        return ((uint8_t (*)(void))r->address)();
    case CALL_INT:
        return (uint32_t)((int (*)(void))r->address)();
    case CALL_SELF:
        return ((uint8_t (*)(const void *))r->address)(state.context);
    case CALL_DEVICE:
        return ((uint8_t (*)(int8_t))r->address)((int8_t)r->argument);
    }
    return 0;
}

static inline uint64_t
read_row(const reader *r, const thread_pointers *t)
{
    return GD_LIKELY(r->python == NULL) ? read_value(r, t) : read_python(r->python);
}

/* Enters a context manager of torch and copies AutogradState inside it. Returns 0, or -1 with an exception set. */
static int
look_under(const char *context, int argument, const uint8_t *bytes, uint8_t *out, size_t n)
{
    PyObject *type = gd_torch_attribute(context);
    PyObject *manager = type != NULL ? PyObject_CallFunction(type, "O", argument ? Py_True : Py_False) : NULL;
    PyObject *entered = manager != NULL ? PyObject_CallMethod(manager, "__enter__", NULL) : NULL;
    PyObject *left = NULL;
    if (entered != NULL) {
        memcpy(out, bytes, n);
        left = PyObject_CallMethod(manager, "__exit__", "OOO", Py_None, Py_None, Py_None);
    }
    Py_XDECREF(type);
    Py_XDECREF(manager);
    Py_XDECREF(entered);
    Py_XDECREF(left);
    return left != NULL ? 0 : -1;
}

/* Finds the byte of AutogradState that grad mode and inference mode change, and the bits that they change.
 * Returns 1 if exactly one byte changes, 0 if not, -1 with an exception set. The struct has one byte of
 * flags; in newer versions an optional object precedes that byte. */
static int
probe_autograd(state_reads *made, const uint8_t *bytes)
{
    enum { SIZE = 32 };
    uint8_t on[SIZE], off[SIZE];
    /* Inference mode also switches grad mode off. The probe enters both inference_mode(True) and
     * inference_mode(False), so that the caller's own modes do not matter. */
    if (look_under("inference_mode", 1, bytes, off, SIZE) < 0 || look_under("inference_mode", 0, bytes, on, SIZE) < 0) {
        return -1;
    }
    int found = 0;
    for (uint32_t i = 0; i < SIZE; i++) {
        if (on[i] != off[i]) {
            found++;
            made->autograd_byte = (uint8_t)i;
            made->autograd_mask = on[i] ^ off[i];
        }
    }
    return found == 1 && __builtin_popcount(made->autograd_mask) >= 2;
}

/* Appends a reader for the row. python: stolen, or NULL. Always returns 0. */
static int
add_reader(state_reads *made, uint8_t row, void *address, PyObject *python)
{
    enum how how = rows[row].how;
    const uint8_t *byte = NULL;
    if (address != NULL && (how == CALL_SELF || how == CALL_BYTE)) {
        byte = gd_torch_byte_of(address, made->context);
    }
    made->readers[made->nreaders++] = (reader){address, byte, python, row, (uint8_t)how, rows[row].argument};
    return 0;
}

/* Finds out whether the state of __torch_function__ can be read without calls. Leaves no exception set. */
static void
find_functions(state_reads *made)
{
    gd_torch_function_calls calls = {
        .get_state = (const gd_torch_functions *(*)(void))gd_torch_symbol(FUNCTIONS_SYMBOL),
        .stack_len = (int64_t (*)(void))gd_torch_symbol(rows[ROW_FUNCTION_MODES].symbol),
        .get_disabled = (int (*)(void))gd_torch_symbol(rows[ROW_FUNCTION_STATE].symbol),
        .set_disabled = (void (*)(int))gd_torch_symbol(SET_DISABLED_SYMBOL),
        .push = gd_torch_attribute("_C._push_on_torch_function_stack"),
        .pop = gd_torch_attribute("_C._pop_torch_function_stack"),
    };
    PyErr_Clear();
    made->knows_functions = (uint8_t)gd_torch_probe_functions(&calls);
    Py_XDECREF(calls.push);
    Py_XDECREF(calls.pop);
}

/* Chooses how a row is read. Returns 0, or -1 with an exception set. */
static int
choose(state_reads *made, uint8_t row)
{
    const state_row *r = &rows[row];
    void *address = gd_torch_symbol(r->symbol);
    if (r->how == AUTOGRAD) {
        if (address == NULL) {
            return 0; /* the rows ROW_GRAD and ROW_INFERENCE hold the same state */
        }
        int found = probe_autograd(made, ((const uint8_t *(*)(void))address)());
        return found > 0 ? add_reader(made, row, address, NULL) : found;
    }
    if ((row == ROW_GRAD || row == ROW_INFERENCE) && made->nreaders == 1 && made->readers[0].how == AUTOGRAD) {
        return 0;
    }
    if (address != NULL && r->how == CALL_SELF && made->context == NULL) {
        void *get = gd_torch_symbol(CONTEXT_SYMBOL);
        made->context = get != NULL ? ((const void *(*)(void))get)() : NULL;
        address = made->context != NULL ? address : NULL;
    }
    if (address != NULL) {
        return add_reader(made, row, address, NULL);
    }
    PyObject *python = r->python != NULL ? gd_torch_attribute(r->python) : NULL;
    if (python == NULL) {
        PyErr_Clear(); /* this torch has no such state */
        return 0;
    }
    return add_reader(made, row, NULL, python);
}

int
gd_torch_state_ensure(void)
{
    if (GD_LIKELY(state.ready)) {
        return 0;
    }
    PyObject *torch = gd_import("torch");
    if (torch == NULL) {
        return -1;
    }
    Py_DECREF(torch);
    state_reads made = {.ready = 1};
    int failed = 0;
    for (uint8_t row = 0; !failed && row < NROWS; row++) {
        failed = choose(&made, row) < 0;
    }
    find_functions(&made);
    gd_symbolic_tracer fx = {0};
    gd_find_symbolic_tracer(&fx);
    if (!failed && !state.ready) {
        gd_fx = fx;
        state = made;
        return 0;
    }
    Py_XDECREF(fx.module);
    Py_XDECREF(fx.globals);
    for (uint32_t i = 0; i < made.nreaders; i++) { /* not needed: an error occurred, or another thread was faster */
        Py_XDECREF(made.readers[i].python);
    }
    return failed ? -1 : 0;
}

/* Reports whether the row is read from this thread's gd_torch_functions. */
static int
in_functions(const reader *r)
{
    return state.knows_functions && (r->row == ROW_FUNCTION_MODES || r->row == ROW_FUNCTION_STATE);
}

/* Puts a row that a symbol yields into the fields that gd_torch_state_equal reads. */
static void
lay_out_symbol(snapshot *s, const reader *r, uint64_t value)
{
    enum { BYTE = 0xff, INT = 0xffffffff };
    if (in_functions(r)) {
        s->has_functions = 1;
        if (r->row == ROW_FUNCTION_STATE) {
            s->disabled = (uint8_t)value;
        }
        else {
            s->modes = (ptrdiff_t)value * GD_TORCH_MODE_SIZE;
        }
    }
    else if (r->byte != NULL && s->nbytes < NBYTES) {
        s->bytes[s->nbytes++] = (state_byte){r->byte, (uint8_t)value};
    }
    else {
        uintptr_t argument = r->how == CALL_SELF ? (uintptr_t)state.context : (uintptr_t)r->argument;
        s->calls[s->ncalls++] =
            (state_call){(uint64_t (*)(uintptr_t))r->address, argument, r->how == CALL_INT ? INT : BYTE, value};
    }
}

/* Fills in the fields that gd_torch_state_equal reads. */
static void
lay_out(snapshot *s)
{
    static const uint8_t constant;
    int words = 0; /* the number of dispatch key words; both are compared, or neither is */
    for (uint32_t i = 0; i < s->n; i++) {
        words += state.readers[s->readers[i]].python == NULL && state.readers[s->readers[i]].how == THREAD_WORD;
    }
    s->has_keys = words == 2;
    for (uint32_t i = 0; i < s->n; i++) {
        const reader *r = &state.readers[s->readers[i]];
        if (r->python == NULL && r->how == AUTOGRAD) {
            s->has_autograd = 1;
            s->autograd = (uint8_t)s->values[i];
            s->autograd_byte = state.autograd_byte;
            s->autograd_mask = state.autograd_mask;
        }
        else if (r->python == NULL && r->how == THREAD_WORD && s->has_keys) {
            s->keys[r->argument] = s->values[i];
        }
        else if (r->python == NULL && r->how != THREAD_WORD) {
            lay_out_symbol(s, r, s->values[i]);
        }
        else {
            s->rest[s->nrest++] = (uint8_t)i;
        }
    }
    for (uint32_t i = s->nbytes; i < NBYTES; i++) {
        s->bytes[i] = (state_byte){&constant, constant};
    }
}

void *
gd_torch_state_snapshot(int threads)
{
    if (gd_torch_state_ensure() < 0) {
        return NULL;
    }
    snapshot *s = PyMem_Calloc(1, sizeof(snapshot));
    if (s == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    uint64_t by_row[NROWS] = {0};
    for (uint32_t i = 0; i < state.nreaders; i++) {
        const state_row *row = &rows[state.readers[i].row];
        uint64_t value = by_row[state.readers[i].row] = read_row(&state.readers[i], pointers_of_thread());
        if (row->needed == ALWAYS || (row->needed == WHEN_SET && value != 0) || (row->needed == WHEN_THREADS && threads)
            || (row->needed == WHEN_ROW_SET && by_row[row->other] != 0)) {
            s->readers[s->n] = (uint8_t)i;
            s->values[s->n++] = value;
        }
    }
    lay_out(s);
    return s;
}

int
gd_torch_state_equal(const void *taken)
{
    const snapshot *s = taken;
    const thread_pointers *t = pointers_of_thread();
    if ((GD_LIKELY(s->has_autograd) && (t->autograd[s->autograd_byte] & s->autograd_mask) != s->autograd)
        || (GD_LIKELY(s->has_keys) && (t->keys[0] != s->keys[0] || t->keys[1] != s->keys[1]))
        || (GD_LIKELY(s->has_functions)
            && (t->functions->disabled != s->disabled || t->functions->end - t->functions->begin != s->modes))
        || gd_tracing_symbolically()) {
        return 0;
    }
    for (uint32_t i = 0; i < NBYTES; i++) {
        if (*s->bytes[i].at != s->bytes[i].want) {
            return 0;
        }
    }
    /* The loop is unrolled, so that each call instruction has a single target. An operation of torch
     * overwrites longer branch histories, and a misprediction costs more than the call. */
#pragma GCC unroll 17
    for (uint32_t i = 0; i < NROWS; i++) {
        if (i == s->ncalls) {
            break;
        }
        const state_call *c = &s->calls[i];
        if ((c->call(c->argument) & c->mask) != c->want) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < s->nrest; i++) {
        uint32_t at = s->rest[i];
        if (read_row(&state.readers[s->readers[at]], t) != s->values[at]) {
            return 0;
        }
    }
    return 1;
}

/* Returns a row's value as text: a switch is on or off, a dtype has a name. The text is a new str, or NULL
 * with an exception set. */
static PyObject *
row_text(int row, uint64_t value)
{
    switch (rows[row].how) {
    case CALL_BOOL:
    case CALL_SELF:
    case GRAD:
        return PyUnicode_FromString(value ? "on" : "off");
    default:
        break;
    }
    switch (row) {
    case ROW_AUTOCAST_CPU:
    case ROW_AUTOCAST_CUDA:
        return PyUnicode_FromString(value ? "on" : "off");
    case ROW_DEFAULT_DTYPE:
    case ROW_AUTOCAST_CPU_DTYPE:
    case ROW_AUTOCAST_CUDA_DTYPE:
        return gd_tensor_field_text(GD_TENSOR_DTYPE, value);
    default:
        return PyUnicode_FromFormat("%llu", (unsigned long long)value);
    }
}

/* Returns the row of the autograd switch that differs, and replaces *was by the switch's previous value.
 * The first two bits of c10::AutogradState are grad mode and inference mode. */
static int
autograd_row(uint64_t now, uint64_t *was)
{
    static const int names[] = {ROW_GRAD, ROW_INFERENCE};
    for (int bit = 1; bit >= 0; bit--) { /* inference mode first: it also switches grad mode off */
        if ((now ^ *was) >> bit & 1) {
            *was = *was >> bit & 1;
            return names[bit];
        }
    }
    return ROW_AUTOGRAD;
}

PyObject *
gd_torch_state_difference(const void *taken, PyObject **found, PyObject **was)
{
    const snapshot *s = taken;
    if (gd_tracing_symbolically()) {
        *found = PyUnicode_FromString("on");
        *was = PyUnicode_FromString("off");
        return *found != NULL && *was != NULL ? PyUnicode_FromString("torch.fx's symbolic tracing: on, was off") : NULL;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const reader *r = &state.readers[s->readers[i]];
        uint64_t now = read_row(r, pointers_of_thread());
        if (now != s->values[i]) {
            uint64_t before = s->values[i];
            int row = r->row == ROW_AUTOGRAD ? autograd_row(now, &before) : r->row;
            *found = row_text(row, row == r->row ? now : !before);
            *was = row_text(row, before);
            return *found != NULL && *was != NULL
                       ? PyUnicode_FromFormat("torch's %s: %U, was %U", rows[row].name, *found, *was)
                       : NULL;
        }
    }
    return NULL;
}

int
gd_torch_grad_enabled(void)
{
    static reader grad;
    if (GD_UNLIKELY(grad.address == NULL && grad.python == NULL)) {
        void *address = gd_torch_symbol(rows[ROW_GRAD].symbol);
        PyObject *python = address == NULL ? gd_torch_attribute(rows[ROW_GRAD].python) : NULL;
        grad = (reader){.address = address, .python = python, .row = ROW_GRAD, .how = GRAD};
        if (grad.address == NULL && grad.python == NULL) {
            PyErr_Clear();
            return -1; /* neither on nor off: the guard fails */
        }
    }
    return (int)read_row(&grad, NULL);
}

const uint64_t *
gd_torch_thread_keys(void)
{
    return pointers_of_thread()->keys;
}

uint64_t
gd_torch_modes_entered(enum gd_torch_stack stack)
{
    uint8_t row = stack == GD_TORCH_FUNCTION_MODES ? ROW_FUNCTION_MODES : ROW_DISPATCH_MODES;
    for (uint32_t i = 0; i < state.nreaders; i++) {
        if (state.readers[i].row == row) {
            return read_row(&state.readers[i], pointers_of_thread());
        }
    }
    return 0;
}

/* Returns how gd_torch_state_equal reads a row. */
static const char *
way(const reader *r)
{
    if (r->python != NULL) {
        return "python";
    }
    return r->byte != NULL || r->how == AUTOGRAD || r->how == THREAD_WORD || in_functions(r) ? "memory" : "call";
}

PyObject *
gd_torch_state_describe(void)
{
    if (gd_torch_state_ensure() < 0) {
        return NULL;
    }
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict != NULL && i < state.nreaders; i++) {
        const reader *r = &state.readers[i];
        PyObject *value = Py_BuildValue("(Ks)", (unsigned long long)read_row(r, pointers_of_thread()), way(r));
        if (value == NULL || PyDict_SetItemString(dict, rows[r->row].name, value) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}
