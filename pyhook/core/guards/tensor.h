/* The check of one tensor. */
#ifndef GD_GUARD_TENSOR_H
#define GD_GUARD_TENSOR_H

#include "golib.h"
#include "torch/tensor_layout.h"

/* The expected metadata of one tensor, read at the offsets of gd_tensor_layout. If only Python can read
 * the tensor, `state` is set instead. */
typedef struct gd_tensor_check {
    PyTypeObject *type; /* type of the example tensor; the entry keeps it as GD_KEEP_WEAK says */
    uint64_t keyset;
    uint32_t reg;
    uint16_t fields;
    uint16_t dtype;
    uint16_t device;    /* type and index, as the tensor stores them */
    uint8_t ndim;
    uint8_t requires_grad;
    uint8_t size_mask, stride_mask; /* bits of the compared dimensions */
    uint8_t whole;      /* every field and dimension is compared, so gd_tensor_check_whole may be used */
    uint32_t dtype_device; /* the four bytes that hold dtype and device, if these are adjacent */
    int64_t sizes[GD_INLINE_DIMS], strides[GD_INLINE_DIMS];
    uint64_t static_sizes, static_strides;
    PyObject *state;    /* strong: the result of tensor_state() for the example; or NULL */
    /* the tensor's address at the last call, in which no other GD_TENSOR_DISTINCT check had the same address; 0 before
     * the first call */
    uintptr_t apart;
} gd_tensor_check;

/* Reads the example of the spec. Returns 0, or -1 with an exception set. The entry owns the reference in
 * `state`. */
int gd_tensor_check_init(gd_tensor_check *check, const gd_tensor_spec *spec);

/* Returns the first field that differs (a GD_TENSOR_* bit), or 0 if none does. Does not compare `state`. */
int gd_tensor_check_field(const gd_tensor_check *check, PyObject *v);

/* Reports whether a check with `whole` holds. This is the common case, with as few comparisons as possible. */
static inline int
gd_tensor_check_whole(const gd_tensor_check *c, PyObject *v)
{
    const char *impl;
    if (Py_TYPE(v) != c->type || (impl = gd_tensor_impl(v)) == NULL
        || GD_TENSOR_FIELD(uint64_t, impl, keyset) != c->keyset
        || GD_TENSOR_FIELD(uint32_t, impl, dtype) != c->dtype_device || GD_TENSOR_FIELD(uint64_t, impl, ndim) != c->ndim
        || gd_tensor_requires_grad(impl) != c->requires_grad) {
        return 0;
    }
    const int64_t *sizes = (const int64_t *)(impl + gd_tensor_layout.sizes);
    const int64_t *strides = (const int64_t *)(impl + gd_tensor_layout.strides);
    for (int i = 0; i < c->ndim; i++) {
        if (sizes[i] != c->sizes[i] || strides[i] != c->strides[i]) {
            return 0;
        }
    }
    return 1;
}

/* Does the same as gd_tensor_check_field for a check with `state`, by calling Python. */
int gd_tensor_check_slow(const gd_tensor_check *check, PyObject *v);

#endif
