/* The offsets of a tensor's metadata. A probe finds them by reading tensors with known metadata. No torch
 * header is used, so one binary works with every torch whose layout the probe can determine. If the probe
 * fails, Python attributes are read instead. */
#ifndef GD_TENSOR_LAYOUT_H
#define GD_TENSOR_LAYOUT_H

#include "pycompat.h"
#include "golib.h"

/* The number of dimensions that are stored inside the tensor object. */
enum { GD_INLINE_DIMS = 5 };

/* Offsets in bytes. `impl` counts from the Python object, `grad_fn` and `requires_grad` from the object
 * that `autograd_meta` points to, `data`, `context` and `nbytes` from the object that `storage` points to, the
 * others from the object that `impl` points to. */
typedef struct {
    int known;           /* 1: the probe and its self-check have succeeded */
    uint32_t storage, data, context, nbytes; /* all 0 if unknown, although the rest is known */
    uint32_t impl, ndim, sizes, strides, dtype, device, keyset, autograd_meta, grad_fn, requires_grad;
    uint64_t plain_keys; /* key sets within these bits belong to dense, strided tensors */
    uint64_t cpu_keys;   /* the key set of tensors on the CPU that are not inference tensors */
    PyTypeObject *base;  /* strong: torch._C.TensorBase, the class whose instances have this layout */
    uint64_t plain_meta; /* first word (the vtable) of the autograd metadata of a tensor that is not a view */
    _Bool (*ask_requires_grad)(const void *impl); /* c10::TensorImpl::requires_grad: runs no user code */
} gd_tensor_layout_t;

extern gd_tensor_layout_t gd_tensor_layout;

/* Runs the probe if it has not run yet; the first entry that checks a tensor calls this first. Returns 1
 * if the layout is known. Returns 0 after one RuntimeWarning if the layout is unknown. Also returns 0 if
 * this thread's active modes prevent the probe; a later call tries again. Never fails. */
int gd_tensor_layout_ensure(void);

/* Fills the view and returns 1. Returns 0 if the tensor is not a plain dense tensor of at most
 * GD_INLINE_DIMS dimensions, or if the layout is unknown. Raises nothing. Go calls this as
 * gd_core_api.tensor_view. */
int gd_tensor_view_read(PyObject *tensor, gd_tensor_view *out);

/* Adds tensor_layout(), tensor_view() and two functions for tests to the module; does not run the probe.
 * Returns 0, or -1 with an exception set. */
int gd_tensor_layout_init(PyObject *module);

/* Copies n bytes of memory that may not be mapped, for probes. Returns 1 if the page on which they begin is mapped.
 * Bytes on a next page that is not mapped read as zero. */
int gd_read_memory(const void *address, void *out, size_t n);

/* ---- reading, once the layout is known ---- */

/* Returns the C++ object of a tensor of type layout.base, or NULL for a partly constructed one. borrowed */
static inline const char *
gd_tensor_impl(PyObject *tensor)
{
    return *(const char **)((char *)tensor + gd_tensor_layout.impl);
}

#define GD_TENSOR_FIELD(type, impl, field) (*(const type *)((impl) + gd_tensor_layout.field))

/* Reports whether the tensor requires gradients. A view whose base requires gradients does so as well,
 * whatever the view's own fields say. */
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
