/* Reads iterators of builtin types. Their layouts are those of Objects/listobject.c, tupleobject.c, rangeobject.c,
 * dictobject.c and enumobject.c, and of Python/bltinmodule.c, from 3.11 to 3.14. No header declares most of them, so
 * gd_iterators_init compares each with a real iterator. */
#include "guards/iterators.h"

typedef struct { /* list_iterator, tuple_iterator, list_reverseiterator, reversed */
    PyObject_HEAD Py_ssize_t index;
    PyObject *seq; /* NULL once the iterator has ended */
} sequence_iterator;

typedef struct { /* 3.11 has an index ahead of these fields, and `len` does not change there */
    PyObject_HEAD long fields[4];
} range_iterator;

typedef struct {
    PyObject_HEAD PyObject *dict; /* NULL once the iterator has ended */
    Py_ssize_t used, pos;
    PyObject *result;
    Py_ssize_t len; /* how many items are left */
} dict_iterator;

typedef struct {
    PyObject_HEAD Py_ssize_t index;
    PyObject *iterator, *result, *long_index; /* long_index is NULL while index counts */
} enumerate_object;

typedef struct {
    PyObject_HEAD Py_ssize_t size;
    PyObject *iterators, *result;
    int strict;
} zip_object;

typedef struct { /* 3.14 has a field `strict` */
    PyObject_HEAD PyObject *iterators, *function;
    int strict;
} map_object;

typedef struct {
    PyObject_HEAD PyObject *function, *iterator;
} filter_object;

enum { OLD_RANGE = sizeof(PyObject) + 4 * sizeof(long), NEW_RANGE = sizeof(PyObject) + 3 * sizeof(long) };

static int layouts_known; /* set by gd_iterators_init; without it, no iterator can be read */

static int
is_dict_iterator(PyTypeObject *type)
{
    return type == &PyDictIterKey_Type || type == &PyDictIterValue_Type || type == &PyDictIterItem_Type;
}

/* Reports whether the type's iterators step through a list or tuple. */
static int
is_sequence_iterator(PyTypeObject *type)
{
    return type == &PyListIter_Type || type == &PyTupleIter_Type || type == &PyListRevIter_Type
           || type == &PyReversed_Type;
}

static int
steps_back(PyTypeObject *type)
{
    return type == &PyListRevIter_Type || type == &PyReversed_Type;
}

/* Reports whether an iterator over a list or tuple can be read: a subclass may define its own items. */
static int
is_plain_sequence(PyObject *seq)
{
    return seq == NULL || PyList_CheckExact(seq) || PyTuple_CheckExact(seq);
}

static int
is_strict_map(PyObject *v)
{
    return PyMap_Type.tp_basicsize >= (Py_ssize_t)sizeof(map_object) && ((map_object *)v)->strict;
}

static int
is_strict_zip(PyObject *v)
{
    return Py_IS_TYPE(v, &PyZip_Type) && ((zip_object *)v)->strict;
}

/* Returns the iterators of a zip or map, borrowed. Returns NULL for other objects, and for a strict map. */
static PyObject *
parallel(PyObject *v)
{
    PyObject *all = NULL;
    if (layouts_known && Py_IS_TYPE(v, &PyZip_Type)) {
        all = ((zip_object *)v)->iterators;
    }
    else if (layouts_known && Py_IS_TYPE(v, &PyMap_Type) && !is_strict_map(v)) {
        all = ((map_object *)v)->iterators;
    }
    return all != NULL && PyTuple_CheckExact(all) ? all : NULL;
}

PyObject *
gd_iterator_part(PyObject *v, uint32_t i)
{
    PyTypeObject *type = Py_TYPE(v);
    PyObject *all = parallel(v);
    if (all != NULL && type == &PyMap_Type && i-- == 0) {
        return ((map_object *)v)->function;
    }
    if (all != NULL) {
        return (Py_ssize_t)i < PyTuple_GET_SIZE(all) ? PyTuple_GET_ITEM(all, i) : NULL;
    }
    if (layouts_known && type == &PyFilter_Type && i < 2) {
        return i == 0 ? ((filter_object *)v)->function : ((filter_object *)v)->iterator;
    }
    if (!layouts_known || i != 0) {
        return NULL;
    }
    if (type == &PyEnum_Type) {
        return ((enumerate_object *)v)->iterator;
    }
    if (is_sequence_iterator(type)) {
        PyObject *seq = ((sequence_iterator *)v)->seq;
        return is_plain_sequence(seq) ? seq : NULL;
    }
    PyObject *dict = is_dict_iterator(type) ? ((dict_iterator *)v)->dict : NULL;
    return dict != NULL && PyDict_CheckExact(dict) ? dict : NULL;
}

/* Reads the pair that an iterator over a dict reaches after i others: *key and *value are borrowed. Returns 0 if there
 * is none. */
