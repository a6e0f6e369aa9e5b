/* Dict probing that calls no user code, inline values, tuple iterators. This follows Objects/dictobject.c and
 * Objects/tupleobject.c. */
#include "pycommon/guard.h"
#include "guards/pure.h"

/* Hash bits mixed in at each further probe: PERTURB_SHIFT of Objects/dictobject.c. */
enum { PERTURB = 5 };

/* Returns the entry number at index i of the hash table, or a negative DKIX_*. */
static inline Py_ssize_t
table_at(const PyDictKeysObject *keys, size_t i)
{
    const void *table = keys->dk_indices;
    int bits = DK_LOG_SIZE(keys);
    if (bits < 8) {
        return ((const int8_t *)table)[i];
    }
    if (bits < 16) {
        return ((const int16_t *)table)[i];
    }
    if (bits < 32) {
        return ((const int32_t *)table)[i];
    }
    return (Py_ssize_t)((const int64_t *)table)[i];
}

/* Reports whether gd_same_key compares keys of this type as CPython does. */
static int
is_plain(PyTypeObject *type)
{
    return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBytes_Type || type == &PyFloat_Type
           || type == &PyBool_Type || type == &PyComplex_Type || type == &PyTuple_Type || type == Py_TYPE(Py_None);
}

/* Finds the key in the dict's hash table. Returns the dict's own value, borrowed, or NULL. Sets *sure to 0 if a key of
 * another type has the same hash and CPython would call that type's comparison, which may find it equal. */
static PyObject *
probe(PyObject *dict, PyObject *key, Py_hash_t hash, int *sure)
{
    PyDictObject *mp = (PyDictObject *)dict;
    PyDictKeysObject *keys = mp->ma_keys;
    size_t mask = (size_t)DK_SIZE(keys) - 1;
    size_t perturb = (size_t)hash;
    size_t i = (size_t)hash & mask;
    *sure = 1;
    for (;;) {
        Py_ssize_t ix = table_at(keys, i);
        if (ix == DKIX_EMPTY) {
            return NULL;
        }
        if (ix >= 0 && keys->dk_kind == DICT_KEYS_GENERAL) {
            PyDictKeyEntry *entry = &DK_ENTRIES(keys)[ix];
            if (entry->me_key == key) {
                return entry->me_value;
            }
            if (entry->me_hash == hash) {
                if (gd_same_key(entry->me_key, key)) {
                    return entry->me_value;
                }
                if (Py_TYPE(entry->me_key) != Py_TYPE(key) && !is_plain(Py_TYPE(entry->me_key))) {
                    *sure = 0;
                    return NULL;
                }
            }
        }
        else if (ix >= 0) {
            PyDictUnicodeEntry *entry = &DK_UNICODE_ENTRIES(keys)[ix];
            if (entry->me_key == key
                || (((PyASCIIObject *)entry->me_key)->hash == hash && gd_same_key(entry->me_key, key))) {
                return mp->ma_values != NULL ? mp->ma_values->values[ix] : entry->me_value;
            }
        }
        perturb >>= PERTURB;
        i = (i * 5 + perturb + 1) & mask;
    }
}

PyObject *
gd_dict_lookup(PyObject *dict, PyObject *key, Py_hash_t hash)
{
    int sure;
    return probe(dict, key, hash, &sure);
}

int
gd_dict_find(PyObject *dict, PyObject *object, Py_hash_t hash, PyObject **value)
{
    PyDictObject *mp = (PyDictObject *)dict;
    PyDictKeysObject *keys = mp->ma_keys;
    *value = NULL;
    if (keys->dk_kind != DICT_KEYS_GENERAL) {
        return 0; /* all keys are str */
    }
    size_t mask = (size_t)DK_SIZE(keys) - 1, perturb = (size_t)hash, i = (size_t)hash & mask;
    for (;;) {
        Py_ssize_t ix = table_at(keys, i);
        if (ix == DKIX_EMPTY) {
            return 0;
        }
        const PyDictKeyEntry *entry = ix >= 0 ? &DK_ENTRIES(keys)[ix] : NULL;
        if (entry != NULL && entry->me_key == object) {
            *value = entry->me_value;
            return 1;
        }
        if (entry != NULL && entry->me_hash == hash && !is_plain(Py_TYPE(entry->me_key))) {
            return -1;
        }
        perturb >>= PERTURB;
        i = (i * 5 + perturb + 1) & mask;
    }
}

