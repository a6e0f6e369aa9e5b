/* Implements torch/kernels.h: loops that the compiler vectorizes, and which variant of each has torch's bits. */
#include "torch/kernels.h"

#include <math.h>
#include <string.h>

#include "interrupt.h"
#include "runtime.h"
#include "torch/replaced_operators.h"
#include "torch/torch_symbols.h"

/* ---- loops ---- */

/* At -O2, gcc vectorizes only loops whose length it knows. The build's -ffp-contract=off keeps products apart. */
#if defined(__GNUC__) && !defined(__clang__)
#    define FAST __attribute__((optimize("O3", "no-math-errno")))
#    define NO_DEPENDENCE _Pragma("GCC ivdep")
#else
#    define FAST
#    define NO_DEPENDENCE
#endif
#if defined(__x86_64__)
#    define PLAIN_TARGET __attribute__((target("avx2")))
#    define FUSED_TARGET __attribute__((target("avx2,fma")))
#    define SERVED() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#    define PLAIN_TARGET
#    define FUSED_TARGET
#    define SERVED() 1
#endif

#define CASE(name, number, value) \
    case GD_KERNEL_##name: \
        NO_DEPENDENCE \
        for (size_t i = from; i < to; i++) { \
            out[i] = value; \
        } \
        break;

/* Defines a function that computes the elements from `from` to `to`. */
#define LOOPS(name, type, target) \
    FAST target static void name(const gd_kernel_call *call, size_t from, size_t to) \
    { \
        type *out = call->out; \
        const type *a = call->a, *b = call->b, *c = call->c; \
        const type s = (type)call->number; \
        switch (call->kernel) { \
            GD_KERNELS(CASE) \
        default: \
            break; \
        } \
    }

#define SQUARE_ROOT sqrtf
#define ABSOLUTE fabsf
#define MADD(x, y, z) ((x) * (y) + (z))
LOOPS(plain_float, float, PLAIN_TARGET)
#undef MADD
#define MADD fmaf
LOOPS(fused_float, float, FUSED_TARGET)
#undef MADD
#undef SQUARE_ROOT
#undef ABSOLUTE

#define SQUARE_ROOT sqrt
#define ABSOLUTE fabs
#define MADD(x, y, z) ((x) * (y) + (z))
LOOPS(plain_double, double, PLAIN_TARGET)
#undef MADD
#define MADD fma
LOOPS(fused_double, double, FUSED_TARGET)
#undef MADD
#undef SQUARE_ROOT
#undef ABSOLUTE

#define NAN_LOOP(name, type, bits) \
    FAST PLAIN_TARGET static int name(const type *data, size_t n) \
    { \
        bits found = 0; \
        for (size_t i = 0; i < n; i++) { \
            found |= -(bits)(data[i] != data[i]); \
        } \
        return found != 0; \
    }
NAN_LOOP(nan_float, float, uint32_t)
NAN_LOOP(nan_double, double, uint64_t)

int
gd_kernel_nan(const char *data, size_t n, int is_double)
{
    return is_double ? nan_double((const double *)data, n) : nan_float((const float *)data, n);
}

/* ---- variants ---- */

/* A sum of a product is rounded once if it is fused. The first elements, as many as fill blocks, are computed by
 * torch's vectorized loop, the others one by one. */
typedef struct {
    unsigned char fused, fused_rest;
    unsigned short block; /* elements; 0: the square root of the library that torch contains */
} variant;

