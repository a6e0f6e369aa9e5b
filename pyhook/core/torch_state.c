/* See torch_state.h. Each field is a row: the C++ symbol that gives it and the Python function that gives it where the symbol
 * is gone. Python loads extension modules with RTLD_LOCAL, so the symbols are looked up in torch's own libraries. */
#define _GNU_SOURCE
#include "torch_state.h"

#include <dlfcn.h>
#include <link.h>

/* How a symbol is read. */
enum how {
    CALL_BOOL,      /* bool f() */
    CALL_INT,       /* int f() or int64_t f() */
    CALL_BYTE,      /* a one-byte enum f() */
    CALL_SELF,      /* bool f(const Context *) */
    CALL_DEVICE,    /* one-byte enum f(DeviceType) */
    AUTOGRAD,       /* bits of what AutogradState::get_tls_state() returns, found by probing */
    THREAD_WORD,    /* a word of the thread-local c10::impl::raw_local_dispatch_key_set */
    GRAD,           /* bool f(), read on its own too: is_grad_enabled */
};

typedef struct {
    const char *name;
    enum how how;
    int argument;       /* DeviceType, or index of the word */
    const char *symbol;
    const char *python; /* path below torch; NULL: where there is no symbol there is nothing to check */
} state_row;

#define AUTOGRAD_SYMBOL "_ZN3c1013AutogradState13get_tls_stateEv"
#define KEYS_SYMBOL "_ZN3c104impl26raw_local_dispatch_key_setE"
#define CONTEXT_SYMBOL "_ZN2at13globalContextEv"
#define AUTOCAST_DTYPE "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE"
#define AUTOCAST_ENABLED "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE"
enum { DEVICE_CPU = 0, DEVICE_CUDA = 1 };

/* What changes most often stands first. Whether autocast is on for a device is in the excluded keys as well. */
static const state_row rows[] = {
    {"autograd", AUTOGRAD, 0, AUTOGRAD_SYMBOL, NULL},
    {"grad mode", GRAD, 0, "_ZN3c108GradMode10is_enabledEv", "is_grad_enabled"},
    {"inference mode", CALL_BOOL, 0, "_ZN3c1013InferenceMode10is_enabledEv", "is_inference_mode_enabled"},
    {"included dispatch keys", THREAD_WORD, 0, KEYS_SYMBOL, "_C._dispatch_tls_local_include_set"},
    {"excluded dispatch keys", THREAD_WORD, 1, KEYS_SYMBOL, "_C._dispatch_tls_local_exclude_set"},
    {"torch function modes", CALL_INT, 0, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv",
     "_C._len_torch_function_stack"},
    {"torch function state", CALL_BYTE, 0, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv",
     "_C._is_torch_function_enabled"},
    {"dispatch modes", CALL_INT, 0, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", "_C._len_torch_dispatch_stack"},
    {"deterministic algorithms", CALL_SELF, 0, "_ZNK2at7Context23deterministicAlgorithmsEv",
     "are_deterministic_algorithms_enabled"},
    {"deterministic warn only", CALL_SELF, 0, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv",
     "is_deterministic_algorithms_warn_only_enabled"},
    {"default dtype", CALL_BYTE, 0, "_ZN3c1031get_default_dtype_as_scalartypeEv", "get_default_dtype"},
    {"threads", CALL_INT, 0, "_ZN2at15get_num_threadsEv", "get_num_threads"},
    {"autocast on the CPU", CALL_DEVICE, DEVICE_CPU, AUTOCAST_ENABLED, "is_autocast_cpu_enabled"},
    {"autocast dtype on the CPU", CALL_DEVICE, DEVICE_CPU, AUTOCAST_DTYPE, "get_autocast_cpu_dtype"},
    {"autocast dtype on CUDA", CALL_DEVICE, DEVICE_CUDA, AUTOCAST_DTYPE, "get_autocast_gpu_dtype"},
    {"autocast cache", CALL_BOOL, 0, "_ZN2at8autocast25is_autocast_cache_enabledEv", "is_autocast_cache_enabled"},
};
enum { NROWS = sizeof(rows) / sizeof(rows[0]), GRAD_ROW = 1, INFERENCE_ROW = 2 };

typedef struct {
    uint64_t values[NROWS];
} snapshot;

/* A row that is compared. */
typedef struct {
    void *address;    /* of the function; NULL: by Python */
    PyObject *python; /* strong */
    uint8_t row;
    uint8_t how;
    int argument;
} reader;

static struct {
    int ready;
    uint32_t nreaders;
    reader readers[NROWS];
    void *libraries[3];
    const void *context;    /* at::Context, a static object */
    uint32_t autograd_byte; /* of AutogradState */
    uint8_t autograd_mask;
} state;

/* This thread's dispatch keys: {included, excluded}. The library's variable is thread-local and lives as long as the thread. */
static __thread const uint64_t *thread_keys;

static const char *const library_names[] = {"libc10.so", "libtorch_cpu.so", "libtorch_python.so"};

/* dl_iterate_phdr callback: opens the libraries of torch that are mapped. */
static int
find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    const char *base = strrchr(info->dlpi_name, '/');
    for (size_t i = 0; base != NULL && i < 3; i++) {
        if (state.libraries[i] == NULL && strcmp(base + 1, library_names[i]) == 0) {
            state.libraries[i] = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        }
    }
    return 0;
}

