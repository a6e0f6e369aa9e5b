/* What happens when a value that the program replaces ends. */
#include "guard_eval.h"
#include "pycompat_guard_311.h"
#include "tensor_layout.h"

/* How many objects a look takes in, and how deep it goes; beyond, anything may happen. */
enum { OBJECTS = 64, LEVELS = 16 };

typedef struct {
    int objects, levels;
} look;

static int look_at(PyObject *v, void *l);

/* Whether the end of v may run code, where `held` references to it are not the program's. */
static int
ends(PyObject *v, int held, look *l)
{
    PyTypeObject *type = Py_TYPE(v);
    if (Py_REFCNT(v) > 1 + held || (gd_tensor_layout.base != NULL && PyType_IsSubtype(type, gd_tensor_layout.base))) {
        return 0;
    }
    if (type->tp_finalize != NULL || type->tp_del != NULL || gd_watched(v)) {
        return 1;
    }
    if (!PyObject_IS_GC(v) || type->tp_traverse == NULL) {
        return 0;
    }
    if (--l->objects < 0 || --l->levels < 0) {
        return 1;
    }
    int found = type->tp_traverse(v, look_at, l);
    l->levels++;
    return found;
}

static int
look_at(PyObject *v, void *l)
{
    return ends(v, 0, l);
}

int
gd_ends_in_code(PyObject *v)
{
    return ends(v, 0, &(look){OBJECTS, LEVELS});
}

/* What a translation holds of a value that it looks at, at most. */
enum { HELD = 6 };

int
gd_end_may_run_code(PyObject *v)
{
    return ends(v, HELD, &(look){OBJECTS, LEVELS});
}

int
gd_ends_in_code_at(PyObject *owner, PyObject *at)
{
    PyObject *had = NULL;
    if (PyDict_Check(owner)) {
        had = PyDict_GetItemWithError(owner, at);
    }
    else if (PyUnicode_CheckExact(at)) {
        gd_inline_cache cache = {0, NULL};
        had = gd_instance_attr(owner, at, PyObject_Hash(at), &cache);
    }
    else if (PyList_Check(owner)) {
        Py_ssize_t i = PyLong_AsSsize_t(at);
        had = i >= 0 && i < PyList_GET_SIZE(owner) ? PyList_GET_ITEM(owner, i) : NULL;
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    return had != NULL && gd_ends_in_code(had);
}
