/* CPython 3.12: facts about its opcodes. */
#ifndef GD_PY312_OPCODES_H
#define GD_PY312_OPCODES_H

#include <opcode.h>

/* Reports whether the opcode jumps backwards and first checks for signals. */
static inline int
gd_py_jumps_back(int op)
{
    return op == JUMP_BACKWARD;
}

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
