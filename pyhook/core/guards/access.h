/* Functions by which guards read objects, without running the user's code. */
#ifndef GD_GUARD_ACCESS_H
#define GD_GUARD_ACCESS_H

#include "guards/guarded_code.h"
#include "structmember.h"
#include "pycommon/guard.h"

/* A bit of gd_inline_cache.tag. If it is set, the tag holds a position among inline values instead of a
 * dict's version. */
#define GD_INLINE_HINT (UINT64_C(1) << 63)

/* Returns the attribute in the instance's own storage (inline values or __dict__), borrowed, or NULL if it
 * is missing. */
PyObject *gd_instance_attr(PyObject *v, PyObject *name, Py_hash_t hash, gd_inline_cache *cache);

/* Returns the i-th key in the dict's order (for an OrderedDict, in its own order), or the i-th member of a set,
 * borrowed. Returns NULL if there is none. */
PyObject *gd_key_at(PyObject *container, Py_ssize_t i);

/* Returns the value of that key of a dict, borrowed, or NULL. */
PyObject *gd_value_at(PyObject *dict, Py_ssize_t i);

/* Reports whether the dict has exactly these keys in this order. Types matter: 1 is not True. */
int gd_dict_keys_are(PyObject *dict, PyObject *keys);

/* Looks up a key of a dict or a member of a set that equals only itself: an instance of a class without __eq__ and
 * __hash__, or a tensor. Returns 1, and sets *value (borrowed) to the dict's value; 0 if the container lacks the
 * object; -1 if this is unknown without running code: the object, or another one of its hash, has a comparison of its
 * own. */
int gd_find_object(PyObject *container, PyObject *object, PyObject **value);

/* Returns a dict's keys in order as a new tuple, or NULL with an exception set. */
PyObject *gd_dict_keys_tuple(PyObject *dict);

/* Reports whether the module's named_parameters() has exactly these names in this order. Runs none of the
 * module's code. */
int gd_param_names_are(PyObject *module, PyObject *names);

/* Reports whether v is a collections.deque or an instance of a subclass. */
int gd_is_deque(PyObject *v);

/* Returns the i-th item of a collections.deque or of an instance of a subclass, borrowed, or NULL for other objects.
 * i must be less than the length. */
PyObject *gd_deque_item(PyObject *v, Py_ssize_t i);

/* Returns the number of items of a builtin container, or of an instance of a subclass, read from its
 * storage. Returns -1 for other objects. */
Py_ssize_t gd_storage_length(PyObject *v);

/* Returns the value of a member that __slots__ or C code defines, borrowed. The class must have a member
 * descriptor with this name and this offset. Returns NULL if it has none, or if the member is empty. */
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

/* Returns the first 64 names of the module's named_parameters() as a new tuple, or NULL with no exception
 * set if the object is not a module. */
PyObject *gd_param_names(PyObject *module);

/* Returns the i-th class of a type's MRO, borrowed. Returns NULL if the object is not a type or its MRO is
 * shorter. */
PyObject *gd_mro_class(PyObject *type, uint32_t i);

/* Reports whether a call of this function runs its code. It does not if a C extension has given the function another C
 * function to call (PyFunction_SetVectorcall). */
int gd_runs_its_code(PyObject *function);

/* Prepares gd_runs_its_code, and adds find_object() and key_at() to the module. Returns -1 with an exception set. */
int gd_access_init(PyObject *module);

/* Returns a field of a function, method or exception, borrowed, or NULL for any other object. Returns NULL also
 * for the code of a function that does not run it. */
PyObject *gd_func_field(PyObject *v, uint32_t field);

/* Reports whether the __name__ of a function, class, builtin or module equals this str. Performs no
 * attribute lookup. */
int gd_name_is(PyObject *v, PyObject *name);

#endif
