/* Epilogues: operations element by element on the result of another operation, without a tensor for each result.
 *
 * Calling an operation of torch takes a microsecond or two. For a small tensor, the numbers themselves take a few
 * nanoseconds. If the first operand is a tensor that an operation has just made, and nothing reads it afterwards, its
 * memory can hold the result. The translator finds such sequences (bytecode/translate/codegen_epilogues.go).
 *
 *     Epilogue(steps)(fresh)     returns the result of the last step
 *
 * Steps are those of a Group (calls/group.h). Their operands are the tensor, external 0, results of earlier steps and
 * constants, and they change nothing in place. They can raise only if memory is out.
 *
 * A call decides whether anything could tell that torch is not called, as a Group does for a unit on small tensors
 * (calls/group_small.h). If so, it calls the operations one by one, and handles signals after each. */
#ifndef GD_EPILOGUE_H
#define GD_EPILOGUE_H

#include "pycompat.h"

/* Adds the type Epilogue to the module. Returns 0 or -1. */
int gd_epilogue_init(PyObject *module);

#endif