static int
dict_pair(const dict_iterator *it, uint32_t i, PyObject **key, PyObject **value)
{
    PyObject *dict = it->dict;
    if (dict == NULL || !PyDict_CheckExact(dict) || it->used != PyDict_GET_SIZE(dict) || (Py_ssize_t)i >= it->len) {
        return 0;
    }
    Py_ssize_t at = it->pos;
    do {
        if (!PyDict_Next(dict, &at, key, value)) {
            return 0;
        }
    } while (i-- > 0);
    return 1;
}

PyObject *
gd_iterator_item(PyObject *v, uint32_t i)
{
    PyTypeObject *type = Py_TYPE(v);
    PyObject *key, *value;
    if (layouts_known && is_dict_iterator(type)) {
        if (!dict_pair((dict_iterator *)v, i, &key, &value)) {
            return NULL;
        }
        return type == &PyDictIterValue_Type ? value : key;
    }
    if ((Py_ssize_t)i >= gd_iterator_left(v) || !is_sequence_iterator(type)) {
        return NULL;
    }
    const sequence_iterator *it = (sequence_iterator *)v;
    Py_ssize_t at = steps_back(type) ? it->index - (Py_ssize_t)i : it->index + (Py_ssize_t)i;
    return PyList_CheckExact(it->seq) ? PyList_GET_ITEM(it->seq, at) : PyTuple_GET_ITEM(it->seq, at);
}

PyObject *
gd_iterator_value(PyObject *v, uint32_t i)
{
    PyObject *key, *value;
    return layouts_known && Py_IS_TYPE(v, &PyDictIterItem_Type) && dict_pair((dict_iterator *)v, i, &key, &value)
               ? value
               : NULL;
}

int
gd_iterator_number(PyObject *v, uint32_t i, int64_t *number)
{
    if (layouts_known && Py_IS_TYPE(v, &PyEnum_Type)) {
        const enumerate_object *it = (enumerate_object *)v;
        return it->long_index == NULL && !__builtin_add_overflow((int64_t)it->index, (int64_t)i, number);
    }
    if (!Py_IS_TYPE(v, &PyRangeIter_Type) || (Py_ssize_t)i >= gd_iterator_left(v)) {
        return 0;
    }
    const long *f = ((range_iterator *)v)->fields;
    /* 3.11: index, start, step, len. Later: start, step, len. All items of such an iterator fit a long. */
    *number = PyRangeIter_Type.tp_basicsize == OLD_RANGE ? f[1] + (f[0] + (long)i) * f[2] : f[0] + (long)i * f[1];
    return 1;
}

static Py_ssize_t
sequence_left(PyTypeObject *type, const sequence_iterator *it)
{
    if (it->seq == NULL || (steps_back(type) && it->index < 0)) {
        return -1; /* an iterator that steps back keeps its list from 3.13 on, and yields nothing that is added */
    }
    if (!is_plain_sequence(it->seq)) {
        return -2;
    }
    Py_ssize_t size = Py_SIZE(it->seq);
    if (steps_back(type)) {
        return it->index < size ? it->index + 1 : 0;
    }
    return it->index < size ? size - it->index : 0;
}

static Py_ssize_t
dict_left(const dict_iterator *it)
{
    if (it->dict == NULL) {
        return -1;
    }
    if (!PyDict_CheckExact(it->dict) || it->used != PyDict_GET_SIZE(it->dict)) {
        return -2;
    }
    PyObject *key, *value;
    Py_ssize_t at = it->pos;
    if (it->len == 0 && PyDict_Next(it->dict, &at, &key, &value)) {
        return -2; /* its keys were replaced, so the next step raises */
    }
    return it->len;
}

