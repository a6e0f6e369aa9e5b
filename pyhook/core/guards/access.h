/* How guards read objects, without running the user's code. */
#ifndef GD_GUARD_ACCESS_H
#define GD_GUARD_ACCESS_H

#include "guards/guarded_code.h"
#include "structmember.h"
#include "py311/guard.h"

/* Set in a tag: the cache holds a position among inline values, not a dict's tag. */
#define GD_INLINE_HINT (UINT64_C(1) << 63)

/* The attribute in the instance's own storage: borrowed, or NULL. */
PyObject *gd_instance_attr(PyObject *v, PyObject *name, Py_hash_t hash, gd_inline_cache *cache);

/* The i-th key in the dict's order (for an OrderedDict, its own order); borrowed, NULL when there is none. */
PyObject *gd_dict_key(PyObject *dict, Py_ssize_t i);

/* Whether the dict has exactly these keys in this order; types matter: 1 is not True. */
int gd_dict_keys_are(PyObject *dict, PyObject *keys);

/* A dict's keys in order as a new tuple; NULL with an exception. */
PyObject *gd_dict_keys_tuple(PyObject *dict);

/* Whether the module's named_parameters() has exactly these names in this order. Runs none of the module's code. */
int gd_param_names_are(PyObject *module, PyObject *names);

/* Whether v is a collections.deque or an instance of a subclass. */
int gd_is_deque(PyObject *v);

/* Number of items of a builtin container, or of an instance of a subclass, read from its storage; -1 for
 * other objects. */
Py_ssize_t gd_storage_length(PyObject *v);

/* The member that __slots__ or C code defines. It is read only if the class has a member descriptor of
 * that name at that offset. borrowed; NULL when the member is empty or elsewhere. */
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

/* The first 64 names of the module's named_parameters() as a new tuple. NULL without an exception if the
 * object is not a module. */
PyObject *gd_param_names(PyObject *module);

/* The i-th class of a type's MRO; borrowed; NULL if the object is not a type, or beyond the end. */
PyObject *gd_mro_class(PyObject *type, uint32_t i);

/* A field of a function, method or exception; borrowed; NULL for another object. */
PyObject *gd_func_field(PyObject *v, uint32_t field);

/* Whether the __name__ of a function, class, builtin or module is this str; read without an attribute lookup. */
int gd_name_is(PyObject *v, PyObject *name);

#endif
