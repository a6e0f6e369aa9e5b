/* Hooks on leaf tensors: see torch/gradient_hooks.h.
 *
 * Hooks are in a tensor's autograd metadata, and in the node that accumulates its gradient. torch tells neither, so a
 * probe finds their offsets with samples (godynamo._called.guard_env.hook_samples). If it finds none, every leaf counts
 * as one with hooks.
 *
 * The metadata has a weak pointer to the node. Depending on torch's version, the count of its owners is in the node, or
 * in a control block before the node in the same allocation. The allocation lasts as long as the metadata, so the
 * node's memory can be read even if the node is gone. */
#include "torch/gradient_hooks.h"

#include "interrupt.h"
#include "torch/tensor_layout.h"
#include "torch/tensor_python.h"

/* Bytes examined from the start of a node. */
enum { NODE_WINDOW = 384 };

/* The size of a control block, and the offset of the count in it and in a node that counts its owners itself. */
enum { CONTROL_BLOCK = 16, OWNERS = 8 };

/* Offsets in bytes: `hooks` (a vector), `post` (a pointer) and `node` (a weak pointer) in a tensor's autograd metadata,
 * `owners` (a count), `before` and `after` (vectors) from the start of a node. */
static struct {
    int probed, known, owners;
    uint32_t hooks, post, node, before, after;
} layout;

/* ---- reading ---- */

static const char *
metadata(PyObject *tensor)
{
    const char *impl = gd_tensor_impl(tensor);
    return impl != NULL ? GD_TENSOR_FIELD(char *, impl, autograd_meta) : NULL;
}

static const char *
pointer_at(const char *object, uint32_t offset)
{
    const char *value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

/* Returns the number of bytes in use of the vector at the offset. */
static ptrdiff_t
vector_size(const char *object, uint32_t offset)
{
    return pointer_at(object, offset + sizeof(void *)) - pointer_at(object, offset);
}

/* Returns the node that accumulates gradients, or NULL if it is gone or was never made. */
static const char *
live_node(const char *meta)
{
    const char *node = pointer_at(meta, layout.node);
    int32_t owners = 0;
    if (node != NULL) {
        memcpy(&owners, node + layout.owners, sizeof owners);
    }
    return owners > 0 ? node : NULL;
}

/* Reports whether the tensor's only hook is an empty table of hooks, which torch keeps after their removal. Leaves no
 * exception set. */
static int
only_empty_table(PyObject *tensor, const char *meta)
{
    if (vector_size(meta, layout.hooks) != sizeof(void *)) {
        return 0;
    }
    PyObject *table = PyObject_GetAttrString(tensor, "_backward_hooks");
    int empty = table != NULL && PyDict_Check(table) && PyDict_GET_SIZE(table) == 0;
    Py_XDECREF(table);
    PyErr_Clear();
    return empty;
}

/* Reports whether the tensor has a hook, or may have one. Leaves no exception set. */
static int
may_have_hooks(PyObject *tensor)
{
    if (!PyObject_TypeCheck(tensor, gd_tensor_layout.base)) {
        return 1;
    }
    const char *meta = metadata(tensor);
    if (meta == NULL) {
        return 0;
    }
    if (*(const uint64_t *)meta != gd_tensor_layout.plain_meta || pointer_at(meta, layout.post) != NULL
        || (vector_size(meta, layout.hooks) != 0 && !only_empty_table(tensor, meta))) {
        return 1;
    }
    const char *node = live_node(meta);
    return node != NULL && (vector_size(node, layout.before) != 0 || vector_size(node, layout.after) != 0);
}

/* ---- the probe ---- */

/* Returns a row of samples[name], borrowed: (a leaf, its node or None). */
static PyObject *
row(PyObject *samples, const char *name, Py_ssize_t i)
{
    PyObject *rows = PyDict_GetItemString(samples, name);
    return rows != NULL && PyList_Check(rows) && i < PyList_GET_SIZE(rows) ? PyList_GET_ITEM(rows, i) : NULL;
}

/* Copies the autograd metadata of a row's leaf, or the C++ node behind its Python node. Returns 1 if it can be read. */
static int
copy(PyObject *row, int node, char *out)
{
    const char *at = NULL;
    if (!node) {
        at = metadata(PyTuple_GET_ITEM(row, 0));
    }
    else if (PyTuple_GET_ITEM(row, 1) != Py_None) {
        at = pointer_at((const char *)PyTuple_GET_ITEM(row, 1), sizeof(PyObject));
    }
    return at != NULL && gd_read_memory(at, out, NODE_WINDOW);
}

/* What a place of a C++ object looks like. */
typedef enum { EMPTY, ONE_ITEM, SET } looks;

static int
has_looks(const char *object, uint32_t offset, looks wanted)
{
    switch (wanted) {
    case EMPTY:
        return pointer_at(object, offset) == NULL;
    case ONE_ITEM:
        return pointer_at(object, offset) != NULL && vector_size(object, offset) == sizeof(void *);
    case SET:
        return pointer_at(object, offset) != NULL;
    }
    return 0;
}

/* Finds the only offset at which the objects of samples[with] look as wanted and all others are empty. The others are
 * the objects of the kinds `without`, which ends with NULL. */
static int
find(PyObject *samples, int node, const char *with, looks wanted, const char *const *without, uint32_t *found)
{
    int count = 0;
    char object[NODE_WINDOW];
    PyObject *r;
    for (uint32_t offset = 8; offset + 16 <= NODE_WINDOW; offset += 8) {
        int fits = 1;
        for (Py_ssize_t i = 0; fits && (r = row(samples, with, i)) != NULL; i++) {
            fits = copy(r, node, object) && has_looks(object, offset, wanted);
        }
        for (const char *const *name = without; fits && *name != NULL; name++) {
            for (Py_ssize_t i = 0; fits && (r = row(samples, *name, i)) != NULL; i++) {
                fits = copy(r, node, object) && has_looks(object, offset, EMPTY);
            }
        }
        if (fits) {
            *found = offset;
            count++;
        }
    }
    return count == 1;
}

/* Finds the weak pointer to the node. */
static int
find_node(PyObject *samples)
{
    int count = 0;
    char object[NODE_WINDOW];
    PyObject *r;
    for (uint32_t offset = 8; offset + 16 <= NODE_WINDOW; offset += 8) {
        int fits = 1, shared = 0;
        for (Py_ssize_t i = 0; fits && (r = row(samples, "quiet", i)) != NULL; i++) {
            const char *node = pointer_at((const char *)PyTuple_GET_ITEM(r, 1), sizeof(PyObject));
            fits = copy(r, 0, object) && pointer_at(object, offset) == node;
            shared = pointer_at(object, offset + 8) == node - CONTROL_BLOCK;
        }
        if (fits) {
            layout.node = offset;
            layout.owners = shared ? OWNERS - CONTROL_BLOCK : OWNERS;
            count++;
        }
    }
    return count == 1;
}

/* Runs the probe. Reports whether it has found all offsets and reads the samples right. */
static int
probe(PyObject *samples)
{
    static const char *const kinds[] = {"bare", "gone", "quiet", "hooked", "posted", "before", "after"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (row(samples, kinds[i], 0) == NULL) {
            return 0;
        }
    }
    static const char *const but_hooked[] = {"bare", "gone", "quiet", "posted", "before", "after", NULL};
    static const char *const but_posted[] = {"bare", "gone", "quiet", "hooked", "before", "after", NULL};
    static const char *const but_before[] = {"quiet", "after", NULL}, *const but_after[] = {"quiet", "before", NULL};
    if (!find(samples, 0, "hooked", ONE_ITEM, but_hooked, &layout.hooks)
        || !find(samples, 0, "posted", SET, but_posted, &layout.post) || !find_node(samples)
        || !find(samples, 1, "before", ONE_ITEM, but_before, &layout.before)
        || !find(samples, 1, "after", ONE_ITEM, but_after, &layout.after)) {
        return 0;
    }
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        PyObject *r;
        for (Py_ssize_t i = 0; (r = row(samples, kinds[kind], i)) != NULL; i++) {
            PyObject *leaf = PyTuple_GET_ITEM(r, 0);
            if (may_have_hooks(leaf) != (kind > 2) || (live_node(metadata(leaf)) != NULL) != (kind > 1)) {
                return 0;
            }
        }
    }
    return 1;
}

