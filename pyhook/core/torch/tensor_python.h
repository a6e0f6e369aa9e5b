/* Tensor metadata read through Python, by functions of godynamo._called.guard_env: for tensors that the
 * layout does not cover, and for messages. */
#ifndef GD_TENSOR_PYTHON_H
#define GD_TENSOR_PYTHON_H

#include "pycompat.h"

/* Returns a function of godynamo._called.guard_env: new, or NULL with an exception. */
PyObject *gd_guard_env_function(const char *name);

/* Returns the state of any tensor, read by godynamo._called.guard_env.tensor_state without
 * __torch_function__: a new tuple (type, key set, dtype, device, requires_grad, shape, strides), NULL
 * with an exception. */
PyObject *gd_tensor_python_state(PyObject *tensor);

/* Returns a raw key set, dtype or device (type and index as in memory) as torch prints it, or the number
 * if that fails. field: GD_TENSOR_KEYSET, _DTYPE or _DEVICE. Calls godynamo._called.guard_env.field_text.
 * new, or NULL with an exception. */
PyObject *gd_tensor_field_text(int field, uint64_t raw);

#endif
