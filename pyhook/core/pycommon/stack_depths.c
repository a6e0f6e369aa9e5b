/* CPython 3.12 and 3.13: how deep the stack is at each instruction. While the eval loop reports an instruction to trace
 * functions, the frame's stacktop is not set, so a trace function that looks at operands needs the depth from the code
 * itself. */
#include "pycompat.h"

#include <string.h>

#if PY_VERSION_HEX >= 0x030C0000

typedef struct {
    const unsigned char *units;
    int n;
    int16_t *depths; /* depth before each unit; -1: not reached so far */
    int *todo; /* units whose depth is new */
    int ntodo;
} walk;

/* Notes the depth at a unit. Where paths meet, CPython's compiler has made their depths equal. */
static void
reach(walk *w, int unit, int depth)
{
    if (unit >= 0 && unit < w->n && depth >= 0 && w->depths[unit] < 0) {
        w->depths[unit] = (int16_t)depth;
        w->todo[w->ntodo++] = unit;
    }
}

/* Returns the unit to which a jump leads, or -1 if the instruction is no jump. next: the unit after the instruction. */
static int
jump_target(int op, int arg, int next)
{
    switch (op) {
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
        return next - arg;
    case JUMP_FORWARD:
    case FOR_ITER:
    case SEND:
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
        return next + arg;
    default:
        return -1;
    }
}

static int
ends(int op)
{
#    ifdef RETURN_CONST /* not in 3.14 */
    if (op == RETURN_CONST) {
        return 1;
    }
#    endif
    return op == JUMP_BACKWARD || op == JUMP_BACKWARD_NO_INTERRUPT || op == JUMP_FORWARD || op == RETURN_VALUE
           || op == RAISE_VARARGS || op == RERAISE || op == INTERPRETER_EXIT;
}

/* Follows the instruction at a unit. */
static void
follow(walk *w, int unit)
{
    int depth = w->depths[unit], arg = w->units[2 * unit + 1];
    while (w->units[2 * unit] == EXTENDED_ARG && unit + 1 < w->n) {
        unit++;
        w->depths[unit] = (int16_t)depth;
        arg = arg << 8 | w->units[2 * unit + 1];
    }
    int op = w->units[2 * unit], next = unit + 1;
    while (next < w->n && w->units[2 * next] == CACHE) {
        next++;
    }
    int has_arg = op >= HAVE_ARGUMENT, target = jump_target(op, arg, next);
    if (target >= 0) {
        reach(w, target, depth + PyCompile_OpcodeStackEffectWithJump(op, arg, 1));
    }
    if (!ends(op)) {
        int effect = PyCompile_OpcodeStackEffectWithJump(op, has_arg ? arg : 0, 0);
        if (op == RETURN_GENERATOR) {
            effect = 1; /* what follows runs with the value that is sent first; 3.12 does not count it */
        }
        reach(w, next, effect == PY_INVALID_STACK_EFFECT ? -1 : depth + effect);
    }
}

/* Reads a number from an exception table and advances *p. */
static int
read_number(const unsigned char **p)
{
    int b = *(*p)++, value = b & 63;
    while (b & 64) {
        b = *(*p)++;
        value = value << 6 | (b & 63);
    }
    return value;
}

/* Reaches the handlers: at each the stack has the depth that its row names, the instruction if the row says so, and the
 * exception. */
static void
reach_handlers(walk *w, PyCodeObject *code)
{
    const unsigned char *p = (const unsigned char *)PyBytes_AS_STRING(code->co_exceptiontable);
    const unsigned char *end = p + PyBytes_GET_SIZE(code->co_exceptiontable);
    while (p < end) {
        (void)read_number(&p);
        (void)read_number(&p);
        int target = read_number(&p), depth = read_number(&p);
        reach(w, target, (depth >> 1) + (depth & 1) + 1);
    }
}

int16_t *
gd_py_stack_depths(PyCodeObject *code, PyObject *bytes)
{
    int n = (int)(PyBytes_GET_SIZE(bytes) / 2);
    walk w = {.units = (const unsigned char *)PyBytes_AS_STRING(bytes), .n = n};
    w.depths = PyMem_Malloc((size_t)(n + 1) * sizeof(*w.depths));
    w.todo = PyMem_Malloc((size_t)(n + 1) * sizeof(*w.todo));
    if (w.depths == NULL || w.todo == NULL) {
        PyMem_Free(w.depths);
        PyMem_Free(w.todo);
        return NULL;
    }
    memset(w.depths, -1, (size_t)n * sizeof(*w.depths));
    reach(&w, 0, 0);
    reach_handlers(&w, code);
    while (w.ntodo > 0) {
        follow(&w, w.todo[--w.ntodo]);
    }
    PyMem_Free(w.todo);
    return w.depths;
}

#endif
