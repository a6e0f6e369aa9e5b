/* Tensor metadata read through Python, by functions of godynamo._called.guard_env. Used for tensors that
 * the layout does not cover, and for messages. */
#ifndef GD_TENSOR_PYTHON_H
#define GD_TENSOR_PYTHON_H

#include "pycompat.h"

/* Returns a function of godynamo._called.guard_env as a new reference, or NULL with an exception set. */
PyObject *gd_guard_env_function(const char *name);

/* Returns the state of any tensor as a new tuple (type, key set, dtype, device, requires_grad, shape,
 * strides), or NULL with an exception set. godynamo._called.guard_env.tensor_state reads it without
 * __torch_function__. */
PyObject *gd_tensor_python_state(PyObject *tensor);

/* Returns the text by which torch prints a raw key set, dtype or device (type and index as in memory), or
 * the number if that fails. field: GD_TENSOR_KEYSET, _DTYPE or _DEVICE. Calls
 * godynamo._called.guard_env.field_text. The text is a new str, or NULL with an exception set. */
PyObject *gd_tensor_field_text(int field, uint64_t raw);

#endif
