/* Finds inputs of a compiled graph that may share memory; see godynamo._backends.memory. */
#include "torch/shared_memory.h"

#include "torch/tensor_layout.h"

typedef struct {
    const char *storage; /* NULL: free */
    Py_ssize_t owner;    /* number of the input */
} place;

#define STORAGE_FIELD(type, storage, field) (*(const type *)((storage) + gd_tensor_layout.field))

/* Returns the place of the storage in the table, or the free place where it belongs. */
static place *
find(place *table, size_t mask, const char *storage)
{
    size_t i = ((uintptr_t)storage >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32 & mask;
    while (table[i].storage != NULL && table[i].storage != storage) {
        i = (i + 1) & mask;
    }
    return &table[i];
}

/* Returns the address of the tensor's storage, or NULL if v is no tensor or has no storage. */
static const char *
storage_of(PyObject *v)
{
    const char *impl = PyObject_TypeCheck(v, gd_tensor_layout.base) ? gd_tensor_impl(v) : NULL;
    return impl != NULL ? GD_TENSOR_FIELD(char *, impl, storage) : NULL;
}

/* Reports whether torch's allocator has not made this memory itself: an array of numpy, a file that is mapped. Other
 * storages may then have the same memory. */
static int
is_foreign(const char *storage)
{
    return STORAGE_FIELD(uintptr_t, storage, data) != STORAGE_FIELD(uintptr_t, storage, context);
}

/* Reports whether the memory of two storages overlaps. */
static int
meet(const char *a, const char *b)
{
    uintptr_t at = STORAGE_FIELD(uintptr_t, a, data), other = STORAGE_FIELD(uintptr_t, b, data);
    return at < other + STORAGE_FIELD(uint64_t, b, nbytes) && other < at + STORAGE_FIELD(uint64_t, a, nbytes);
}

/* Reports whether the input's storage overlaps that of another input. inputs: borrowed */
static int
meets_another(PyObject **inputs, Py_ssize_t n, Py_ssize_t number, const char *storage)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *other = i != number ? storage_of(inputs[i]) : NULL;
        if (other != NULL && meet(storage, other)) {
            return 1;
        }
    }
    return 0;
}

/* shares_memory(inputs, changed): True, False, or None if the layout of tensors is unknown. new reference */
static PyObject *
shares_memory(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 2 || !(PyTuple_Check(args[0]) || PyList_Check(args[0])) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "shares_memory() takes the inputs and a tuple of the changed ones' numbers");
        return NULL;
    }
    if (!gd_tensor_layout_ensure() || gd_tensor_layout.storage == 0) {
        Py_RETURN_NONE;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(args[0]), nchanged = PyTuple_GET_SIZE(args[1]);
    PyObject **inputs = PySequence_Fast_ITEMS(args[0]);
    place small[64] = {{0}}, *table = small;
    size_t size = 64;
    while (size < 2 * (size_t)nchanged) {
        size *= 2;
    }
    if (size > 64 && (table = PyMem_Calloc(size, sizeof *table)) == NULL) {
        return PyErr_NoMemory();
    }
    int shared = 0, wrong = 0;
    for (Py_ssize_t i = 0; i < nchanged && !shared; i++) {
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[1], i));
        if (number < 0 || number >= n) {
            wrong = 1;
            break;
        }
        const char *storage = storage_of(inputs[number]);
        if (storage != NULL) {
            place *p = find(table, size - 1, storage);
            shared = p->storage != NULL && p->owner != number;
            shared = shared || (is_foreign(storage) && meets_another(inputs, n, number, storage));
            *p = (place){storage, number};
        }
    }
    for (Py_ssize_t i = 0; i < n && !shared && !wrong; i++) {
        const char *storage = storage_of(inputs[i]);
        if (storage != NULL) {
            const place *p = find(table, size - 1, storage);
            shared = p->storage != NULL && p->owner != i;
            shared = shared || (is_foreign(storage) && meets_another(inputs, n, i, storage));
        }
    }
    if (table != small) {
        PyMem_Free(table);
    }
    if (wrong) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_IndexError, "there is no input of that number");
        }
        return NULL;
    }
    return PyBool_FromLong(shared);
}

static PyMethodDef functions[] = {
    {"shares_memory", (PyCFunction)(void (*)(void))shares_memory, METH_FASTCALL,
     "shares_memory(inputs, changed) -> bool | None\n\n"
     "Whether the storage of an input in `changed`, a tuple of numbers, may overlap that of another input. None if "
     "the layout of tensors is unknown."},
    {NULL, NULL, 0, NULL},
};

int
gd_shared_memory_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