int
gd_dict_at(PyObject *dict, Py_ssize_t i, PyObject **key, PyObject **value)
{
    const PyDictObject *mp = (const PyDictObject *)dict;
    Py_ssize_t at = 0;
    if (i < 0) {
        return 0;
    }
    if (mp->ma_values == NULL && mp->ma_keys->dk_nentries == mp->ma_used) { /* no key was ever deleted */
        at = i;
        i = 0;
    }
    for (; PyDict_Next(dict, &at, key, value); i--) {
        if (i == 0) {
            return 1;
        }
    }
    return 0;
}

/* The hash table of a set is that of Objects/setobject.c, in CPython 3.11 to 3.14. */

int
gd_set_find(PyObject *set, PyObject *object, Py_hash_t hash)
{
    const PySetObject *so = (const PySetObject *)set;
    int found = 0;
    for (Py_ssize_t i = 0; i <= so->mask; i++) {
        const setentry *entry = &so->table[i];
        if (entry->key == object) {
            found = 1;
        }
        else if (entry->key != NULL && entry->key != _PySet_Dummy && entry->hash == hash
                 && !is_plain(Py_TYPE(entry->key))) {
            return -1;
        }
    }
    return found;
}

PyObject *
gd_set_item(PyObject *set, Py_ssize_t i)
{
    const PySetObject *so = (const PySetObject *)set;
    for (Py_ssize_t at = 0; i >= 0 && at <= so->mask; at++) {
        PyObject *key = so->table[at].key;
        if (key != NULL && key != _PySet_Dummy && i-- == 0) {
            return key;
        }
    }
    return NULL;
}

int
gd_dict_lacks(PyObject *dict, PyObject *key, Py_hash_t hash)
{
    int sure;
    return probe(dict, key, hash, &sure) == NULL && sure;
}

Py_ssize_t
gd_inline_position(const gd_instance_view *view, PyObject *name, uint64_t hint)
{
    Py_ssize_t n = view->keys->dk_nentries;
    const PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(view->keys);
    if (hint < (uint64_t)n && entries[hint].me_key == name) {
        return (Py_ssize_t)hint;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (entries[i].me_key == name) {
            return i;
        }
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (gd_same_key(entries[i].me_key, name)) {
            return i;
        }
    }
    return -1;
}

/* tupleiterobject of Objects/tupleobject.c, which no header declares; gd_pycompat_guard_check compares it
 * with a real iterator. */
typedef struct {
    PyObject_HEAD Py_ssize_t index;
    PyObject *seq; /* NULL once exhausted */
} tuple_iter;

int
gd_tuple_iter_look(PyObject *v, PyObject **seq, Py_ssize_t *first)
{
    if (!Py_IS_TYPE(v, &PyTupleIter_Type)) {
        return 0;
    }
    *seq = ((tuple_iter *)v)->seq;
    *first = ((tuple_iter *)v)->index;
    return 1;
}

/* Sets one variable of a frame for a traceback. item: (index, place), where place is the index of the source
 * frame's variable that has the value, or (index, -1, value). If `from` is NULL, only the second form sets a value.
 * Returns 0, or -1 with an exception set. */
