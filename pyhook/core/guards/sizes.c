/* Conditions on sizes and ints, and sizes as Python ints. */
#include "guards/sizes.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "torch/tensor_layout.h"

/* Reads a tensor's size or stride from its C++ object. The TENSORS node has checked that the tensor is dense and
 * has the dimension. */
static inline int64_t
number_at(PyObject *tensor, size_t at)
{
    return *(const int64_t *)(gd_tensor_impl(tensor) + at);
}

/* Stores the value of an exact int and returns 1. Returns 0 for any other object, or if it does not fit. */
static inline int
int_value(PyObject *v, int64_t *value)
{
    int overflow;
    if (!PyLong_CheckExact(v)) {
        return 0;
    }
    *value = PyLong_AsLongLongAndOverflow(v, &overflow);
    return !overflow;
}

/* Stores a // b, as Python computes it, and returns 1. Returns 0 if there is no such int64. */
static inline int
floor_divide(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0 || (b == -1 && a == INT64_MIN)) {
        return 0;
    }
    *out = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return 1;
}

/* Stores a % b, as Python computes it, and returns 1. Returns 0 for a zero divisor. */
static inline int
modulo(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0) {
        return 0;
    }
    int64_t rest = b == -1 ? 0 : a % b;
    *out = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    return 1;
}

/* Floats are stored as the int64 of their bits. */
static inline double
float_of(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline int
store_float(double x, int64_t *out)
{
    memcpy(out, &x, sizeof(x));
    return 1;
}

/* All ints up to this one are floats exactly. */
#define EXACT ((int64_t)1 << 53)

/* Stores a rounded float as an int and returns 1. Returns 0 for a NaN, an infinity or a large number. */
static inline int
store_int(double x, int64_t *out)
{
    if (!(x >= -(double)EXACT && x <= (double)EXACT)) {
        return 0;
    }
    *out = (int64_t)x;
    return 1;
}

/* Stores x ** y, as Python computes it for a float x that is not negative, and returns 1. Returns 0 if the result is
 * too large or too small for a float of full precision. */
static int
power(double x, double y, int64_t *out)
{
    double r = x == 0 ? 0.0 : pow(x, y);
    return (x == 0 ? y > 0 : x > 0 && r >= DBL_MIN && r <= DBL_MAX) && store_float(r, out);
}

static __attribute__((noinline)) int
apply_to_floats(int op, int64_t a, int64_t b, int64_t *out)
{
    double x = float_of(a), y = float_of(b);
    switch (op) {
    case GD_SIZE_FADD:
        return store_float(x + y, out);
    case GD_SIZE_FSUB:
        return store_float(x - y, out);
    case GD_SIZE_FMUL:
        return store_float(x * y, out);
    case GD_SIZE_FDIV:
        return y != 0 && store_float(x / y, out);
    case GD_SIZE_FMAX:
        return store_float(y > x ? y : x, out);
    case GD_SIZE_FMIN:
        return store_float(y < x ? y : x, out);
    case GD_SIZE_FPOW:
        return power(x, y, out);
    case GD_SIZE_FLT:
        *out = x < y;
        return 1;
    case GD_SIZE_FLE:
        *out = x <= y;
        return 1;
    case GD_SIZE_FEQ:
        *out = x == y;
        return 1;
    case GD_SIZE_FLOAT:
        return a >= -EXACT && a <= EXACT && store_float((double)a, out);
    case GD_SIZE_SQRT:
        return x >= 0 && store_float(sqrt(x), out);
    case GD_SIZE_FLOOR:
        return store_int(floor(x), out);
    case GD_SIZE_CEIL:
        return store_int(ceil(x), out);
    case GD_SIZE_TRUNC:
        return store_int(trunc(x), out);
    case GD_SIZE_ROUND:
        return store_int(rint(x), out); /* half to even, as the rounding mode is never changed */
    default:
        return 0;
    }
}

static inline int
apply(int op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case GD_SIZE_ADD:
        return !__builtin_add_overflow(a, b, out);
    case GD_SIZE_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case GD_SIZE_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case GD_SIZE_FLOORDIV:
        return floor_divide(a, b, out);
    case GD_SIZE_MOD:
        return modulo(a, b, out);
    case GD_SIZE_MAX:
        *out = a > b ? a : b;
        return 1;
    case GD_SIZE_MIN:
        *out = a < b ? a : b;
        return 1;
    default:
        return apply_to_floats(op, a, b, out);
    }
}

/* Stores what a load or a constant yields (see gd_size_value) and returns 1. Returns 0 if an int does not fit. */
static inline int
operand(const gd_size_step *s, PyObject **regs, int64_t *value)
{
    if (s->op == GD_SIZE_CONST || regs == NULL) {
        *value = s->n;
        return 1;
    }
    if (GD_UNLIKELY(s->op == GD_SIZE_INT)) {
        return int_value(regs[s->reg], value);
    }
    *value = number_at(regs[s->reg], s->at);
    return 1;
}

/* Runs n steps on an empty stack. gd_entry_new has verified that the stack is large enough and never empty.
 * Returns 0 if a step has no value. */
