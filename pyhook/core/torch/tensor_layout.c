/* The layout probe. godynamo._called.guard_env.layout_samples() makes tensors with known metadata. An
 * offset is accepted if it is the only one that fits all these tensors. Then random tensors are read at
 * the accepted offsets and compared with their Python attributes, alone and in pairs. If an offset is not
 * unique or a value is wrong, the layout stays unknown. */
#define _GNU_SOURCE
#include "interrupt.h"
#include "runtime.h"
#include "torch/tensor_layout.h"
#include "torch/tensor_python.h"
#include "torch/torch_symbols.h"

#include <sys/uio.h>
#include <unistd.h>

gd_tensor_layout_t gd_tensor_layout;

/* Bytes examined from the start of a C++ object. */
enum { WINDOW = 256 };

typedef struct {
    _Alignas(8) char bytes[WINDOW];
} window;

static int probed;

/* The page after the one on which the memory begins may be past the end of the heap. A transfer stops before an
 * element that is not fully mapped. */
int
gd_read_memory(const void *address, void *out, size_t n)
{
    size_t first = 4096 - ((uintptr_t)address & 4095);
    first = first < n ? first : n;
    struct iovec to = {out, n};
    struct iovec from[2] = {{(void *)address, first}, {(char *)address + first, n - first}};
    memset(out, 0, n);
    return process_vm_readv(getpid(), &to, 1, from, n > first ? 2 : 1, 0) >= (ssize_t)first;
}

static uint64_t
word_at(const window *w, uint32_t offset)
{
    uint64_t value;
    memcpy(&value, w->bytes + offset, sizeof value);
    return value;
}

/* Copies the object to which the word at `offset` of the Python object points. Returns 1 if it can be read. */
static int
follow(PyObject *tensor, uint32_t offset, window *out)
{
    const void *target = *(void **)((char *)tensor + offset);
    return target != NULL && ((uintptr_t)target & 7) == 0 && gd_read_memory(target, out->bytes, WINDOW);
}

/* Returns a list from the dict `samples`, borrowed, or NULL if it is absent or empty. */
static PyObject *
samples_of(PyObject *samples, const char *name)
{
    PyObject *list = PyDict_GetItemString(samples, name);
    return list != NULL && PyList_Check(list) && PyList_GET_SIZE(list) > 0 ? list : NULL;
}

/* Reports whether exactly one offset, in steps of `step`, fits. Stores the offset in *found. */
typedef int (*fits_fn)(PyObject *samples, uint32_t offset);

static int
unique(PyObject *samples, fits_fn fits, uint32_t step, uint32_t size, uint32_t *found)
{
    int count = 0;
    for (uint32_t offset = 0; offset + size <= WINDOW; offset += step) {
        if (fits(samples, offset)) {
            *found = offset;
            count++;
        }
    }
    return count == 1;
}

static const int64_t odd_sizes[] = {1237, 3, 7, 2, 5}, odd_strides[] = {210, 70, 10, 5, 1};

/* Finds impl, sizes, strides and ndim. The five sizes and the five strides are adjacent, and the number of
 * dimensions precedes them. */
static int
probe_sizes(PyObject *samples)
{
    PyObject *odd = samples_of(samples, "odd"), *dims = samples_of(samples, "dims");
    if (odd == NULL || dims == NULL) {
        return 0;
    }
    int count = 0;
    for (uint32_t impl = 16; impl <= 24; impl += 8) {
        window w;
        if (!follow(PyList_GET_ITEM(odd, 0), impl, &w)) {
            continue;
        }
        for (uint32_t at = 8; at + 80 <= WINDOW; at += 8) {
            if (memcmp(w.bytes + at, odd_sizes, 40) == 0 && memcmp(w.bytes + at + 40, odd_strides, 40) == 0) {
                gd_tensor_layout.impl = impl;
                gd_tensor_layout.sizes = at;
                gd_tensor_layout.strides = at + 40;
                gd_tensor_layout.ndim = at - 8;
                count++;
            }
        }
    }
    if (count != 1) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dims); i++) { /* the i-th tensor has i dimensions */
        window w;
        if (!follow(PyList_GET_ITEM(dims, i), gd_tensor_layout.impl, &w)
            || word_at(&w, gd_tensor_layout.ndim) != (uint64_t)i) {
            return 0;
        }
    }
    return 1;
}

