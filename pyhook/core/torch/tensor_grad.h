/* The gradient of a leaf tensor, read without running code of the program. */
#ifndef GD_TENSOR_GRAD_H
#define GD_TENSOR_GRAD_H

#include "pycompat.h"

/* Reports whether v is a torch.Tensor or an nn.Parameter, and of no subclass: torch defines its attributes and hash. */
int gd_tensor_is_plain(PyObject *v);

/* Returns v.grad, borrowed: a tensor, which v holds, or None. Returns NULL, without an exception, if reading it could
 * run code or warn: v is not plain, it has a grad_fn, a TorchFunctionMode is
 * active, or the layout of tensors is unknown. */
PyObject *gd_tensor_grad(PyObject *v);

/* Adds tensor_grad() to the module. Returns 0, or -1 with an exception set. */
int gd_tensor_grad_init(PyObject *module);

#endif
