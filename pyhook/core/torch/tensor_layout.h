/* Where a tensor keeps its metadata, found by looking at tensors of known shape. No header of torch is used, and one
 * binary serves every torch whose layout the probe can make out; where it cannot, Python attributes are read
 * instead. */
#ifndef GD_TENSOR_LAYOUT_H
#define GD_TENSOR_LAYOUT_H

#include "pycompat.h"
#include "golib.h"

/* Dimensions kept inside the tensor; more lie elsewhere. */
enum { GD_INLINE_DIMS = 5 };

/* Offsets in bytes: `impl` in the Python object, `grad_fn` and `requires_grad` in what autograd_meta points to, the
 * others in what impl points to. */
typedef struct {
    int known;           /* 1: the probe and its self-check succeeded */
    uint32_t impl, ndim, sizes, strides, dtype, device, keyset, autograd_meta, grad_fn, requires_grad;
    uint64_t plain_keys; /* key sets within these bits belong to dense, strided tensors */
    PyTypeObject *base;  /* strong: torch._C.TensorBase, the layout's owner */
    uint64_t plain_meta; /* first word of autograd metadata that is no view's: its vtable */
    _Bool (*ask_requires_grad)(const void *impl); /* c10::TensorImpl::requires_grad: runs nothing of the user's */
} gd_tensor_layout_t;

extern gd_tensor_layout_t gd_tensor_layout;

/* Runs the probe unless it has run: at the first entry that checks a tensor. 1 layout known, 0 not (one RuntimeWarning,
 * or another try later where the thread's present modes are in the way); never fails. */
int gd_tensor_layout_ensure(void);

/* Fills the view: 1; 0 for what is no plain dense tensor of at most GD_INLINE_DIMS dimensions, or when the layout is
 * not known. Raises nothing. -> gd_core_api.tensor_view */
int gd_tensor_view_read(PyObject *tensor, gd_tensor_view *out);

/* Adds tensor_layout() and tensor_view() to the module; probes nothing yet. 0 or -1 */
int gd_tensor_layout_init(PyObject *module);

/* ---- reading, layout known ---- */

/* The C++ object of a tensor of type layout.base; NULL for one that is half made. borrowed */
static inline const char *
gd_tensor_impl(PyObject *tensor)
{
    return *(const char **)((char *)tensor + gd_tensor_layout.impl);
}

#define GD_TENSOR_FIELD(type, impl, field) (*(const type *)((impl) + gd_tensor_layout.field))

/* A view requires gradients where its base has come to, whatever the view's own fields say. */
static inline int
gd_tensor_requires_grad(const char *impl)
{
    const char *meta = GD_TENSOR_FIELD(char *, impl, autograd_meta);
    return meta != NULL
           && (*(meta + gd_tensor_layout.requires_grad) != 0
               || *(const void *const *)(meta + gd_tensor_layout.grad_fn) != NULL
               || (*(const uint64_t *)meta != gd_tensor_layout.plain_meta && gd_tensor_layout.ask_requires_grad(impl)));
}

static inline int
gd_tensor_is_leaf(const char *impl)
{
    const char *meta = GD_TENSOR_FIELD(char *, impl, autograd_meta);
    return meta == NULL || *(const void *const *)(meta + gd_tensor_layout.grad_fn) == NULL;
}

#endif