/* Reads an element of samples["dtypes"], which is (tensor, ScalarType), or of samples["devices"], which is
 * (tensor, DeviceType). */
static int
pair_at(PyObject *pair, window *w, long *number)
{
    *number = PyLong_AsLong(PyTuple_GET_ITEM(pair, 1));
    return follow(PyTuple_GET_ITEM(pair, 0), gd_tensor_layout.impl, w);
}

static int
fits_dtype(PyObject *samples, uint32_t offset)
{
    PyObject *pairs = samples_of(samples, "dtypes");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs); i++) {
        window w;
        long number;
        uint16_t value;
        if (!pair_at(PyList_GET_ITEM(pairs, i), &w, &number)) {
            return 0;
        }
        memcpy(&value, w.bytes + offset, sizeof value);
        if (value != number) {
            return 0;
        }
    }
    return 1;
}

/* The device is stored as optional<Device>: type, index, and whether it is set. */
static int
fits_device(PyObject *samples, uint32_t offset)
{
    PyObject *pairs = samples_of(samples, "devices");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs); i++) {
        window w;
        long number;
        if (!pair_at(PyList_GET_ITEM(pairs, i), &w, &number) || (int8_t)w.bytes[offset] != number
            || (int8_t)w.bytes[offset + 1] != -1 || w.bytes[offset + 2] != 1) {
            return 0;
        }
    }
    return 1;
}

/* Reports whether the word at the offset is, for each row of samples[name], the row's second item. The first item is
 * the tensor. */
static int
fits_word(PyObject *samples, const char *name, uint32_t offset)
{
    PyObject *rows = samples_of(samples, name);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *row = PyList_GET_ITEM(rows, i);
        window w;
        if (!follow(PyTuple_GET_ITEM(row, 0), gd_tensor_layout.impl, &w)
            || word_at(&w, offset) != PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(row, 1))) {
            return 0;
        }
    }
    return 1;
}

/* A row of samples["keysets"] is (tensor, raw_repr). */
static int
fits_keyset(PyObject *samples, uint32_t offset)
{
    return fits_word(samples, "keysets", offset);
}

/* A row of samples["storages"] is (tensor, address of the C++ storage, address of its memory, size of its memory in
 * bytes). */
static int
fits_storage(PyObject *samples, uint32_t offset)
{
    return fits_word(samples, "storages", offset);
}

/* Reports whether each storage has, at the offset, the wanted value, an item of the rows of samples["storages"]. */
static int
storages_have(PyObject *samples, uint32_t offset, Py_ssize_t item)
{
    PyObject *rows = samples_of(samples, "storages");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *row = PyList_GET_ITEM(rows, i);
        window w;
        if (!gd_read_memory((void *)(uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(row, 1)), w.bytes, WINDOW)
            || word_at(&w, offset) != PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(row, item))) {
            return 0;
        }
    }
    return 1;
}

/* Finds the storage's fields. torch's own allocators set `context`, the argument of the function that frees the
 * memory, to the address of the memory, so two offsets fit; `data` is the first. If a field is not found, all
 * are 0. */
static void
probe_storage(PyObject *samples)
{
    uint32_t found[3], count = 0, sizes = 0;
    gd_tensor_layout_t *l = &gd_tensor_layout;
    l->storage = l->data = l->context = l->nbytes = 0;
    if (samples_of(samples, "storages") == NULL || !unique(samples, fits_storage, 8, 8, &l->storage)) {
        l->storage = 0;
        return;
    }
    for (uint32_t offset = 0; offset + 8 <= 128; offset += 8) { /* a c10::StorageImpl has about 100 bytes */
        if (count < 3 && storages_have(samples, offset, 2)) {
            found[count++] = offset;
        }
        if (storages_have(samples, offset, 3)) {
            l->nbytes = offset;
            sizes++;
        }
    }
    if (count != 2 || sizes != 1) {
        l->storage = l->nbytes = 0;
        return;
    }
    l->data = found[0];
    l->context = found[1];
}