static inline __attribute__((always_inline)) int
run(const gd_size_step *steps, uint32_t n, PyObject **regs, int64_t *stack)
{
    int64_t *top = stack; /* the place of the next value */
    for (const gd_size_step *s = steps, *end = s + n; s < end; s++) {
        if (GD_LIKELY(s->op < GD_SIZE_ADD)) {
            if (!operand(s, regs, top++)) {
                return 0;
            }
        }
        else {
            int64_t right = s->op < GD_SIZE_FLOAT ? *--top : 0; /* the others have one operand */
            if (GD_UNLIKELY(!apply((int)s->op, top[-1], right, &top[-1]))) {
                return 0;
            }
        }
    }
    return 1;
}

/* For each relation, the outcomes of a comparison for which it holds: bit 0 for less, 1 for equal, 2 for greater. */
static const uint8_t holds_for[] = {
    [GD_SIZE_EQ] = 2, [GD_SIZE_NE] = 5, [GD_SIZE_GE] = 6, [GD_SIZE_GT] = 4, [GD_SIZE_LE] = 3, [GD_SIZE_LT] = 1,
};

static inline int
related(const gd_size_step *relation, int64_t left, int64_t right)
{
    return holds_for[relation->op] >> (1 + (left > right) - (left < right)) & 1;
}

static __attribute__((noinline)) int
long_condition_holds(const gd_size_step *steps, uint32_t n, PyObject **regs)
{
    int64_t stack[GD_SIZE_STACK];
    return run(steps, n - 1, regs, stack) && related(steps + n - 1, stack[0], stack[1]);
}

static inline int
condition_holds(const gd_size_step *steps, uint32_t n, PyObject **regs)
{
    if (GD_UNLIKELY(n > 3)) {
        return long_condition_holds(steps, n, regs);
    }
    int64_t left, right; /* most conditions compare two operands */
    return operand(steps, regs, &left) && operand(steps + 1, regs, &right) && related(steps + 2, left, right);
}

PyObject *
gd_kept_int_of(gd_kept_int *kept, int64_t value)
{
    if (GD_LIKELY(kept->object != NULL && kept->value == value)) {
        return kept->object;
    }
    PyObject *made = PyLong_FromLongLong(value);
    if (made == NULL) {
        PyErr_Clear();
        return NULL;
    }
    kept->value = value;
    Py_XSETREF(kept->object, made);
    return made;
}

/* Conditions with fewer steps for each input are computed: most take three steps and as long as a comparison. */
enum { STEPS_PER_INPUT = 6 };

int
gd_size_inputs_list(gd_GuardedCode *e, uint32_t nsteps)
{
    gd_size_input *inputs = PyMem_Calloc(nsteps / STEPS_PER_INPUT + 1, sizeof(gd_size_input));
    if (inputs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < nsteps; i++) {
        const gd_size_step *s = &e->sizes[i];
        if (s->op != GD_SIZE_SIZE && s->op != GD_SIZE_STRIDE && s->op != GD_SIZE_INT) {
            continue;
        }
        uint32_t k = 0;
        while (k < n && (inputs[k].step.reg != s->reg || inputs[k].step.at != s->at)) {
            k++;
        }
        if (k == n && ++n > nsteps / STEPS_PER_INPUT) {
            PyMem_Free(inputs);
            return 0;
        }
        inputs[k].step = *s;
    }
    e->inputs = inputs;
    e->ninputs = n;
    return 0;
}

/* Reports whether the conditions read the same numbers as when they last held. */
static inline int
inputs_same(const gd_GuardedCode *e, PyObject **regs)
{
    int64_t value;
    for (const gd_size_input *in = e->inputs, *end = in + e->ninputs; in < end; in++) {
        if (!operand(&in->step, regs, &value) || value != in->held) {
            return 0;
        }
    }
    return e->inputs_held;
}

static void
keep_inputs(gd_GuardedCode *e, PyObject **regs)
{
    e->inputs_held = 1;
    for (gd_size_input *in = e->inputs, *end = in + e->ninputs; in < end; in++) {
        e->inputs_held &= operand(&in->step, regs, &in->held);
    }
}

int
gd_late_nodes_hold(gd_GuardedCode *e, const gd_guard_node *nodes, int n, PyObject **regs)
{
    int same = e->inputs != NULL && inputs_same(e, regs);
    for (int i = 0; i < n; i++) {
        const gd_guard_node *node = &nodes[i];
        if (GD_LIKELY(node->op == GD_OP_SHAPE_ENV)) {
            if (GD_UNLIKELY(!same && !condition_holds(e->sizes + node->a, node->b, regs))) {
                return i;
            }
            continue;
        }
        size_t first = node->op == GD_OP_TENSOR_SIZE ? gd_tensor_layout.sizes : gd_tensor_layout.strides;
        int64_t value = number_at(regs[node->src], first + node->a * sizeof(int64_t));
        PyObject *made = gd_kept_int_of(&e->kept[node->b], value);
        if (GD_UNLIKELY(made == NULL)) {
            return i;
        }
        regs[node->dst] = made;
    }
    if (GD_UNLIKELY(e->inputs != NULL && !same)) {
        keep_inputs(e, regs);
    }
    return n;
}

int
gd_size_value(const gd_size_step *steps, uint32_t n, PyObject **regs, int64_t *value)
{
    int64_t stack[GD_SIZE_STACK];
    if (n == 0 || !run(steps, n, regs, stack)) {
        return 0;
    }
    *value = stack[0];
    return 1;
}

uint32_t
gd_size_right_side(const gd_size_step *steps, uint32_t n)
{
    uint32_t i = n - 1;
    for (int missing = 1; missing > 0; i--) {
        missing += gd_size_step_takes((int)steps[i - 1].op) - 1;
    }
    return i;
}
