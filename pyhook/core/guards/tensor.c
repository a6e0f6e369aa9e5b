/* The check of one tensor. The TENSORS node of a guard program runs this check for each of its tensors. */
#include "guards/tensor.h"

#include "guards/pure.h"
#include "torch/tensor_layout.h"
#include "torch/tensor_python.h"

/* Returns `wanted`, a mask of dimensions to compare, without the dimensions that a tensor with ndim dimensions does not
 * have. */
static uint8_t
dims_mask(uint64_t wanted, int ndim)
{
    return (uint8_t)(wanted & ((1u << ndim) - 1));
}

int
gd_tensor_check_init(gd_tensor_check *check, const gd_tensor_spec *spec)
{
    memset(check, 0, sizeof *check);
    check->reg = spec->reg;
    check->fields = spec->fields;
    check->static_sizes = spec->static_sizes;
    check->static_strides = spec->static_strides;
    check->type = Py_TYPE(spec->example);
    gd_tensor_view v;
    if (!gd_tensor_view_read(spec->example, &v)) {
        check->state = gd_tensor_python_state(spec->example);
        return check->state != NULL ? 0 : -1;
    }
    const char *impl = gd_tensor_impl(spec->example);
    check->keyset = v.keyset;
    check->dtype = (uint16_t)v.scalar_type;
    memcpy(&check->device, impl + gd_tensor_layout.device, sizeof check->device);
    check->ndim = (uint8_t)v.ndim;
    check->requires_grad = (uint8_t)v.requires_grad;
    check->size_mask = spec->fields & GD_TENSOR_SIZES ? dims_mask(spec->static_sizes, v.ndim) : 0;
    check->stride_mask = spec->fields & GD_TENSOR_STRIDES ? dims_mask(spec->static_strides, v.ndim) : 0;
    memcpy(check->sizes, v.sizes, sizeof check->sizes);
    memcpy(check->strides, v.strides, sizeof check->strides);
    uint8_t all = dims_mask(UINT64_MAX, v.ndim);
    check->whole = (spec->fields & GD_TENSOR_ALL) == GD_TENSOR_ALL && check->size_mask == all
                   && check->stride_mask == all && gd_tensor_layout.device == gd_tensor_layout.dtype + 2
                   && gd_tensor_layout.dtype % 4 == 0;
    memcpy(&check->dtype_device, impl + gd_tensor_layout.dtype, sizeof check->dtype_device);
    return 0;
}

static inline int
dims_differ(const int64_t *actual, const int64_t *wanted, unsigned mask)
{
    for (; mask != 0; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        if (actual[i] != wanted[i]) {
            return 1;
        }
    }
    return 0;
}

int
gd_tensor_check_field(const gd_tensor_check *c, PyObject *v)
{
    /* The layout is only valid for tensors, so no other object is read. */
    if (Py_TYPE(v) != c->type && (c->fields & GD_TENSOR_TYPE || !PyObject_TypeCheck(v, gd_tensor_layout.base))) {
        return GD_TENSOR_TYPE;
    }
    const char *impl = gd_tensor_impl(v);
    if (GD_UNLIKELY(impl == NULL)) {
        return GD_TENSOR_TYPE;
    }
    uint64_t keyset = GD_TENSOR_FIELD(uint64_t, impl, keyset);
    /* Only dense tensors store sizes and strides inline. */
    if (keyset != c->keyset && (c->fields & GD_TENSOR_KEYSET || keyset & ~gd_tensor_layout.plain_keys)) {
        return GD_TENSOR_KEYSET;
    }
    if (c->fields & GD_TENSOR_DTYPE && GD_TENSOR_FIELD(uint16_t, impl, dtype) != c->dtype) {
        return GD_TENSOR_DTYPE;
    }
    uint16_t device;
    memcpy(&device, impl + gd_tensor_layout.device, sizeof device);
    if (c->fields & GD_TENSOR_DEVICE && device != c->device) {
        return GD_TENSOR_DEVICE;
    }
    if (c->fields & GD_TENSOR_REQUIRES_GRAD && gd_tensor_requires_grad(impl) != c->requires_grad) {
        return GD_TENSOR_REQUIRES_GRAD;
    }
    if (c->fields & (GD_TENSOR_NDIM | GD_TENSOR_SIZES | GD_TENSOR_STRIDES)) {
        if (GD_TENSOR_FIELD(uint64_t, impl, ndim) != c->ndim) {
            return GD_TENSOR_NDIM;
        }
        if (dims_differ((const int64_t *)(impl + gd_tensor_layout.sizes), c->sizes, c->size_mask)) {
            return GD_TENSOR_SIZES;
        }
        if (dims_differ((const int64_t *)(impl + gd_tensor_layout.strides), c->strides, c->stride_mask)) {
            return GD_TENSOR_STRIDES;
        }
    }
    return 0;
}