/* The window extends past the C++ objects into other heap memory, and samples made in a row may have similar neighbours
 * in memory. With four samples of each kind, such neighbours misled the probe in one of several dozen processes. So the
 * probe checks properties that only autograd metadata has: each tensor has its own object, and all these objects are of
 * one C++ class. */

/* Reports whether the word is zero in every tensor of the list. */
static int
all_zero(PyObject *list, uint32_t offset)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        window w;
        if (!follow(PyList_GET_ITEM(list, i), gd_tensor_layout.impl, &w) || word_at(&w, offset) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Reports whether the word points, in every tensor of the list, to a separate object whose first word (its
 * C++ class) is *class. If *class is 0, sets it to the first word of the first object. */
static int
all_own(PyObject *list, uint32_t offset, uint64_t *class)
{
    uint64_t last = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        window w;
        uint64_t first;
        if (!follow(PyList_GET_ITEM(list, i), gd_tensor_layout.impl, &w)) {
            return 0;
        }
        uint64_t word = word_at(&w, offset);
        if (word == 0 || (word & 7) != 0 || word == last
            || !gd_read_memory((void *)(uintptr_t)word, &first, sizeof first)) {
            return 0;
        }
        *class = *class != 0 ? *class : first;
        if (first == 0 || first != *class) {
            return 0;
        }
        last = word;
    }
    return 1;
}

static int
fits_autograd_meta(PyObject *samples, uint32_t offset)
{
    uint64_t class = 0;
    return all_zero(samples_of(samples, "plain"), offset) && all_own(samples_of(samples, "leaf"), offset, &class)
           && all_own(samples_of(samples, "computed"), offset, &class);
}

/* Copies the autograd metadata of a tensor. Returns 1 if it can be read. */
static int
follow_meta(PyObject *tensor, window *out)
{
    window impl;
    if (!follow(tensor, gd_tensor_layout.impl, &impl)) {
        return 0;
    }
    const void *meta = (const void *)(uintptr_t)word_at(&impl, gd_tensor_layout.autograd_meta);
    return meta != NULL && gd_read_memory(meta, out->bytes, WINDOW);
}

/* Reports whether the autograd metadata of each tensor of a list has the wanted value at the offset. If
 * `is_byte` is set, the wanted value is the byte `wanted`. Otherwise it is a word that is zero if `wanted` is 0,
 * and nonzero if `wanted` is 1. */
static int
meta_is(PyObject *samples, const char *name, uint32_t offset, int is_byte, int wanted)
{
    PyObject *list = samples_of(samples, name);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        window w;
        if (!follow_meta(PyList_GET_ITEM(list, i), &w)
            || (is_byte ? w.bytes[offset] : word_at(&w, offset) != 0) != wanted) {
            return 0;
        }
    }
    return 1;
}

/* Does the same as meta_is for the tensors of samples["random"] that have autograd metadata, with the
 * values that Python reports as the wanted ones. Items 6 and 7 of a view are requires_grad and is_leaf. */
static int
meta_of_random_is(PyObject *samples, uint32_t offset, int is_byte)
{
    PyObject *list = samples_of(samples, "random");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *pair = PyList_GET_ITEM(list, i), *view = PyTuple_GET_ITEM(pair, 1);
        int requires_grad = PyTuple_GET_ITEM(view, 6) == Py_True, is_leaf = PyTuple_GET_ITEM(view, 7) == Py_True;
        window w;
        if (!follow_meta(PyTuple_GET_ITEM(pair, 0), &w)) {
            if (requires_grad) {
                return 0;
            }
        }
        else if (is_byte ? w.bytes[offset] != (requires_grad && is_leaf) : (word_at(&w, offset) != 0) == is_leaf) {
            return 0;
        }
    }
    return 1;
}