Py_ssize_t
gd_iterator_left(PyObject *v)
{
    PyTypeObject *type = Py_TYPE(v);
    PyObject *all = parallel(v);
    if (all != NULL) {
        return PyTuple_GET_SIZE(all) + (is_strict_zip(v) ? GD_STRICT : 0);
    }
    if (!layouts_known) {
        return -2;
    }
    if (is_sequence_iterator(type)) {
        return sequence_left(type, (sequence_iterator *)v);
    }
    if (is_dict_iterator(type)) {
        return dict_left((dict_iterator *)v);
    }
    if (type == &PyRangeIter_Type) {
        const long *f = ((range_iterator *)v)->fields;
        return PyRangeIter_Type.tp_basicsize == OLD_RANGE ? f[3] - f[0] : f[2];
    }
    return -2;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

/* v: borrowed. Returns a new reference to it; for NULL sets an exception. */
static PyObject *
found(PyObject *v)
{
    if (v == NULL) {
        PyErr_SetString(PyExc_IndexError, "the iterator has no such part or item");
    }
    return Py_XNewRef(v);
}

/* Reads the arguments of the functions below; *v is borrowed. Returns 0 with an exception set if they are others. */
static int
place_of(PyObject *args, PyObject **v, unsigned int *i)
{
    return PyArg_ParseTuple(args, "OI", v, i);
}

/* Calls `read`, one of the functions above, with the arguments. Returns a new reference, or NULL with an exception set.
 */
static PyObject *
read_at(PyObject *args, PyObject *(*read)(PyObject *, uint32_t))
{
    PyObject *v;
    unsigned int i;
    return place_of(args, &v, &i) ? found(read(v, i)) : NULL;
}

static PyObject *
iterator_part(PyObject *Py_UNUSED(module), PyObject *args)
{
    return read_at(args, gd_iterator_part);
}

static PyObject *
iterator_item(PyObject *Py_UNUSED(module), PyObject *args)
{
    return read_at(args, gd_iterator_item);
}

static PyObject *
iterator_value(PyObject *Py_UNUSED(module), PyObject *args)
{
    return read_at(args, gd_iterator_value);
}

static PyObject *
iterator_number(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *v;
    unsigned int i;
    int64_t number;
    if (!place_of(args, &v, &i)) {
        return NULL;
    }
    return gd_iterator_number(v, i, &number) ? PyLong_FromLongLong(number) : found(NULL);
}

static PyObject *
iterator_left(PyObject *Py_UNUSED(module), PyObject *v)
{
    return PyLong_FromSsize_t(gd_iterator_left(v));
}

static PyMethodDef functions[] = {
    {"iterator_part", iterator_part, METH_VARARGS,
     "iterator_part(iterator, i) -> Any\n\nA part of an iterator of a builtin type, as guards read it."},
    {"iterator_item", iterator_item, METH_VARARGS,
     "iterator_item(iterator, i) -> Any\n\nThe item that follows i others. The iterator is not advanced."},
    {"iterator_value", iterator_value, METH_VARARGS,
     "iterator_value(iterator, i) -> Any\n\nThe value of the pair that follows i others."},
    {"iterator_number", iterator_number, METH_VARARGS,
     "iterator_number(iterator, i) -> int\n\nThe number that follows i others."},
    {"iterator_left", iterator_left, METH_O,
     "iterator_left(iterator) -> int\n\nHow many items are left. -1: it has ended. -2: unknown."},
    {NULL, NULL, 0, NULL},
};

/* Reports whether the sizes of the objects are those of the layouts above. */
static int
sizes_fit(void)
{
    Py_ssize_t range = PyRangeIter_Type.tp_basicsize, sequence = sizeof(sequence_iterator);
    return PyListIter_Type.tp_basicsize == sequence && PyTupleIter_Type.tp_basicsize == sequence
           && PyListRevIter_Type.tp_basicsize == sequence && PyReversed_Type.tp_basicsize == sequence
           && (range == OLD_RANGE || range == NEW_RANGE)
           && PyDictIterKey_Type.tp_basicsize == (Py_ssize_t)sizeof(dict_iterator)
           && PyDictIterValue_Type.tp_basicsize == (Py_ssize_t)sizeof(dict_iterator)
           && PyDictIterItem_Type.tp_basicsize == (Py_ssize_t)sizeof(dict_iterator)
           && PyEnum_Type.tp_basicsize >= (Py_ssize_t)sizeof(enumerate_object)
           && PyZip_Type.tp_basicsize == (Py_ssize_t)sizeof(zip_object)
           && PyMap_Type.tp_basicsize >= (Py_ssize_t)sizeof(filter_object)
           && PyFilter_Type.tp_basicsize == (Py_ssize_t)sizeof(filter_object);
}

/* Reports whether the fields of an iterator over list(range(3)), and of one over its pairs in a dict, are where the
 * layouts have them. On errors, sets an exception and returns 0. */
static int
fields_fit(void)
{
    PyObject *list = Py_BuildValue("[iii]", 5, 6, 7), *dict = Py_BuildValue("{iiii}", 5, 6, 7, 8);
    PyObject *it = list != NULL ? PyObject_GetIter(list) : NULL, *pairs = dict != NULL ? PyObject_GetIter(dict) : NULL;
    PyObject *counted = it != NULL ? PyObject_CallOneArg((PyObject *)&PyEnum_Type, it) : NULL;
    PyObject *zip = counted != NULL ? PyObject_CallOneArg((PyObject *)&PyZip_Type, counted) : NULL;
    PyObject *first = zip != NULL ? PyIter_Next(zip) : NULL, *key = pairs != NULL ? PyIter_Next(pairs) : NULL;
    int64_t count = 0;
    int fit = first != NULL && key != NULL && gd_iterator_part(zip, 0) == counted && gd_iterator_part(counted, 0) == it
              && gd_iterator_number(counted, 0, &count) && count == 1 && gd_iterator_part(it, 0) == list
              && gd_iterator_left(it) == 2 && gd_iterator_item(it, 1) == PyList_GET_ITEM(list, 2)
              && gd_iterator_part(pairs, 0) == dict && gd_iterator_left(pairs) == 1
              && gd_iterator_item(pairs, 0) == PyList_GET_ITEM(list, 2);
    PyObject *made[] = {list, dict, it, pairs, counted, zip, first, key};
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        Py_XDECREF(made[i]);
    }
    return fit;
}

int
gd_iterators_init(PyObject *module)
{
    layouts_known = sizes_fit();
    layouts_known = layouts_known && fields_fit();
    return PyErr_Occurred() ? -1 : PyModule_AddFunctions(module, functions);
}
