/* What Python says of tensors, by functions of godynamo._called.guard_env: for tensors whose layout is unknown, and for
 * texts. */
#ifndef GD_TENSOR_PYTHON_H
#define GD_TENSOR_PYTHON_H

#include "pycompat.h"

/* A function of godynamo._called.guard_env: new, or NULL with an exception. */
PyObject *gd_guard_env_function(const char *name);

/* What Python attributes say of any tensor, read by godynamo._called.guard_env.tensor_state without __torch_function__:
 * a new tuple (type, key set, dtype, device, requires_grad, shape, strides), NULL with an exception. */
PyObject *gd_tensor_python_state(PyObject *tensor);

/* A raw key set, dtype or device (type and index as they lie in memory) as torch prints it; field: GD_TENSOR_KEYSET,
 * _DTYPE or _DEVICE. By godynamo._called.guard_env.field_text; the number where that fails. new, or NULL with an
 * exception. */
PyObject *gd_tensor_field_text(int field, uint64_t raw);

#endif
