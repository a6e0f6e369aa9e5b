/* CPython 3.11 to 3.14: how guards read dicts and instances without running code or creating objects. */
#ifndef GD_PYCOMPAT_GUARD_H
#define GD_PYCOMPAT_GUARD_H

#include "pycompat.h"

#include <frameobject.h>
#include <structmember.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030F0000

/* Returns the version of the dict's current state. Every change gives the dict a new version, and no two states of
 * any dicts have the same one. The version does not cover the order of an OrderedDict. A dict without versions has a
 * new one at each call. */
static inline uint64_t
gd_dict_tag(PyObject *dict)
{
    return gd_dict_version(dict);
}

/* Makes the dict of an instance keep the attributes itself, if it shares the instance's inline values, so that it has
 * versions. A key that is no str has no place among the values; it is removed at once. Returns 0, or -1 with an
 * exception set. */
static inline int
gd_dict_leave_values(PyObject *dict)
{
    return PyDict_SetItem(dict, Py_None, Py_None) < 0 ? -1 : PyDict_DelItem(dict, Py_None);
}

/* Returns the address of the version of a dict that has one (gd_dict_is_tagged). */
static inline const void *
gd_dict_tag_place(PyObject *dict)
{
    return gd_dict_version_place(dict);
}

/* Returns the address of the eight bytes that contain the version tag, which becomes 0 when the class or a
 * base is changed. The other four bytes are padding. */
static inline const void *
gd_type_version_place(const PyTypeObject *type)
{
    _Static_assert(offsetof(PyTypeObject, tp_version_tag) % 8 == 0
                       && offsetof(PyTypeObject, tp_finalize) == offsetof(PyTypeObject, tp_version_tag) + 8,
                   "tp_version_tag shares its eight bytes with nothing");
    return &type->tp_version_tag;
}

/* Returns the address where a class keeps the names of its instances' inline values. */
static inline const void *
gd_type_inline_keys_place(const PyTypeObject *type)
{
    return &((const PyHeapTypeObject *)type)->ht_cached_keys;
}

/* Returns the address where a module object keeps its dict. */
static inline const void *
gd_module_dict_place(PyObject *module)
{
    return (char *)module + PyModule_Type.tp_dictoffset;
}

/* Returns the dict's own value for the key, borrowed, or NULL. `hash` is the hash of the key; gd_same_key compares
 * keys. Raises nothing and calls no user-defined `__eq__`, so it may miss a key of another type that equals this one,
 * such as a member of a str enum. */
PyObject *gd_dict_lookup(PyObject *dict, PyObject *key, Py_hash_t hash);

/* Finds the i-th entry in the order of the dict's hash table. Returns 1 and sets *key and *value (borrowed), or 0 if
 * there is none. */
int gd_dict_at(PyObject *dict, Py_ssize_t i, PyObject **key, PyObject **value);

/* Looks up an object that equals only itself, and whose hash this is. Returns 1 and sets *value (borrowed) if it is a
 * key of the dict; 0 if it is none; -1 if a key of the same hash has a comparison of its own. Runs no code. */
int gd_dict_find(PyObject *dict, PyObject *object, Py_hash_t hash, PyObject **value);

/* The same for the members of a set or frozenset. */
int gd_set_find(PyObject *set, PyObject *object, Py_hash_t hash);

/* Returns the i-th member in the order of iteration, borrowed, or NULL if there is none. */
PyObject *gd_set_item(PyObject *set, Py_ssize_t i);

/* Reports whether the dict has no key that could equal this one. Like gd_dict_lookup, it runs no code. */
int gd_dict_lacks(PyObject *dict, PyObject *key, Py_hash_t hash);

/* Where an instance keeps its attributes: inline, in a dict, or nowhere. */
typedef struct {
    PyDictKeysObject *keys; /* names of the inline values, owned by the type */
    PyDictValues *values;   /* inline values, or NULL */
    PyObject *dict;         /* borrowed, or NULL; reading the view never creates it */
} gd_instance_view;