static int
fits_requires_grad(PyObject *samples, uint32_t offset)
{
    return meta_is(samples, "leaf", offset, 1, 1) && meta_is(samples, "computed", offset, 1, 0)
           && meta_is(samples, "switched_off", offset, 1, 0) && meta_of_random_is(samples, offset, 1);
}

static int
fits_grad_fn(PyObject *samples, uint32_t offset)
{
    return meta_is(samples, "leaf", offset, 0, 0) && meta_is(samples, "computed", offset, 0, 1)
           && meta_is(samples, "switched_off", offset, 0, 0) && meta_of_random_is(samples, offset, 0);
}

/* Finds grad_fn. It is a shared pointer, which consists of two words: the addresses of an object and of a
 * control block. Both are set or both are zero. */
static int
probe_grad_fn(PyObject *samples)
{
    uint32_t found[3], count = 0;
    for (uint32_t offset = 0; offset + 8 <= WINDOW && count < 3; offset += 8) {
        if (fits_grad_fn(samples, offset)) {
            found[count++] = offset;
        }
    }
    gd_tensor_layout.grad_fn = found[0];
    return count == 1 || (count == 2 && found[1] == found[0] + 8);
}

static int
view_of(PyObject *tensor, gd_tensor_view *out)
{
    const char *impl = gd_tensor_impl(tensor);
    if (impl == NULL) {
        return 0;
    }
    uint64_t keyset = GD_TENSOR_FIELD(uint64_t, impl, keyset), ndim = GD_TENSOR_FIELD(uint64_t, impl, ndim);
    if ((keyset & ~gd_tensor_layout.plain_keys) != 0 || ndim > GD_INLINE_DIMS) {
        return 0;
    }
    memset(out, 0, sizeof *out);
    memcpy(out->sizes, impl + gd_tensor_layout.sizes, ndim * sizeof(int64_t));
    memcpy(out->strides, impl + gd_tensor_layout.strides, ndim * sizeof(int64_t));
    out->keyset = keyset;
    out->ndim = (int32_t)ndim;
    out->scalar_type = GD_TENSOR_FIELD(uint16_t, impl, dtype);
    out->device_type = *(const int8_t *)(impl + gd_tensor_layout.device);
    out->device_index = *(const int8_t *)(impl + gd_tensor_layout.device + 1);
    out->requires_grad = gd_tensor_requires_grad(impl);
    out->is_leaf = gd_tensor_is_leaf(impl);
    return 1;
}

/* Returns the result of tensor_view() as a new tuple, or NULL with an exception set. */
static PyObject *
view_tuple(const gd_tensor_view *v)
{
    PyObject *sizes = PyTuple_New(v->ndim), *strides = PyTuple_New(v->ndim);
    for (int32_t i = 0; sizes != NULL && strides != NULL && i < v->ndim; i++) {
        PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(v->sizes[i]));
        PyTuple_SET_ITEM(strides, i, PyLong_FromLongLong(v->strides[i]));
    }
    return Py_BuildValue("(NNKiiiNN)", sizes, strides, (unsigned long long)v->keyset, v->scalar_type, v->device_type,
                         v->device_index, PyBool_FromLong(v->requires_grad), PyBool_FromLong(v->is_leaf));
}

/* Checks the pairs in samples[name], each a tensor and its expected view_tuple. Each tensor must be read
 * right, and two views must differ exactly if Python's values differ. */
