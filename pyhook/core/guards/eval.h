/* What the evaluator, the maker of entries and the failure texts share. */
#ifndef GD_GUARD_EVAL_H
#define GD_GUARD_EVAL_H

#include "pycompat.h"
#include "py311/guard.h"
#include "guards/ops_gen.h"
#include "cache/guarded_code.h"
#include "torch/tensor_layout.h"

/* One tensor as it must be. Numbers are what the layout gives; `state` is set instead where only Python can tell. */
typedef struct gd_tensor_check {
    PyTypeObject *type; /* of the example; kept through the entry's weak references */
    uint64_t keyset;
    uint32_t reg;
    uint16_t fields;
    uint16_t dtype;
    uint16_t device;    /* type and index as they lie in memory */
    uint8_t ndim;
    uint8_t requires_grad;
    uint8_t size_mask, stride_mask; /* dimensions compared */
    uint8_t whole;      /* every field of every dimension is compared, and gd_tensor_check_whole may be used */
    uint32_t dtype_device; /* the four bytes that hold both, when they lie side by side */
    int64_t sizes[GD_INLINE_DIMS], strides[GD_INLINE_DIMS];
    uint64_t static_sizes, static_strides;
    PyObject *state;    /* strong or NULL: what tensor_state said of the example */
    uintptr_t apart; /* the address of the last time, which no other of GD_TENSOR_DISTINCT had; 0 before the first */
} gd_tensor_check;

/* Reads the example; 0 or -1 with an exception. The check's `state` is then a reference of the entry's. */
int gd_tensor_check_init(gd_tensor_check *check, const gd_tensor_spec *spec);

/* Which field differs first (a GD_TENSOR_* bit), 0 when none does. Does not look at `state`. */
int gd_tensor_check_field(const gd_tensor_check *check, PyObject *v);

/* Whether a check with `whole` holds: the common case in as few compares as it takes. */
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

/* The same for a check with `state`: calls Python. */
int gd_tensor_check_slow(const gd_tensor_check *check, PyObject *v);

/* Marks the tag of a cache that holds a position among inline values instead of a dict's tag. */
#define GD_INLINE_HINT (UINT64_C(1) << 63)

/* What the instance itself has under the name: borrowed, or NULL. */
PyObject *gd_instance_attr(PyObject *v, PyObject *name, Py_hash_t hash, gd_inline_cache *cache);

/* The i-th key in the dict's order, an OrderedDict's own order included; borrowed, NULL when there is none. */
PyObject *gd_dict_key(PyObject *dict, Py_ssize_t i);

/* Whether the dict has exactly these keys in this order; types count, 1 is not True. */
int gd_dict_keys_are(PyObject *dict, PyObject *keys);

/* A dict's keys in order as a new tuple; NULL with an exception. */
PyObject *gd_dict_keys_tuple(PyObject *dict);

/* Whether the module's named_parameters() has exactly these names in this order; runs no code of the module's. */
int gd_param_names_are(PyObject *module, PyObject *names);

/* A collections.deque, or an instance of a subclass. */
int gd_is_deque(PyObject *v);

/* Number of items of a builtin container or a subclass of one, from its storage; -1 for other objects. */
Py_ssize_t gd_storage_length(PyObject *v);

/* A member that __slots__ or C has made: read only when the class really has a member descriptor of that name at that
 * offset; borrowed, NULL when it is empty or elsewhere. */
static inline PyObject *
gd_slot_value(PyObject *v, PyObject *name, uint32_t offset)
{
    PyObject *d = _PyType_Lookup(Py_TYPE(v), name);
    if (d == NULL || !Py_IS_TYPE(d, &PyMemberDescr_Type)) {
        return NULL;
    }
    PyMemberDef *member = ((PyMemberDescrObject *)d)->d_member;
    if ((member->type != T_OBJECT_EX && member->type != T_OBJECT) || member->offset != (Py_ssize_t)offset
        || !PyObject_TypeCheck(v, PyDescr_TYPE(d))) {
        return NULL;
    }
    return *(PyObject **)((char *)v + offset);
}

/* Whether the user's code may run when the frame drops `places` references to the value: nothing else refers to it, and
 * it, or something that only it refers to, has a __del__ or a weak reference with a callback. True as well when there
 * are too many objects to look at. Runs nothing, raises nothing. -> guards/end.c */
int gd_ends_in_code(PyObject *v, int places);

/* The same for an item of a list, tuple or deque, or the contents of a cell, if there are any. */
int gd_item_ends_in_code(PyObject *v, Py_ssize_t i, int places);

/* The same for what lies in an instance or a dict under a name (slot: in a slot of that name), or key, or at an index.
 * -1 with an exception */
int gd_ends_in_code_at(PyObject *owner, PyObject *at, int slot, int places);

/* The same for a variable of a resumed frame; more objects than a look takes in count as silence. A module that the
 * frame no longer reads, and its caller holds, would end most frames else. */
int gd_variable_ends_in_code(PyObject *v, int places);

/* Either for a value that a translation holds, too. */
int gd_end_may_run_code(PyObject *v, int stores);

/* Whether a weak reference with a callback, other than an entry's, looks at the object. */
int gd_watched(PyObject *v);

/* The names of the module's named_parameters() as a new tuple, the first 64 of them; NULL, no exception, for what is no
 * module. */
PyObject *gd_param_names(PyObject *module);

/* A value for a person to read; NULL: "nothing". new, or NULL with an exception -> guards/show.c */
PyObject *gd_show_value(PyObject *v);

/* A constant of the entry's that is alive for certain; borrowed; NULL for another -> guards/show.c */
PyObject *gd_guard_constant(gd_GuardedCode *e, uint32_t a);

/* A class of a type's MRO; borrowed; NULL for another object or beyond the end. */
PyObject *gd_mro_class(PyObject *type, uint32_t i);

/* What a function or method object has in a field; borrowed; NULL for another object. */
PyObject *gd_func_field(PyObject *v, uint32_t field);

/* __name__ of a function, class, builtin or module, read without a look-up of attributes: whether it is this str. */
int gd_name_is(PyObject *v, PyObject *name);

#endif
