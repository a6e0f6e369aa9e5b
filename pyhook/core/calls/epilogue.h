/* Epilogues: an operation that computes element by element, in the memory of the tensor that it is the last to read.
 *
 * Calling an operation of torch takes a microsecond or two. For a small tensor, the numbers themselves take a few
 * nanoseconds. If an operand is a tensor that another operation has just made, and nothing reads it afterwards, its
 * memory can hold the result. The translator finds such operations (bytecode/translate/codegen_epilogues.go).
 *
 *     Epilogue((externals, (step,)))(fresh, *others)     returns the result
 *
 * The step is that of a Group (calls/group.h) and changes nothing in place. Its operands are the values that are
 * passed, fresh first, and constants. ("call_function", "relu", (0,), ()) is torch.relu(fresh).
 *
 * A call decides whether anything could tell that torch is not called, as a Group does for a unit on small tensors
 * (calls/group_small.h). If so, it calls the operation. */
#ifndef GD_EPILOGUE_H
#define GD_EPILOGUE_H

#include "pycompat.h"

/* Adds the type Epilogue to the module. Returns 0 or -1. */
int gd_epilogue_init(PyObject *module);

#endif
