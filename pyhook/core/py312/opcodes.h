/* CPython 3.12: facts about its opcodes. */
#ifndef GD_PY312_OPCODES_H
#define GD_PY312_OPCODES_H

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

/* Reports whether the instruction applies unary plus. */
static inline int
gd_py_is_positive(int op, int arg)
{
    return op == CALL_INTRINSIC_1 && arg == 5; /* INTRINSIC_UNARY_POSITIVE of pycore_intrinsics.h */
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

#endif