/* Fills *view for v, an object of any type. */
static inline void
gd_instance_look(PyObject *v, gd_instance_view *view)
{
    PyTypeObject *type = Py_TYPE(v);
    view->values = NULL;
    view->dict = NULL;
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        gd_py_managed_attributes(v, &view->values, &view->dict);
        if (view->values != NULL) {
            view->keys = ((PyHeapTypeObject *)type)->ht_cached_keys;
        }
        return;
    }
    Py_ssize_t offset = type->tp_dictoffset;
    if (offset == 0) {
        return;
    }
    if (PyType_Check(v)) { /* from 3.12 on the interpreter keeps the dicts of its own classes */
        view->dict = gd_py_type_dict((PyTypeObject *)v);
        return;
    }
    if (offset < 0) {
        /* A negative offset counts from the end of a variable-sized object, as in _PyObject_DictPointer of
         * Objects/object.c. */
        offset += (Py_ssize_t)_PyObject_VAR_SIZE(type, Py_ABS(Py_SIZE(v)));
    }
    view->dict = *(PyObject **)((char *)v + offset);
}

/* Returns the dict of an instance, borrowed, and creates it if necessary, as reading `__dict__` does. Returns NULL
 * if there is none. Raises nothing. */
static inline PyObject *
gd_made_dict(PyObject *v)
{
    gd_instance_view view;
    gd_instance_look(v, &view);
    if (view.dict == NULL && PyType_Check(v)) {
        return NULL; /* making a dict would fill the empty slot of one of the interpreter's own classes */
    }
    if (view.dict == NULL && ((Py_TYPE(v)->tp_flags & Py_TPFLAGS_MANAGED_DICT) || Py_TYPE(v)->tp_dictoffset != 0)) {
        view.dict = PyObject_GenericGetDict(v, NULL);
        if (view.dict == NULL) {
            PyErr_Clear();
        }
        Py_XDECREF(view.dict); /* the instance holds it */
    }
    return view.dict;
}

/* Returns the position of the name among the inline values, or -1. Tries `hint` first, then searches by address,
 * then by text. Attribute names are interned, unless set by unusual means. */
Py_ssize_t gd_inline_position(const gd_instance_view *view, PyObject *name, uint64_t hint);

/* Returns the value at a position; borrowed, or NULL if the attribute is not set. */
static inline PyObject *
gd_inline_value(const gd_instance_view *view, Py_ssize_t position)
{
    return view->values->values[position];
}

/* Reports whether the position has exactly this name object. */
static inline int
gd_inline_is(const gd_instance_view *view, Py_ssize_t position, PyObject *name)
{
    return position < view->keys->dk_nentries && DK_UNICODE_ENTRIES(view->keys)[position].me_key == name;
}

/* Reads a tuple iterator and returns 1: the items left are those of `*seq` (borrowed; NULL if exhausted) from
 * `*first` on. Returns 0 for other objects. */
int gd_tuple_iter_look(PyObject *v, PyObject **seq, Py_ssize_t *first);

/* Returns the code of a frame; borrowed. */
static inline PyObject *
gd_py_frame_code(PyFrameObject *frame)
{
    return (PyObject *)gd_py_frame_code_of(frame);
}

/* Returns a new frame object of `code` for a traceback entry, or NULL with an exception set. The frame has never
 * run; it is at byte offset lasti. `shown` lists the variables that have values (as in gd_entry_spec.chains).
 * Values that `shown` does not contain itself are read from `source`; if `source` is NULL, their variables stay
 * unbound, like all variables that are not listed. Reading f_locals is safe. */
PyFrameObject *gd_py_show_frame(PyCodeObject *code, PyObject *globals, int lasti, PyFrameObject *source,
                                PyObject *shown);

/* Sets a variable of a frame from gd_py_show_frame, or of another frame that has ended, if the variable has no
 * value. index: in localsplus. Returns 0, or -1 with an exception set. */
int gd_py_show_value(PyFrameObject *frame, int index, PyObject *value);

/* If the f_back of a frame that has ended is `was` (which may be NULL), sets it to `back`. */
void gd_py_set_back(PyFrameObject *frame, PyFrameObject *was, PyFrameObject *back);

/* Checks that this interpreter has the layouts that this file assumes. Returns 0, or -1 with an exception set. */
int gd_pycompat_guard_check(void);

#else
#    error "godynamo: guards of this CPython version have not been written; see docs/porting.md"
#endif

#endif