static int
self_check(PyObject *samples, const char *name)
{
    PyObject *list = samples_of(samples, name);
    if (list == NULL) {
        return 0;
    }
    Py_ssize_t n = PyList_GET_SIZE(list), wrong = 0;
    gd_tensor_view *views = PyMem_Calloc((size_t)n, sizeof(gd_tensor_view));
    if (views == NULL) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyList_GET_ITEM(list, i);
        PyObject *read = view_of(PyTuple_GET_ITEM(pair, 0), &views[i]) ? view_tuple(&views[i]) : NULL;
        wrong += read == NULL || PyObject_RichCompareBool(read, PyTuple_GET_ITEM(pair, 1), Py_EQ) != 1;
        Py_XDECREF(read);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        for (Py_ssize_t j = 0; j < n; j++) {
            int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(PyList_GET_ITEM(list, i), 1),
                                                PyTuple_GET_ITEM(PyList_GET_ITEM(list, j), 1), Py_EQ);
            wrong += same != (memcmp(&views[i], &views[j], sizeof views[i]) == 0);
        }
    }
    PyMem_Free(views);
    return wrong == 0;
}

/* Runs the probe on the samples. Returns the name of the step that failed, or NULL. */
static const char *
probe(PyObject *samples)
{
    static const char *const lists[] = {"odd",  "dims",     "dtypes",       "devices", "keysets", "plain",
                                        "leaf", "computed", "switched_off", "random",  "views"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (samples_of(samples, lists[i]) == NULL) {
            return lists[i];
        }
    }
    PyObject *base = PyDict_GetItemString(samples, "base"), *keys = PyDict_GetItemString(samples, "plain_keys");
    if (base == NULL || !PyType_Check(base) || keys == NULL) {
        return "base";
    }
    gd_tensor_layout.plain_keys = PyLong_AsUnsignedLongLong(keys);
    if (((PyTypeObject *)base)->tp_basicsize < 24) {
        return "object size";
    }
    if (!probe_sizes(samples)) {
        return "sizes";
    }
    if (((PyTypeObject *)base)->tp_basicsize < (Py_ssize_t)gd_tensor_layout.impl + 8) {
        return "object size";
    }
    if (!unique(samples, fits_dtype, 2, 2, &gd_tensor_layout.dtype)) {
        return "dtype";
    }
    if (!unique(samples, fits_device, 1, 3, &gd_tensor_layout.device)) {
        return "device";
    }
    if (!unique(samples, fits_keyset, 8, 8, &gd_tensor_layout.keyset)) {
        return "key set";
    }
    if (!unique(samples, fits_autograd_meta, 8, 8, &gd_tensor_layout.autograd_meta)) {
        return "autograd metadata";
    }
    if (!unique(samples, fits_requires_grad, 1, 1, &gd_tensor_layout.requires_grad)) {
        return "requires_grad";
    }
    if (!probe_grad_fn(samples)) {
        return "grad_fn";
    }
    gd_tensor_layout.cpu_keys =
        GD_TENSOR_FIELD(uint64_t, gd_tensor_impl(PyList_GET_ITEM(samples_of(samples, "plain"), 0)), keyset);
    window meta;
    if (!follow_meta(PyList_GET_ITEM(samples_of(samples, "leaf"), 0), &meta)) {
        return "autograd metadata";
    }
    gd_tensor_layout.plain_meta = word_at(&meta, 0);
    void *ask = gd_torch_symbol("_ZNK3c1010TensorImpl13requires_gradEv");
    if (ask == NULL) {
        return "requires_grad of a view";
    }
    memcpy(&gd_tensor_layout.ask_requires_grad, &ask, sizeof ask);
    if (!self_check(samples, "random") || !self_check(samples, "views")) {
        return "self-check";
    }
    probe_storage(samples);
    gd_tensor_layout.base = (PyTypeObject *)Py_NewRef(base);
    return NULL;
}

