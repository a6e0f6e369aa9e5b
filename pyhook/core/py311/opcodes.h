/* CPython 3.11: facts about its opcodes. */
#ifndef GD_PY311_OPCODES_H
#define GD_PY311_OPCODES_H

#include <opcode.h>

/* Reports whether the opcode jumps backwards and checks for signals. */
static inline int
gd_py_jumps_back(int op)
{
    switch (op) {
    case JUMP_BACKWARD:
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
        return 1;
    default:
        return 0;
    }
}

/* An exception that such a check raises reaches the handler of the jump. */
#define GD_PY_CHECKS_AFTER_JUMP 0

/* Reports whether the opcode is a call, after which CPython checks for signals. */
static inline int
gd_py_calls(int op)
{
    return op == CALL || op == CALL_FUNCTION_EX;
}

/* Reports whether the instruction applies unary plus. */
static inline int
gd_py_is_positive(int op, int Py_UNUSED(arg))
{
    return op == UNARY_POSITIVE;
}

/* Reports whether a BINARY_OP is a subscript. 3.11 has an opcode of its own. */
static inline int
gd_py_subscripts(int Py_UNUSED(op), int Py_UNUSED(arg))
{
    return 0;
}

/* Reports whether the opcode reads or writes a slice whose bounds are on the stack, above the container. */
static inline int
gd_py_slices(int Py_UNUSED(op))
{
    return 0;
}

/* Returns the index of the name that LOAD_ATTR reads, or -1 if it loads a method for a call. */
static inline int
gd_py_attribute_name(int arg)
{
    return arg;
}

/* Reports whether an opcode that other versions lack never checks for signals, and releases no object. */
static inline int
gd_py_is_quiet_here(int op)
{
    return op == PRECALL || op == KW_NAMES || op == LOAD_CLOSURE;
}

/* Returns the index of the name that the instruction loads as a method for a call, or -1. */
static inline int
gd_py_method_name(int op, int arg)
{
    return op == LOAD_METHOD ? arg : -1;
}

#endif
