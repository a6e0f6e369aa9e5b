/* Finds out whether a frame that drops its references to a value thereby runs the user's code. */
#include "guards/end.h"

#include "guards/access.h"
#include "guards/weak.h"
#include "pycommon/guard.h"
#include "torch/tensor_layout.h"

/* How many objects the search visits, and how deep it goes. */
enum { OBJECTS = 64, LEVELS = 16 };

typedef struct {
    int stores; /* 1 for a value that a store replaces: a search that reaches its bounds then assumes that code runs */
    Py_ssize_t spare; /* references dropped in addition to the one through which the search reached the object */
    int objects, levels, nmet;
    struct {
        PyObject *object; /* borrowed */
        Py_ssize_t times;
    } met[OBJECTS]; /* objects with several references; times: references that deallocated objects hold */
} look;

/* Counts one reference to v, held by an object that is deallocated. Returns 1 exactly once, when no other
 * references to v remain, so that v is deallocated as well. Otherwise returns 0. */
static int
is_last(PyObject *v, look *l)
{
    Py_ssize_t others = Py_REFCNT(v) - 1, spare = l->spare;
    if (!l->stores) {
        l->spare = 0; /* only the variable's value has spare references; the objects that the value holds have none */
    }
    if (others == 0) {
        return 1;
    }
    if (others > spare + OBJECTS) {
        return 0;
    }
    int i = 0;
    while (i < l->nmet && l->met[i].object != v) {
        i++;
    }
    if (i == l->nmet) {
        if (i == OBJECTS) {
            return l->stores;
        }
        l->met[l->nmet++].object = v;
        l->met[i].times = 0;
        return others <= spare;
    }
    return ++l->met[i].times == others - spare;
}

/* Reports whether dropping one reference to v may run code. */
static int
ends(PyObject *v, void *arg)
{
    look *l = arg;
    PyTypeObject *type = Py_TYPE(v);
    if (PyType_Check(v) || PyModule_Check(v)) {
        return 0; /* classes and modules outlive a call */
    }
    int runs = type->tp_finalize != NULL || type->tp_del != NULL;
    if (!runs && gd_tensor_layout.base != NULL && PyType_IsSubtype(type, gd_tensor_layout.base)) {
        /* A tensor's autograd nodes are skipped. So are its weak references, since torch's own weak
         * references have callbacks. */
        PyObject **dict = _PyObject_GetDictPtr(v);
        return dict != NULL && *dict != NULL && PyDict_GET_SIZE(*dict) > 0 && is_last(v, l) && ends(*dict, l);
    }
    runs = runs || gd_watched(v);
    if ((!runs && (!PyObject_IS_GC(v) || type->tp_traverse == NULL)) || !is_last(v, l)) {
        return 0;
    }
    if (runs) {
        return 1;
    }
    if (l->objects == 0 || l->levels == 0) {
        return l->stores;
    }
    l->objects--;
    l->levels--;
    int found = type->tp_traverse(v, ends, l);
    l->levels++;
    return found;
}

static int
look_from(PyObject *v, int places, int stores)
{
    look l;
    l.stores = stores;
    l.spare = places - 1;
    l.objects = OBJECTS;
    l.levels = LEVELS;
    l.nmet = 0;
    return ends(v, &l);
}

int
gd_ends_in_code(PyObject *v, int places)
{
    return look_from(v, places, 1);
}

int
gd_variable_ends_in_code(PyObject *v, int places)
{
    return look_from(v, places, 0);
}

/* The most references that the translation itself holds to one object. HELD: for each attempt to translate, to a value
 * that the translation examines. ALL: to the value of a variable. */
enum { HELD = 6, ALL = 1 << 20 };

int
gd_end_may_run_code(PyObject *v, int attempts)
{
    return look_from(v, attempts > 0 ? 1 + HELD * attempts : ALL, attempts > 0);
}

int
gd_item_ends_in_code(PyObject *v, Py_ssize_t i, int places)
{
    if (PyCell_Check(v)) {
        return PyCell_GET(v) != NULL && gd_ends_in_code(PyCell_GET(v), places);
    }
    Py_ssize_t n = gd_storage_length(v);
    if (i < 0) {
        i += n;
    }
    if (i < 0 || i >= n) {
        return 0;
    }
    if (PyList_Check(v) || PyTuple_Check(v)) {
        return gd_ends_in_code(PySequence_Fast_ITEMS(v)[i], places);
    }
    PyObject *item = gd_deque_item(v, i);
    return item != NULL && gd_ends_in_code(item, places);
}

int
gd_ends_in_code_at(PyObject *owner, PyObject *at, int slot, int places)
{
    PyObject *had = NULL;
    if (slot) {
        PyObject *d = _PyType_Lookup(Py_TYPE(owner), at);
        had = d != NULL && Py_IS_TYPE(d, &PyMemberDescr_Type)
                  ? gd_slot_value(owner, at, (uint32_t)((PyMemberDescrObject *)d)->d_member->offset)
                  : NULL;
    }
    else if (PyDict_Check(owner)) {
        had = PyDict_GetItemWithError(owner, at);
    }
    else if (PyUnicode_CheckExact(at)) {
        gd_inline_cache cache = {0, NULL};
        had = gd_instance_attr(owner, at, PyObject_Hash(at), &cache);
    }
    else if (PyLong_CheckExact(at)) {
        Py_ssize_t i = PyLong_AsSsize_t(at);
        return PyErr_Occurred() ? -1 : gd_item_ends_in_code(owner, i, places);
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    return had != NULL && gd_ends_in_code(had, places);
}
