/* Reads instance attributes from storage, on CPython 3.11 to 3.14. This is the only file of the package that
 * includes internal headers. Py_BUILD_CORE must be defined before Python.h, so that Python.h agrees with
 * the internal headers. */
#define Py_BUILD_CORE 1
#define Py_BUILD_CORE_MODULE 1 /* 3.12 does not export the variable that holds the current thread's state */
#include "helpers.h"

#include "internal/pycore_dict.h"
#include "internal/pycore_object.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
/* Reads where an instance of a class with managed dicts keeps its attributes: in 3.11 there are two pointers. Sets
 * *values to the inline values, or to NULL. Returns the existing dict, borrowed, or NULL. */
static PyObject *
managed_dict(PyObject *o, PyDictValues **values)
{
    *values = *_PyObject_ValuesPointer(o);
    return *_PyObject_ManagedDictPointer(o);
}

/* Returns the dict of a class, borrowed, or NULL. */
PyObject *
gdpy_type_dict(PyTypeObject *type)
{
    return type->tp_dict;
}
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
/* Reads the same in 3.12, where one pointer leads to either; bit 0 marks inline values. Returns the existing dict,
 * borrowed, or NULL. */
static PyObject *
managed_dict(PyObject *o, PyDictValues **values)
{
    PyDictOrValues either = *_PyObject_DictOrValuesPointer(o);
    int inlined = _PyDictOrValues_IsValues(either);
    *values = inlined ? _PyDictOrValues_GetValues(either) : NULL;
    return inlined ? NULL : _PyDictOrValues_GetDict(either);
}

#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030F0000
/* Reads the same in 3.13 and 3.14, where the values are in the object. They are its attributes while `valid` is set, even if
 * there is a dict, which then shares them. Returns the existing dict, borrowed, or NULL. */
static PyObject *
managed_dict(PyObject *o, PyDictValues **values)
{
    int inlined = (Py_TYPE(o)->tp_flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(o)->valid;
    *values = inlined ? _PyObject_InlineValues(o) : NULL;
    return (PyObject *)_PyObject_ManagedDictPointer(o)->dict;
}
#else
#    error "inline values have not been checked on this CPython"
#endif

#if PY_VERSION_HEX >= 0x030C0000
/* Returns the dict of a class, borrowed, or NULL. */
PyObject *
gdpy_type_dict(PyTypeObject *type)
{
    PyObject *dict = type->tp_dict;
    if (dict == NULL) { /* the interpreter keeps the dicts of its own static classes */
        dict = PyType_GetDict(type);
        Py_XDECREF(dict);
    }
    return dict;
}
#endif

/* Returns an attribute from the inline values as a new reference, or NULL. CPython keeps the
 * attributes of most instances in a values array, with a keys table shared by the type
 * (Objects/dictobject.c, _PyObject_GetInstanceAttribute). Reading __dict__ would convert them to a dict
 * for good. */
static PyObject *
inline_value(PyTypeObject *t, PyDictValues *values, PyObject *name)
{
    PyDictKeysObject *keys = ((PyHeapTypeObject *)t)->ht_cached_keys;
    if (keys == NULL || !DK_IS_UNICODE(keys)) {
        return NULL;
    }
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        PyObject *key = entries[i].me_key;
        if (key == name || (key != NULL && PyUnicode_Compare(key, name) == 0)) {
            PyObject *v = values->values[i];
            Py_XINCREF(v);
            return v;
        }
    }
    return NULL;
}

/* Returns the existing dict, borrowed, or NULL if there is none. Sets *values to the inline values or NULL. */
static PyObject *
existing_dict(PyObject *o, PyDictValues **values)
{
    PyTypeObject *t = Py_TYPE(o);
    *values = NULL;
    if (PyType_Check(o)) { /* from 3.12 on the interpreter's own classes have an empty slot, which must stay so */
        return gdpy_type_dict((PyTypeObject *)o);
    }
    if (t->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        return managed_dict(o, values);
    }
    Py_ssize_t offset = t->tp_dictoffset;
    if (offset == 0) {
        return NULL;
    }
    if (offset < 0) {
        Py_ssize_t n = Py_SIZE(o);
        size_t size = _PyObject_VAR_SIZE(t, n < 0 ? -n : n);
        offset += (Py_ssize_t)size;
    }
    return *(PyObject **)((char *)o + offset);
}

PyObject *
gdpy_instance_attr(PyObject *o, PyObject *name)
{
    PyDictValues *values;
    PyObject *d = existing_dict(o, &values);
    if (values != NULL) {
        return inline_value(Py_TYPE(o), values, name);
    }
    if (d == NULL) {
        return NULL;
    }
    PyObject *v = PyDict_GetItemWithError(d, name);
    if (v == NULL) {
        gdpy_forget_error();
    }
    Py_XINCREF(v);
    return v;
}

/* Reports whether the dict has a key that is not an exact str: looking up a name may then run the key's
 * own __eq__. */
int
gdpy_odd_keys(PyObject *d)
{
    PyObject *key;
    if (DK_IS_UNICODE(((PyDictObject *)d)->ma_keys)) {
        return 0;
    }
    Py_ssize_t at = 0;
    while (PyDict_Next(d, &at, &key, NULL)) {
        if (!PyUnicode_CheckExact(key)) {
            return 1;
        }
    }
    return 0;
}

/* Reports whether a class in the type's MRO has such a key. */
int
gdpy_odd_class(PyObject *type)
{
    PyObject *mro = ((PyTypeObject *)type)->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *d = gdpy_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        if (d != NULL && gdpy_odd_keys(d)) {
            return 1;
        }
    }
    return 0;
}

int
gdpy_odd_attributes(PyObject *o)
{
    PyDictValues *values;
    PyObject *d = existing_dict(o, &values);
    return values == NULL && d != NULL && gdpy_odd_keys(d);
}

PyObject *
gdpy_instance_dict(PyObject *o)
{
    PyDictValues *values;
    PyObject *d = existing_dict(o, &values);
    Py_XINCREF(d);
    return d;
}

PyObject *
gdpy_made_dict(PyObject *o)
{
    if (PyType_Check(o)) {
        return Py_XNewRef(gdpy_type_dict((PyTypeObject *)o));
    }
    PyObject *d = gdpy_has_instance_storage(o) ? PyObject_GenericGetDict(o, NULL) : NULL;
    if (d == NULL) {
        gdpy_forget_error();
    }
    return d;
}

int
gdpy_has_instance_storage(PyObject *o)
{
    PyTypeObject *t = Py_TYPE(o);
    return (t->tp_flags & Py_TPFLAGS_MANAGED_DICT) || t->tp_dictoffset != 0;
}

PyObject *
gdpy_type_params(const PyFunctionObject *function)
{
#if PY_VERSION_HEX >= 0x030C0000
    return function->func_typeparams;
#else
    (void)function;
    return NULL;
#endif
}

PyObject *
gdpy_annotate(const PyFunctionObject *function)
{
#if PY_VERSION_HEX >= 0x030E0000
    return function->func_annotate;
#else
    (void)function;
    return NULL;
#endif
}