static int
show_local(PyCodeObject *code, _PyInterpreterFrame *to, _PyInterpreterFrame *from, PyObject *item)
{
    int index, place;
    PyObject *value = NULL;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "ii|O", &index, &place, &value)) {
        return -1;
    }
    if (value == NULL && from != NULL && place >= 0 && place < gd_py_code_run_by(from)->co_nlocalsplus) {
        value = gd_py_slot_object(from->localsplus[place]);
    }
    if (index < 0 || index >= code->co_nlocalsplus) {
        return 0;
    }
    _PyLocals_Kind kind = _PyLocals_GetKind(code->co_localspluskinds, index);
    if (value == NULL || ((kind & CO_FAST_FREE) && !PyCell_Check(value))) {
        return 0;
    }
    value = (kind & CO_FAST_CELL) && !PyCell_Check(value) ? PyCell_New(value) : Py_NewRef(value);
    if (value == NULL) {
        return -1;
    }
    gd_py_slot_set(&to->localsplus[index], value);
    return 0;
}

PyFrameObject *
gd_py_show_frame(PyCodeObject *code, PyObject *globals, int lasti, PyFrameObject *source, PyObject *shown)
{
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    if (frame == NULL) {
        return NULL;
    }
    _PyInterpreterFrame *inner = frame->f_frame;
    /* PyFrame_New makes a function without a closure. For a frame past its first instruction, reading f_locals
     * requires that the cells of the free variables exist (_PyFrame_FastToLocalsWithError of
     * Objects/frameobject.c). */
    int first = code->co_nlocalsplus - code->co_nfreevars;
    for (int i = 0; i < code->co_nfreevars; i++) {
        PyObject *cell = PyCell_New(NULL);
        if (cell == NULL) {
            Py_DECREF(frame);
            return NULL;
        }
        gd_py_slot_set(&inner->localsplus[first + i], cell);
    }
    int inside = lasti >= 0 && (Py_ssize_t)lasti < _PyCode_NBYTES(code);
    gd_py_frame_place(inner, inside ? lasti / (int)sizeof(_Py_CODEUNIT) : 0);
    for (Py_ssize_t i = 0; shown != NULL && i < PyTuple_GET_SIZE(shown); i++) {
        if (show_local(code, inner, source != NULL ? source->f_frame : NULL, PyTuple_GET_ITEM(shown, i)) < 0) {
            Py_DECREF(frame);
            return NULL;
        }
    }
    return frame;
}

int
gd_py_show_value(PyFrameObject *frame, int index, PyObject *value)
{
    _PyInterpreterFrame *inner = frame->f_frame;
    PyCodeObject *code = gd_py_code_run_by(inner);
    if (inner->owner != FRAME_OWNED_BY_FRAME_OBJECT || index < 0 || index >= code->co_nlocalsplus) {
        return 0;
    }
    PyObject *had = gd_py_slot_object(inner->localsplus[index]);
    if (had != NULL && !(PyCell_Check(had) && PyCell_GET(had) == NULL)) {
        return 0;
    }
    PyObject *item = Py_BuildValue("(iiO)", index, -1, value);
    int shown = item != NULL ? show_local(code, inner, NULL, item) : -1;
    Py_XDECREF(item);
    return shown;
}

void
gd_py_set_back(PyFrameObject *frame, PyFrameObject *was, PyFrameObject *back)
{
    if (frame->f_back == was) {
        Py_XSETREF(frame->f_back, (PyFrameObject *)Py_NewRef(back));
    }
}

int
gd_pycompat_guard_check(void)
{
    PyObject *tuple = PyTuple_Pack(3, Py_None, Py_True, Py_False);
    PyObject *iter = tuple != NULL ? PyObject_GetIter(tuple) : NULL;
    PyObject *item = iter != NULL ? PyIter_Next(iter) : NULL;
    int ok = -1;
    if (item != NULL) {
        PyObject *seq = NULL;
        Py_ssize_t first = -1;
        ok = PyTupleIter_Type.tp_basicsize == sizeof(tuple_iter) && gd_tuple_iter_look(iter, &seq, &first)
                     && seq == tuple && first == 1
                 ? 0
                 : -1;
        if (ok < 0) {
            PyErr_SetString(PyExc_ImportError, "godynamo: this CPython's tuple iterators are not those expected");
        }
    }
    Py_XDECREF(item);
    Py_XDECREF(iter);
    Py_XDECREF(tuple);
    return ok < 0 ? ok : gd_dict_versions_init();
}