/* Runs the probe at the first call. Reports whether hooks can be read. Leaves no exception set. */
static int
ensure(void)
{
    if (layout.probed || !gd_tensor_layout_ensure()) {
        return layout.known;
    }
    int held = gd_hold_signals();
    PyObject *function = gd_guard_env_function("hook_samples");
    PyObject *samples = function != NULL ? PyObject_CallNoArgs(function) : NULL;
    Py_XDECREF(function);
    gd_release_signals(held);
    if (samples != Py_None) { /* None: this thread has active modes, so a later call tries again */
        layout.known = samples != NULL && PyDict_Check(samples) && probe(samples);
        layout.probed = 1;
    }
    Py_XDECREF(samples);
    PyErr_Clear();
    return layout.known;
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
gradients_run_code(PyObject *Py_UNUSED(module), PyObject *leaves)
{
    if (!PyTuple_Check(leaves)) {
        return PyErr_Format(PyExc_TypeError, "gradients_run_code: a tuple of tensors, not %s",
                            Py_TYPE(leaves)->tp_name);
    }
    int found = !ensure();
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(leaves); i++) {
        found = may_have_hooks(PyTuple_GET_ITEM(leaves, i));
    }
    return PyBool_FromLong(found);
}

static PyMethodDef functions[] = {
    {"gradients_run_code", gradients_run_code, METH_O,
     "gradients_run_code(leaves: tuple[Tensor, ...]) -> bool\n\n"
     "Whether a hook runs, or may run, when backward() accumulates the gradients of these leaves."},
    {NULL, NULL, 0, NULL},
};

int
gd_gradient_hooks_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