int
gd_tensor_layout_ensure(void)
{
    if (GD_LIKELY(probed)) {
        return gd_tensor_layout.known;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int held = gd_hold_signals();
    PyObject *function = gd_guard_env_function("layout_samples");
    PyObject *samples = function != NULL ? PyObject_CallNoArgs(function) : NULL;
    Py_XDECREF(function);
    gd_release_signals(held);
    if (samples == Py_None) {
        Py_DECREF(samples); /* this thread has active modes, under which the samples would be different tensors */
        PyErr_Restore(type, value, traceback);
        return 0;
    }
    if (!probed) { /* another thread may have finished the probe while Python ran */
        const char *failed = samples != NULL && PyDict_Check(samples) ? probe(samples) : "samples";
        gd_tensor_layout.known = failed == NULL;
        probed = 1;
        PyErr_Clear();
        if (failed != NULL
            && PyErr_WarnFormat(
                   PyExc_RuntimeWarning, 1,
                   "godynamo: the layout of this torch's tensors could not be made out (%s): tensors are checked "
                   "through Python attributes, which is slower",
                   failed)
                   < 0) {
            PyErr_Clear(); /* the user's filters turn warnings into errors; the slow path is correct as well */
        }
    }
    PyErr_Clear();
    Py_XDECREF(samples);
    PyErr_Restore(type, value, traceback);
    return gd_tensor_layout.known;
}

int
gd_tensor_view_read(PyObject *tensor, gd_tensor_view *out)
{
    return gd_tensor_layout_ensure() && PyObject_TypeCheck(tensor, gd_tensor_layout.base) && view_of(tensor, out);
}

/* ---- for Python: these functions return new references, or NULL with an exception set ---- */

static PyObject *
tensor_view(PyObject *module, PyObject *tensor)
{
    (void)module;
    gd_tensor_view v;
    if (!gd_tensor_view_read(tensor, &v)) {
        Py_RETURN_NONE;
    }
    return view_tuple(&v);
}

static PyObject *
tensor_layout(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    gd_tensor_layout_ensure();
    const gd_tensor_layout_t *l = &gd_tensor_layout;
    return Py_BuildValue("{s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:K}", "known", l->known, "impl", l->impl,
                         "ndim", l->ndim, "sizes", l->sizes, "strides", l->strides, "dtype", l->dtype, "device",
                         l->device, "keyset", l->keyset, "autograd_meta", l->autograd_meta, "grad_fn", l->grad_fn,
                         "requires_grad", l->requires_grad, "storage", l->storage, "plain_keys",
                         (unsigned long long)l->plain_keys);
}

/* For tests: runs the probe on these samples, which a test may have spoilt so that a step fails. Returns
 * the name of the failed step, or None. */
static PyObject *
tensor_layout_probe(PyObject *module, PyObject *samples)
{
    (void)module;
    if (!PyDict_Check(samples)) {
        PyErr_SetString(PyExc_TypeError, "samples are a dict");
        return NULL;
    }
    gd_tensor_layout_t before = gd_tensor_layout;
    PyObject *result = PyUnicode_FromString("");
    const char *failed = probe(samples);
    PyErr_Clear();
    Py_XSETREF(result, failed != NULL ? PyUnicode_FromString(failed) : Py_NewRef(Py_None));
    if (failed == NULL) {
        Py_DECREF(gd_tensor_layout.base);
    }
    gd_tensor_layout = before;
    return result;
}

/* For tests: with False, the layout counts as unknown; with True, it counts as known if the probe succeeded. */
static PyObject *
tensor_layout_use(PyObject *module, PyObject *flag)
{
    (void)module;
    gd_tensor_layout_ensure();
    gd_tensor_layout.known = PyObject_IsTrue(flag) > 0 && gd_tensor_layout.base != NULL;
    return PyBool_FromLong(gd_tensor_layout.known);
}

static PyMethodDef functions[] = {
    {"tensor_view", tensor_view, METH_O,
     "tensor_view(tensor) -> (sizes, strides, key set, ScalarType, device type, device index, requires_grad, "
     "is_leaf)\n\n"
     "Read from memory; None for what is no plain dense tensor."},
    {"tensor_layout", tensor_layout, METH_NOARGS,
     "tensor_layout() -> dict of offsets; `known` is 0 where the probe failed."},
    {"_tensor_layout_probe", tensor_layout_probe, METH_O, "Tests: the step of the probe that fails on these samples."},
    {"_tensor_layout_use", tensor_layout_use, METH_O, "Tests: switch the layout off and on."},
    {NULL, NULL, 0, NULL},
};

int
gd_tensor_layout_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