static const variant variants[] = {
    {0, 0, 1}, {1, 1, 1}, {1, 0, 4},  {1, 0, 8},  {1, 0, 16}, {1, 0, 32},  {1, 0, 64}, {1, 0, 128},
    {0, 1, 4}, {0, 1, 8}, {0, 1, 16}, {0, 1, 32}, {0, 1, 64}, {0, 1, 128}, {0, 0, 0},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

/* Computes square roots with MKL, whose last bit is not always IEEE's, in torch's mode. Returns 0 if this torch has no
 * MKL. */
static int
mkl_square_roots(const gd_kernel_call *call)
{
    typedef void (*roots)(const int64_t *n, const void *a, void *out, const int64_t *mode);
    static int looked_for;
    static roots of_floats, of_doubles;
    if (!looked_for) {
        void *found[] = {gd_torch_symbol("VMSSQRT_"), gd_torch_symbol("VMDSQRT_")};
        memcpy(&of_floats, &found[0], sizeof of_floats);
        memcpy(&of_doubles, &found[1], sizeof of_doubles);
        looked_for = 1;
    }
    roots f = call->is_double ? of_doubles : of_floats;
    if (call->kernel != GD_KERNEL_SQRT || f == NULL) {
        return 0;
    }
    const int64_t n = (int64_t)call->n, mode = 2 | 0x140000 | 0x100; /* VML_HA, VML_FTZDAZ_OFF, VML_ERRMODE_IGNORE */
    f(&n, call->a, call->out, &mode);
    return 1;
}

/* Returns 0 if this torch or the kernel lacks the variant, and nothing is computed. */
static int
compute(const gd_kernel_call *call, const variant *v)
{
    if (v->block == 0) {
        return mkl_square_roots(call);
    }
    size_t blocks = call->n - call->n % v->block;
    void (*plain)(const gd_kernel_call *, size_t, size_t) = call->is_double ? plain_double : plain_float;
    void (*fused)(const gd_kernel_call *, size_t, size_t) = call->is_double ? fused_double : fused_float;
    (v->fused ? fused : plain)(call, 0, blocks);
    (v->fused_rest ? fused : plain)(call, blocks, call->n);
    return 1;
}

#define ROW(name, number, value) {#name, number},

static const struct {
    const char *name;
    int number;
} kernels[] = {GD_KERNELS(ROW)};

/* ---- which variant has torch's bits ---- */

/* By kernel, type and whether the number is 1, which torch's loops may treat apart: 0 not known yet, -1 none, or the
 * variant's index plus 1. */
static signed char known[GD_KERNEL_COUNT][2][2];

/* Has godynamo._called.kernels compare the variants with torch. Returns as `known`. Leaves the exception as it is. */
static signed char
search(gd_kernel kernel, int is_double, int one)
{
    PyObject *type, *value, *traceback, *module, *found = NULL;
    long index = -1;
    PyErr_Fetch(&type, &value, &traceback);
    int held = gd_hold_signals();
    module = gd_import("godynamo._called.kernels");
    if (module != NULL) {
        found = PyObject_CallMethod(module, "search", "siii", kernels[kernel].name, is_double, one, (int)VARIANTS);
    }
    if (found != NULL && PyLong_Check(found)) {
        index = PyLong_AsLong(found);
    }
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(found);
    gd_release_signals(held);
    PyErr_Restore(type, value, traceback);
    return index >= 0 && index < VARIANTS ? (signed char)(index + 1) : -1;
}

static int unused; /* a test has switched the kernels off */

static signed char *
known_of(const gd_kernel_call *call)
{
    return &known[call->kernel][call->is_double][kernels[call->kernel].number && call->number == 1];
}

int
gd_kernel_find(const gd_kernel_call *call)
{
    signed char *entry = known_of(call);
    if (GD_LIKELY(*entry != 0)) {
        return 0;
    }
    *entry = search(call->kernel, call->is_double, call->number == 1);
    return 1;
}

int
gd_kernels_in_use(void)
{
    return !unused && SERVED() && !gd_operators_replaced();
}

int
gd_kernel_run(const gd_kernel_call *call)
{
    signed char entry = *known_of(call);
    if (entry <= 0) {
        return 0;
    }
    return compute(call, &variants[entry - 1]);
}

/* ---- for Python: these functions return new references, or NULL with an exception set ---- */

static int
same_bits(const char *a, const char *b, size_t n, int is_double)
{
    for (size_t i = 0; i < n; i++, a += is_double ? 8 : 4, b += is_double ? 8 : 4) {
        if (memcmp(a, b, is_double ? 8 : 4) != 0
            && !(is_double ? isnan(*(const double *)a) && isnan(*(const double *)b)
                           : isnan(*(const float *)a) && isnan(*(const float *)b))) {
            return 0;
        }
    }
    return 1;
}

/* kernel_agrees(name, variant, is_double, n, a, b, c, number, want): the tensors are addresses of their memory */
static PyObject *
kernel_agrees(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    int index;
    unsigned long long a, b, c, want;
    gd_kernel_call call = {.kernel = GD_KERNEL_COUNT};
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "sipnKKKdK", &name, &index, &call.is_double, &n, &a, &b, &c, &call.number, &want)) {
        return NULL;
    }
    for (int i = 0; i < GD_KERNEL_COUNT; i++) {
        if (strcmp(kernels[i].name, name) == 0) {
            call.kernel = (gd_kernel)i;
        }
    }
    if (call.kernel == GD_KERNEL_COUNT || index < 0 || index >= VARIANTS || n < 0 || n > 1 << 20) {
        return PyErr_Format(PyExc_ValueError, "no such kernel, variant or length: %s, %d, %zd", name, index, n);
    }
    call.n = (size_t)n;
    call.a = (const void *)(uintptr_t)a;
    call.b = (const void *)(uintptr_t)b;
    call.c = (const void *)(uintptr_t)c;
    char *memory = PyMem_Malloc(call.n * sizeof(double) + GD_KERNEL_ALIGNMENT);
    if (memory == NULL) {
        return PyErr_NoMemory();
    }
    call.out = gd_kernel_align(memory);
    int same = SERVED() && compute(&call, &variants[index])
               && same_bits(call.out, (const char *)(uintptr_t)want, call.n, call.is_double);
    PyMem_Free(memory);
    return PyBool_FromLong(same);
}

/* For tests: with False, no kernel is used. */
static PyObject *
kernels_use(PyObject *module, PyObject *flag)
{
    (void)module;
    unused = PyObject_IsTrue(flag) <= 0;
    return PyBool_FromLong(gd_kernels_in_use());
}

static PyMethodDef functions[] = {
    {"kernel_agrees", kernel_agrees, METH_VARARGS,
     "kernel_agrees(name, variant, is_double, n, a, b, c, number, want) -> bool\n\n"
     "Whether a variant of a kernel computes the n elements at `want` from those at a, b and c, which are addresses."},
    {"_kernels_use", kernels_use, METH_O,
     "Tests: switch the kernels off and on. Returns whether they are used; some processors do not serve them."},
    {NULL, NULL, 0, NULL},
};

int
gd_kernels_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