/* Compares items 5 and 6 of a tensor's state. Each is a tuple with one number for each dimension, or None. */
static int
state_dims_differ(PyObject *actual, PyObject *wanted, uint64_t mask)
{
    if (actual == Py_None || wanted == Py_None) {
        return actual != wanted; /* None: a layout without strides */
    }
    if (!PyTuple_Check(actual) || !PyTuple_Check(wanted) || PyTuple_GET_SIZE(actual) != PyTuple_GET_SIZE(wanted)) {
        return 1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(wanted); i++) {
        /* Dimensions past the mask's 64 bits are always compared. */
        if ((i >= 64 || mask >> i & 1) && !gd_equals(PyTuple_GET_ITEM(actual, i), PyTuple_GET_ITEM(wanted, i))) {
            return 1;
        }
    }
    return 0;
}

/* The position of each field in the tuple of tensor_state(). */
static const struct {
    int field;
    int item;
} state_fields[] = {
    {GD_TENSOR_TYPE, 0},   {GD_TENSOR_KEYSET, 1},        {GD_TENSOR_DTYPE, 2},
    {GD_TENSOR_DEVICE, 3}, {GD_TENSOR_REQUIRES_GRAD, 4},
};

static int
compare_states(const gd_tensor_check *c, PyObject *actual)
{
    PyObject *wanted = c->state;
    if (!PyTuple_CheckExact(actual) || PyTuple_GET_SIZE(actual) != PyTuple_GET_SIZE(wanted)) {
        return GD_TENSOR_TYPE;
    }
    for (size_t i = 0; i < sizeof(state_fields) / sizeof(state_fields[0]); i++) {
        Py_ssize_t item = state_fields[i].item;
        if (c->fields & state_fields[i].field
            && !gd_equals(PyTuple_GET_ITEM(actual, item), PyTuple_GET_ITEM(wanted, item))) {
            return state_fields[i].field;
        }
    }
    PyObject *shape = PyTuple_GET_ITEM(actual, 5), *wanted_shape = PyTuple_GET_ITEM(wanted, 5);
    if (c->fields & (GD_TENSOR_NDIM | GD_TENSOR_SIZES | GD_TENSOR_STRIDES)
        && state_dims_differ(shape, wanted_shape, 0)) {
        return GD_TENSOR_NDIM;
    }
    if (c->fields & GD_TENSOR_SIZES && state_dims_differ(shape, wanted_shape, c->static_sizes)) {
        return GD_TENSOR_SIZES;
    }
    if (c->fields & GD_TENSOR_STRIDES
        && state_dims_differ(PyTuple_GET_ITEM(actual, 6), PyTuple_GET_ITEM(wanted, 6), c->static_strides)) {
        return GD_TENSOR_STRIDES;
    }
    return 0;
}

int
gd_tensor_check_slow(const gd_tensor_check *c, PyObject *v)
{
    if (c->fields & GD_TENSOR_TYPE && Py_TYPE(v) != c->type) {
        return GD_TENSOR_TYPE;
    }
    Py_INCREF(v);
    PyObject *actual = gd_tensor_python_state(v);
    Py_DECREF(v);
    if (actual == NULL) {
        PyErr_Clear();
        return GD_TENSOR_TYPE;
    }
    int differs = compare_states(c, actual);
    Py_DECREF(actual);
    return differs;
}
