/* torch's element-wise operations on small dense tensors, computed in C: calling torch takes much longer than a few
 * hundred elements (bench/run.py, step_adamw).
 *
 * A kernel has torch's bits or is not used. A sum of a product may be rounded once or twice, and torch's vectorized
 * loops and the elements that are left over may differ in that. godynamo._called.kernels finds out, once in a process
 * for each operation, which variant computes what torch computes. */
#ifndef GD_KERNELS_H
#define GD_KERNELS_H

#include "pycompat.h"

/* X(name, whether a number is read, value of an element); s is the number. MADD(x, y, z) is x * y + z. `lerp` counts
 * from the nearer end, as torch does. */
#define GD_KERNELS(X) \
    X(ADD_SCALED, 1, MADD(b[i], s, a[i])) \
    X(ADD_NUMBER, 1, a[i] + s) \
    X(MUL, 0, a[i] * b[i]) \
    X(MUL_NUMBER, 1, a[i] * s) \
    X(DIV, 0, a[i] / b[i]) \
    X(DIV_NUMBER, 1, a[i] / s) \
    X(ADDCMUL, 1, MADD((s * b[i]), c[i], a[i])) \
    X(ADDCDIV, 1, a[i] + s * b[i] / c[i]) \
    X(LERP_NEAR, 1, MADD(s, b[i] - a[i], a[i])) \
    X(LERP_FAR, 1, MADD(s - 1, b[i] - a[i], b[i])) \
    X(SQRT, 0, SQUARE_ROOT(a[i])) \
    X(NEG, 0, -a[i]) \
    X(ABS, 0, ABSOLUTE(a[i])) \
    X(RECIPROCAL, 0, 1 / a[i]) \
    X(RELU, 0, a[i] < 0 ? 0 : a[i]) \
    X(COPY, 0, a[i])

#define GD_KERNEL_NAME(name, number, value) GD_KERNEL_##name,
typedef enum { GD_KERNELS(GD_KERNEL_NAME) GD_KERNEL_COUNT } gd_kernel;
#undef GD_KERNEL_NAME

/* All memory begins where torch's allocator would begin it: MKL may compute elements before and after such a place
 * in different ways. */
enum { GD_KERNEL_ALIGNMENT = 64 };

static inline char *
gd_kernel_align(char *memory)
{
    return memory + (-(uintptr_t)memory & (GD_KERNEL_ALIGNMENT - 1));
}

typedef struct {
    gd_kernel kernel;
    int is_double; /* elements are double, or else float */
    size_t n; /* elements */
    void *out; /* may be one of the operands, but not overlap one otherwise */
    const void *a, *b, *c; /* those that the kernel reads */
    double number; /* rounded to the type of the elements */
} gd_kernel_call;

/* Reports whether this processor serves the kernels, the program has not replaced torch's operators, and no test has
 * switched the kernels off. */
int gd_kernels_in_use(void);

/* Finds out which variant the call needs, if that is not known yet, by running torch's operation on samples. Grad mode
 * must be off, and no mode active. Returns whether other code may have run meanwhile. Raises nothing. */
int gd_kernel_find(const gd_kernel_call *call);

/* Reports whether one of n elements is NaN. Which of two NaNs an operation returns (they differ in sign and payload)
 * depends on the order of operands in the compiled loop, so kernels compute with at most one kind of NaN. */
int gd_kernel_nan(const char *data, size_t n, int is_double);

/* Computes the call after gd_kernel_find. Returns 1, or 0 if no variant has torch's bits, and nothing is computed. */
int gd_kernel_run(const gd_kernel_call *call);

/* Adds functions for the search and for tests. Returns 0, or -1 with an exception set. */
int gd_kernels_init(PyObject *module);

#endif
