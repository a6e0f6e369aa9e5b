/* CPython 3.12 to 3.14: facts about their opcodes. */
#ifndef GD_PYCOMMON_OPCODES_H
#define GD_PYCOMMON_OPCODES_H

#include <opcode.h>

/* Reports whether the opcode jumps backwards and checks for signals. */
static inline int
gd_py_jumps_back(int op)
{
    return op == JUMP_BACKWARD;
}

/* An exception that such a check raises reaches the handler of the jump's target. The jump itself may have none, since
 * the compiler adds it after it has computed the handlers. */
#define GD_PY_CHECKS_AFTER_JUMP 1

/* Reports whether the opcode is a call, after which CPython checks for signals. */
static inline int
gd_py_calls(int op)
{
#ifdef CALL_KW /* 3.13 */
    if (op == CALL_KW) {
        return 1;
    }
#endif
    return op == CALL || op == CALL_FUNCTION_EX;
}

/* Reports whether the instruction applies unary plus. */
static inline int
gd_py_is_positive(int op, int arg)
{
    return op == CALL_INTRINSIC_1 && arg == 5; /* INTRINSIC_UNARY_POSITIVE of pycore_intrinsics.h */
}

/* Reports whether a BINARY_OP is a subscript, as in 3.14. */
static inline int
gd_py_subscripts(int op, int arg)
{
#ifdef NB_SUBSCR
    return op == BINARY_OP && arg == NB_SUBSCR;
#else
    (void)op, (void)arg;
    return 0;
#endif
}

/* Reports whether the opcode reads or writes a slice whose bounds are on the stack, above the container. */
static inline int
gd_py_slices(int op)
{
    return op == BINARY_SLICE || op == STORE_SLICE;
}

/* Returns the index of the name that LOAD_ATTR reads, or -1 if it loads a method for a call. */
static inline int
gd_py_attribute_name(int arg)
{
    return arg & 1 ? -1 : arg >> 1;
}

/* Reports whether an opcode that other versions lack never checks for signals, and releases no object. */
static inline int
gd_py_is_quiet_here(int op)
{
    switch (op) {
#ifdef LOAD_FAST_LOAD_FAST /* 3.13 */
    case LOAD_FAST_LOAD_FAST:
    case SET_FUNCTION_ATTRIBUTE:
#else
    case KW_NAMES:
    case LOAD_CLOSURE:
#endif
#ifdef LOAD_FAST_BORROW /* 3.14 */
    case LOAD_FAST_BORROW:
    case LOAD_FAST_BORROW_LOAD_FAST_BORROW:
    case LOAD_SMALL_INT:
    case LOAD_COMMON_CONSTANT:
    case NOT_TAKEN:
#else
    case RETURN_CONST:
#endif
    case LOAD_FAST_CHECK:
    case LOAD_FAST_AND_CLEAR:
        return 1;
    default:
        return 0;
    }
}

/* Returns the index of the name that the instruction loads as a method for a call, or -1. */
static inline int
gd_py_method_name(int op, int arg)
{
    return op == LOAD_ATTR && (arg & 1) ? arg >> 1 : -1;
}

#endif
