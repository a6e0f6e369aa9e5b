/* Groups: equal sequences of operations on small tensors, run operation by operation instead of tensor by tensor.
 *
 * An optimizer does the same dozen operations for each parameter. On small parameters most of their time is spent in
 * calling them. torch._foreach_* functions run one operation for many tensors with the same bits on the CPU. The
 * translator finds such sequences, its units, in the written code (bytecode/translate/codegen_groups.go) and writes one
 * call of a Group in their place.
 *
 *     Group((units, externals, steps))(*values)
 *
 * values: `externals` values for each unit, unit by unit. A step is (kind, name, operands, keyword names):
 *
 *     ("call_method", "mul_", (0, (0.9,)), ())   external 0 of the unit is changed by mul_(0.9)
 *     ("operator", "/", (~2, 1), ())             the result of step 2 divided by external 1
 *     ("operator", "neg", (~5,), ())
 *
 * An operand is the index of an external, the complement of a step's index, or a tuple with a constant.
 *
 * A unit on small tensors runs on their memory (calls/group_small.h), in the order of the program. Whether the
 * operations of other units may change places is decided at each call: grad mode is off, nothing records operators; all
 * tensors are small, plain, dense, of torch's own classes, of single or double precision and on the CPU; each
 * operation's tensors have one dtype and shape; and no tensor that is changed shares memory with another one. If not,
 * the units run one after the other, as in the program. Signals are handled where CPython handles them, except between
 * the operations of a unit on small tensors, and of units that run together. */
#ifndef GD_GROUP_H
#define GD_GROUP_H

#include "pycompat.h"

/* Adds the type Group to the module. Returns 0 or -1. */
int gd_group_init(PyObject *module);

#endif