static void *
find_symbol(const char *name)
{
    for (size_t i = 0; i < 3; i++) {
        void *address = state.libraries[i] != NULL ? dlsym(state.libraries[i], name) : NULL;
        if (address != NULL) {
            return address;
        }
    }
    return dlsym(RTLD_DEFAULT, name);
}

static const uint64_t *
keys_of_thread(void)
{
    if (GD_UNLIKELY(thread_keys == NULL)) {
        thread_keys = find_symbol(KEYS_SYMBOL);
    }
    return thread_keys;
}

/* new; NULL with an exception */
static PyObject *
torch_attribute(const char *path)
{
    PyObject *value = PyImport_ImportModule("torch");
    while (value != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        PyObject *name = PyUnicode_FromStringAndSize(path, (Py_ssize_t)length);
        PyObject *next = name != NULL ? PyObject_GetAttr(value, name) : NULL;
        Py_XDECREF(name);
        Py_DECREF(value);
        value = next;
        path += length + (path[length] == '.');
    }
    return value;
}

/* Bit pattern of what a Python function of torch's returns: numbers by value, key sets by raw_repr, dtypes by address. */
static uint64_t
read_python(PyObject *function)
{
    PyObject *result = PyObject_CallNoArgs(function);
    if (result != NULL && !PyLong_Check(result) && PyObject_HasAttrString(result, "raw_repr")) {
        Py_SETREF(result, PyObject_CallMethod(result, "raw_repr", NULL));
    }
    uint64_t value = UINT64_MAX; /* never the value of a working read: such a check then holds while it keeps failing */
    if (result != NULL && PyLong_Check(result)) {
        value = PyLong_AsUnsignedLongLongMask(result);
    } else if (result != NULL) {
        value = (uint64_t)(uintptr_t)result;
    }
    Py_XDECREF(result);
    PyErr_Clear();
    return value;
}

