/* Kernels that a program registers for torch's own operators (torch.library.impl("aten::add", "CPU")). */
#ifndef GD_REPLACED_OPERATORS_H
#define GD_REPLACED_OPERATORS_H

#include "pycompat.h"

/* Reports whether Python code has registered a kernel for an operator that torch/kernels.h computes, other than for
 * other devices: the operator must be called. Kernels registered from C++ are not known. Leaves no exception set. */
int gd_operators_replaced(void);

#endif
