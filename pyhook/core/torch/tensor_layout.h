/* The offsets of a tensor's metadata, found by reading tensors of known metadata. No torch header is
 * used, so one binary works with every torch whose layout the probe can determine. If the probe fails,
 * Python attributes are read instead. */
#ifndef GD_TENSOR_LAYOUT_H
#define GD_TENSOR_LAYOUT_H

#include "pycompat.h"
#include "golib.h"

/* The number of dimensions that are stored inside the tensor object. */
enum { GD_INLINE_DIMS = 5 };

/* Offsets in bytes: `impl` from the Python object, `grad_fn` and `requires_grad` from the object that
 * autograd_meta points to, the others from the object that impl points to. */
typedef struct {
    int known;           /* 1: the probe and its self-check have succeeded */
    uint32_t impl, ndim, sizes, strides, dtype, device, keyset, autograd_meta, grad_fn, requires_grad;
    uint64_t plain_keys; /* key sets within these bits belong to dense, strided tensors */
    PyTypeObject *base;  /* strong: torch._C.TensorBase, the layout's owner */
    uint64_t plain_meta; /* first word (the vtable) of the autograd metadata of a tensor that is not a view */
    _Bool (*ask_requires_grad)(const void *impl); /* c10::TensorImpl::requires_grad: runs no user code */
} gd_tensor_layout_t;

extern gd_tensor_layout_t gd_tensor_layout;

/* Runs the probe if it has not run yet; first called by the first entry that checks a tensor. Returns 1
 * if the layout is known. Returns 0 after one RuntimeWarning if it is not, or if this thread's active
 * modes are in the way (a later call tries again). Never fails. */
int gd_tensor_layout_ensure(void);

/* Fills the view and returns 1. Returns 0 if the tensor is not a plain dense tensor of at most
 * GD_INLINE_DIMS dimensions, or if the layout is not known. Raises nothing. -> gd_core_api.tensor_view */
int gd_tensor_view_read(PyObject *tensor, gd_tensor_view *out);

/* Adds tensor_layout(), tensor_view() and two functions for tests to the module; does not run the probe. 0 or -1 */
int gd_tensor_layout_init(PyObject *module);

/* ---- reading, once the layout is known ---- */

/* The C++ object of a tensor of type layout.base; NULL for a partly constructed one. borrowed */
static inline const char *
gd_tensor_impl(PyObject *tensor)
{
    return *(const char **)((char *)tensor + gd_tensor_layout.impl);
}

#define GD_TENSOR_FIELD(type, impl, field) (*(const type *)((impl) + gd_tensor_layout.field))

/* A view of a base that requires gradients does so too, whatever the view's own fields say. */
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
