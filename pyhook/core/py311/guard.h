/* CPython 3.11: how guards look into dicts and instances without running code or making anything. */
#ifndef GD_PYCOMPAT_GUARD_311_H
#define GD_PYCOMPAT_GUARD_311_H

#include "pycompat.h"

#include <frameobject.h>
#include <structmember.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000

/* Number of the dict's present state: any change gives it another one, and no other state of any dict ever has this
 * one. An OrderedDict's order is not part of it. */
static inline uint64_t
gd_dict_tag(PyObject *dict)
{
    return ((PyDictObject *)dict)->ma_version_tag;
}

/* Where that number lies. */
static inline const void *
gd_dict_tag_place(PyObject *dict)
{
    return &((PyDictObject *)dict)->ma_version_tag;
}

/* Whether the class has a version: number of the present state of it and its bases, which no other class or state ever
 * has. */
static inline int
gd_type_has_version(const PyTypeObject *type)
{
    return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG && type->tp_version_tag != 0;
}

/* The eight bytes in which the version lies; it is 0 once the class or a base was changed. The other four are
 * padding. */
static inline const void *
gd_type_version_place(const PyTypeObject *type)
{
    _Static_assert(offsetof(PyTypeObject, tp_version_tag) % 8 == 0
                       && offsetof(PyTypeObject, tp_finalize) == offsetof(PyTypeObject, tp_version_tag) + 8,
                   "tp_version_tag shares its eight bytes with nothing");
    return &type->tp_version_tag;
}

/* Where a class keeps the names of its instances' inline values. */
static inline const void *
gd_type_inline_keys_place(const PyTypeObject *type)
{
    return &((const PyHeapTypeObject *)type)->ht_cached_keys;
}

/* Where a module object keeps its dict. */
static inline const void *
gd_module_dict_place(PyObject *module)
{
    return (char *)module + PyModule_Type.tp_dictoffset;
}

/* The dict's own value for the key; `hash` is the key's. Keys equal by gd_same_key. borrowed, or NULL; raises nothing
 * and calls no __eq__ of the user. */
PyObject *gd_dict_lookup(PyObject *dict, PyObject *key, Py_hash_t hash);

/* Where an instance keeps its attributes: in exactly one of the two, or nowhere. */
typedef struct {
    PyDictKeysObject *keys; /* inline values: their names, of the type's */
    PyDictValues *values;   /* inline values, or NULL */
    PyObject *dict;         /* borrowed, or NULL; never made by looking */
} gd_instance_view;

/* Fills the view of any object. */
static inline void
gd_instance_look(PyObject *v, gd_instance_view *view)
{
    PyTypeObject *type = Py_TYPE(v);
    view->values = NULL;
    view->dict = NULL;
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        view->values = *_PyObject_ValuesPointer(v);
        if (view->values != NULL) {
            view->keys = ((PyHeapTypeObject *)type)->ht_cached_keys;
        }
        else {
            view->dict = *_PyObject_ManagedDictPointer(v);
        }
        return;
    }
    Py_ssize_t offset = type->tp_dictoffset;
    if (offset == 0) {
        return;
    }
    if (offset < 0) {
        /* From the end of an object of variable size, as in _PyObject_DictPointer of Objects/object.c. */
        offset += (Py_ssize_t)_PyObject_VAR_SIZE(type, Py_ABS(Py_SIZE(v)));
    }
    view->dict = *(PyObject **)((char *)v + offset);
}

/* The dict of an instance, made where there is none yet, as reading __dict__ makes it. borrowed, or NULL; raises
 * nothing. */
static inline PyObject *
gd_made_dict(PyObject *v)
{
    gd_instance_view view;
    gd_instance_look(v, &view);
    if (view.dict == NULL && ((Py_TYPE(v)->tp_flags & Py_TPFLAGS_MANAGED_DICT) || Py_TYPE(v)->tp_dictoffset != 0)) {
        view.dict = PyObject_GenericGetDict(v, NULL);
        if (view.dict == NULL) {
            PyErr_Clear();
        }
        Py_XDECREF(view.dict); /* the instance holds it */
    }
    return view.dict;
}

/* Position of the name among inline values: `hint` when it is right, else found by its address, then by its text (names
 * of attributes are interned but for those set by unusual means). -1 when absent. */
Py_ssize_t gd_inline_position(const gd_instance_view *view, PyObject *name, uint64_t hint);

/* The value at a position; borrowed, or NULL where the attribute is not set. */
static inline PyObject *
gd_inline_value(const gd_instance_view *view, Py_ssize_t position)
{
    return view->values->values[position];
}

/* Whether the position has exactly this name object. */
static inline int
gd_inline_is(const gd_instance_view *view, Py_ssize_t position, PyObject *name)
{
    return position < view->keys->dk_nentries && DK_UNICODE_ENTRIES(view->keys)[position].me_key == name;
}

/* Items a tuple iterator has left, from `*first` of `*seq` on (borrowed; NULL when exhausted). 0 for another object. */
int gd_tuple_iter_look(PyObject *v, PyObject **seq, Py_ssize_t *first);

/* Code of a frame; borrowed. */
static inline PyObject *
gd_py_frame_code(PyFrameObject *frame)
{
    return (PyObject *)frame->f_frame->f_code;
}

/* A frame object of the code that stands at byte offset lasti and never ran: what a traceback entry shows. Its locals
 * are unbound; reading f_locals is safe. new, or NULL with an exception. */
PyFrameObject *gd_py_show_frame(PyCodeObject *code, PyObject *globals, int lasti, PyFrameObject *source,
                                PyObject *shown);

/* Gives a frame that gd_py_show_frame has made, or another that has ended, the value of a variable that it has none of.
 * index: of localsplus. 0, or -1 with an exception. */
int gd_py_show_value(PyFrameObject *frame, int index, PyObject *value);

/* Makes back the f_back of a frame that has ended where that is was, which may be NULL. */
void gd_py_set_back(PyFrameObject *frame, PyFrameObject *was, PyFrameObject *back);

/* Whether the layouts this file assumes are those of this interpreter. 0 or -1 with an exception. */
int gd_pycompat_guard_check(void);

#else
#    error "godynamo: guards of this CPython version have not been written; see docs/porting.md"
#endif

#endif