static inline uint64_t
read_value(const reader *r)
{
    switch ((enum how)r->how) {
    case AUTOGRAD:
        return ((const uint8_t *(*)(void))r->address)()[state.autograd_byte] & state.autograd_mask;
    case THREAD_WORD:
        return keys_of_thread()[r->argument];
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
read_row(const reader *r)
{
    return GD_LIKELY(r->python == NULL) ? read_value(r) : read_python(r->python);
}

/* Copies AutogradState as it is inside a context manager of torch's. 0 or -1 with an exception. */
static int
look_under(const char *context, int argument, const uint8_t *bytes, uint8_t *out, size_t n)
{
    PyObject *type = torch_attribute(context);
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

/* Finds the byte of AutogradState that changes with grad mode and inference mode, and which bits of it do. 1 when exactly one
 * does, 0 when not, -1 with an exception. The struct has one byte of flags, behind an optional object in newer versions. */
static int
probe_autograd(const uint8_t *bytes)
{
    enum { SIZE = 32 };
    uint8_t on[SIZE], off[SIZE];
    /* Inference mode switches grad mode off with it; both states are entered, so that the caller's own does not matter. */
    if (look_under("inference_mode", 1, bytes, off, SIZE) < 0 || look_under("inference_mode", 0, bytes, on, SIZE) < 0) {
        return -1;
    }
    int found = 0;
    for (uint32_t i = 0; i < SIZE; i++) {
        if (on[i] != off[i]) {
            found++;
            state.autograd_byte = i;
            state.autograd_mask = on[i] ^ off[i];
        }
    }
    return found == 1 && __builtin_popcount(state.autograd_mask) >= 2;
}

static int
add_reader(uint8_t row, void *address, PyObject *python)
{
    state.readers[state.nreaders++] = (reader){address, python, row, (uint8_t)rows[row].how, rows[row].argument};
    return 0;
}

/* Chooses how a row is read. 0 or -1 with an exception. */
static int
choose(uint8_t row)
{
    const state_row *r = &rows[row];
    void *address = find_symbol(r->symbol);
    if (r->how == AUTOGRAD) {
        if (address == NULL) {
            return 0; /* the two rows after it say the same */
        }
        int found = probe_autograd(((const uint8_t *(*)(void))address)());
        return found > 0 ? add_reader(row, address, NULL) : found;
    }
    if ((row == GRAD_ROW || row == INFERENCE_ROW) && state.nreaders == 1 && state.readers[0].how == AUTOGRAD) {
        return 0;
    }
    if (address != NULL && r->how == CALL_SELF && state.context == NULL) {
        void *get = find_symbol(CONTEXT_SYMBOL);
        state.context = get != NULL ? ((const void *(*)(void))get)() : NULL;
        address = state.context != NULL ? address : NULL;
    }
    if (address != NULL) {
        return add_reader(row, address, NULL);
    }
    PyObject *python = r->python != NULL ? torch_attribute(r->python) : NULL;
    if (python == NULL) {
        PyErr_Clear(); /* this torch has no such state */
        return 0;
    }
    return add_reader(row, NULL, python);
}

int
gd_torch_state_ensure(void)
{
    if (GD_LIKELY(state.ready)) {
        return 0;
    }
    PyObject *torch = PyImport_ImportModule("torch");
    if (torch == NULL) {
        return -1;
    }
    Py_DECREF(torch);
    if (state.ready) {
        return 0; /* another thread was here while the import ran */
    }
    dl_iterate_phdr(find_library, NULL);
    state.nreaders = 0;
    for (uint8_t row = 0; row < NROWS; row++) {
        if (choose(row) < 0) {
            return -1;
        }
    }
    state.ready = 1;
    return 0;
}

void *
gd_torch_state_snapshot(void)
{
    if (gd_torch_state_ensure() < 0) {
        return NULL;
    }
    snapshot *s = PyMem_Calloc(1, sizeof(snapshot));
    if (s == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (uint32_t i = 0; i < state.nreaders; i++) {
        s->values[i] = read_row(&state.readers[i]);
    }
    return s;
}

int
gd_torch_state_equal(const void *taken)
{
    const snapshot *s = taken;
    for (uint32_t i = 0; i < state.nreaders; i++) {
        if (read_row(&state.readers[i]) != s->values[i]) {
            return 0;
        }
    }
    return 1;
}

PyObject *
gd_torch_state_difference(const void *taken)
{
    const snapshot *s = taken;
    for (uint32_t i = 0; i < state.nreaders; i++) {
        uint64_t now = read_row(&state.readers[i]);
        if (now != s->values[i]) {
            return PyUnicode_FromFormat("torch's %s: %llx, was %llx", rows[state.readers[i].row].name,
                                        (unsigned long long)now, (unsigned long long)s->values[i]);
        }
    }
    return NULL;
}

int
gd_torch_grad_enabled(void)
{
    static reader grad;
    if (GD_UNLIKELY(grad.address == NULL && grad.python == NULL)) {
        void *address = find_symbol(rows[GRAD_ROW].symbol);
        grad = (reader){address, address == NULL ? torch_attribute(rows[GRAD_ROW].python) : NULL, GRAD_ROW, GRAD, 0};
        if (grad.address == NULL && grad.python == NULL) {
            PyErr_Clear();
            return -1; /* neither on nor off: the guard fails */
        }
    }
    return (int)read_row(&grad);
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
        PyObject *value = Py_BuildValue("(Ks)", (unsigned long long)read_row(r), r->python != NULL ? "python" : "symbol");
        if (value == NULL || PyDict_SetItemString(dict, rows[r->row].name, value) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}
