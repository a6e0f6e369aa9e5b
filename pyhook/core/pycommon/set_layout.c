/* The hash table of a set, as in Objects/setobject.c of CPython 3.11 to 3.13. */
#include "set_layout.h"

#include <string.h>

/* Returns the object as a set, borrowed; NULL with TypeError set if it is not one. */
static PySetObject *
as_set(PyObject *object)
{
    if (PyType_IsSubtype(Py_TYPE(object), &PySet_Type)) {
        return (PySetObject *)object;
    }
    PyErr_Format(PyExc_TypeError, "set expected, got %.100s", Py_TYPE(object)->tp_name);
    return NULL;
}

/* Returns a new set with the same keys at the same positions and the same gaps, or NULL with an exception set. No
 * key is hashed or compared. */
static PyObject *
set_clone(PyObject *module, PyObject *object)
{
    (void)module;
    PySetObject *from = as_set(object);
    PySetObject *to = from != NULL ? (PySetObject *)PySet_New(NULL) : NULL;
    if (to == NULL) {
        return NULL;
    }
    size_t size = ((size_t)from->mask + 1) * sizeof(setentry);
    if (from->table != from->smalltable) {
        setentry *table = PyMem_Malloc(size);
        if (table == NULL) {
            Py_DECREF(to);
            return PyErr_NoMemory();
        }
        to->table = table;
    }
    memcpy(to->table, from->table, size);
    to->fill = from->fill;
    to->used = from->used;
    to->mask = from->mask;
    to->finger = from->finger;
    for (Py_ssize_t i = 0; i <= to->mask; i++) {
        if (to->table[i].key != NULL && to->table[i].key != _PySet_Dummy) { /* gaps hold no reference */
            Py_INCREF(to->table[i].key);
        }
    }
    return (PyObject *)to;
}

/* Returns a new tuple, or NULL with an exception set. Its three items: the position where pop() searches next;
 * bytes with the state of each position (0 empty, 1 a gap, 2 a key); the keys in order. */
static PyObject *
set_layout(PyObject *module, PyObject *object)
{
    (void)module;
    PySetObject *set = as_set(object);
    if (set == NULL) {
        return NULL;
    }
    PyObject *keys = NULL;
    do { /* PyTuple_New may run a finalizer that changes the set; the code after the loop runs none */
        Py_XSETREF(keys, PyTuple_New(set->used));
    } while (keys != NULL && PyTuple_GET_SIZE(keys) != set->used);
    PyObject *places = keys != NULL ? PyBytes_FromStringAndSize(NULL, set->mask + 1) : NULL;
    if (places == NULL) {
        Py_XDECREF(keys);
        return NULL;
    }
    char *place = PyBytes_AS_STRING(places);
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; i <= set->mask; i++) {
        PyObject *key = set->table[i].key;
        place[i] = (char)(key == NULL ? 0 : key == _PySet_Dummy ? 1 : 2);
        if (place[i] == 2) {
            PyTuple_SET_ITEM(keys, n++, Py_NewRef(key));
        }
    }
    return Py_BuildValue("(nNN)", set->finger & set->mask, places, keys);
}

static PyMethodDef functions[] = {
    {"set_clone", set_clone, METH_O,
     "set_clone(s) -> set\n\nA set that behaves as s will: its order after any change is that of s."},
    {"set_layout", set_layout, METH_O, "set_layout(s) -> tuple\n\nWhat the order of s after any change depends on."},
    {NULL, NULL, 0, NULL},
};

int
gd_set_layout_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
