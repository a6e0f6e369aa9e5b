/* Values that differ between calls: see guards/varied.h. */
#include "guards/varied.h"

#include <string.h>

#include "guards/eval.h"
#include "guards/tensor.h"
#include "torch/torch_state.h"

/* The state of one description. regs is a copy, in which a register is NULL if its value was not fetched or failed a
 * check. */
typedef struct {
    gd_GuardedCode *entry;
    PyObject **regs;
    PyObject *parts, *tensors; /* strong lists */
    int any;
} description;

/* Reports whether the node compares an int or a float with one of the same type. */
static int
compares_number(const gd_GuardedCode *e, const gd_guard_node *node, PyObject *v)
{
    if (node->op != GD_OP_EQUALS) {
        return 0;
    }
    PyTypeObject *type = Py_TYPE(e->consts[node->a]);
    return (type == &PyLong_Type || type == &PyFloat_Type) && Py_TYPE(v) == type;
}

static int
is_array(PyObject *v)
{
    return strcmp(Py_TYPE(v)->tp_name, "numpy.ndarray") == 0;
}

/* Reports whether the node checks a number of numpy in Python: one of its scalars, which is guarded by its value. */
static int
checks_numpy_number(const gd_guard_node *node, PyObject *v)
{
    const PyNumberMethods *number = v != NULL ? Py_TYPE(v)->tp_as_number : NULL;
    return node->op == GD_OP_PY_CHECK && number != NULL && number->nb_float != NULL
           && strncmp(Py_TYPE(v)->tp_name, "numpy.", 6) == 0 && !is_array(v);
}

/* Returns the mask of the compared dimensions whose sizes differ. */
static unsigned
differing_sizes(const gd_tensor_check *c, PyObject *v)
{
    const int64_t *sizes = (const int64_t *)(gd_tensor_impl(v) + gd_tensor_layout.sizes);
    unsigned mask = 0;
    for (unsigned rest = c->size_mask; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        mask |= sizes[i] != c->sizes[i] ? 1u << i : 0;
    }
    return mask;
}

/* Appends an item to the list. item: stolen, or NULL with an exception set. Returns 0, or -1 with an exception set. */
static int
append(PyObject *list, PyObject *item)
{
    int failed = item == NULL || PyList_Append(list, item) < 0;
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

/* Reports whether the tensors hold that only Python can read, such as sparse tensors. Python may run other threads, so
 * the registers must not be read afterwards. Returns -1 with an exception set. */
static int
others_hold(const description *d, const gd_guard_node *node)
{
    const gd_tensor_check *checks = d->entry->tensors + node->a;
    PyObject *held = PyList_New(0);
    for (uint32_t i = 0; held != NULL && i < node->b; i++) {
        if (checks[i].state != NULL && PyList_Append(held, d->regs[checks[i].reg]) < 0) {
            Py_CLEAR(held);
        }
    }
    if (held == NULL) {
        return -1;
    }
    int hold = 1;
    Py_ssize_t at = 0;
    for (uint32_t i = 0; hold && i < node->b; i++) {
        if (checks[i].state != NULL) {
            hold = !gd_tensor_check_slow(&checks[i], PyList_GET_ITEM(held, at++));
        }
    }
    Py_DECREF(held);
    return hold;
}

/* Describes the TENSORS node. Returns 1; 0 if nothing must be described; -1 with an exception set. */
static int
tensors(description *d, const gd_guard_node *node)
{
    gd_GuardedCode *e = d->entry;
    if (node->flags & GD_FLAG_STATE && !gd_torch_state_equal(e->torch_state) && !d->any) {
        return 0;
    }
    if (node->flags & GD_FLAG_DISTINCT && !d->any && !gd_tensors_distinct(e, node, d->regs)) {
        return 0;
    }
    int others = 0;
    for (uint32_t i = 0; i < node->b; i++) {
        const gd_tensor_check *check = e->tensors + node->a + i;
        PyObject *v = d->regs[check->reg];
        if (v != NULL && check->state != NULL && check->fields & GD_TENSOR_TYPE && !d->any) {
            others = 1;
            continue;
        }
        int differs = v == NULL || check->state != NULL ? GD_TENSOR_TYPE : gd_tensor_check_field(check, v);
        if (differs == GD_TENSOR_SIZES || differs == GD_TENSOR_STRIDES) {
            if (append(d->tensors, Py_BuildValue("(II)", (unsigned)(node->a + i), differing_sizes(check, v))) < 0) {
                return -1;
            }
        }
        else if (differs && !d->any) {
            return 0;
        }
    }
    return others ? others_hold(d, node) : 1;
}

/* Reports whether node i reads an object that the translator has chosen, or one of its attributes, not a value of the
 * program. A PY_CHECK of such an object is about the process, such as an installed hook. */
static int
reads_constant(const gd_GuardedCode *e, int i)
{
    uint32_t reg = e->nodes[i].src;
    for (int k = i - 1; k > 0 && reg > e->nslots + 1; k--) { /* the slots, the globals and the builtins come first */
        const gd_guard_node *node = &e->nodes[k];
        if (node->dst == reg) {
            if (node->op == GD_OP_CONST) {
                return 1;
            }
            reg = node->src;
        }
    }
    return 0;
}

/* Runs the nodes from the second one to those that read sizes, and continues after a failed comparison of values. It
 * does not run later checks of the layouts of numpy arrays, and assumes that they hold: even if one fails, the numbers
 * have varied.
 * Returns what tensors() returns. `failed` is the first node that failed. */
static int
run(description *d, int failed)
{
    gd_GuardedCode *e = d->entry;
    for (int i = 1; i < (int)e->nnodes - e->nlate; i++) {
        const gd_guard_node *node = &e->nodes[i];
        PyObject *v = d->regs[node->src];
        if (node->op == GD_OP_TENSORS) {
            return tensors(d, node);
        }
        if (v == NULL
            || (node->op == GD_OP_PY_CHECK
                && (i < failed
                    || (i > failed && (is_array(v) || reads_constant(e, i) || checks_numpy_number(node, v)))))) {
            continue;
        }
        if (node->op == GD_OP_PY_CHECK || !gd_guard_node_runs(e, node, d->regs)) {
            if (compares_number(e, node, v) || checks_numpy_number(node, v)) {
                if (append(d->parts, PyLong_FromUnsignedLong(e->node_parts[i])) < 0) {
                    return -1;
                }
            }
            else if (!d->any) {
                return 0;
            }
            else if (node->op != GD_OP_PY_CHECK) {
                d->regs[node->src] = NULL; /* what later nodes read from it may not be what they expect */
            }
        }
    }
    return 1;
}

/* Returns a new list of the slots that hold other objects than in the call the entry was made for. */
static PyObject *
moved_slots(const gd_GuardedCode *e, PyObject *const *slots)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && e->made_for != NULL && i < e->nslots; i++) {
        if (e->made_for[i] != (uintptr_t)slots[i] && append(list, PyLong_FromUnsignedLong(i)) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyObject *
gd_varied_values(gd_GuardedCode *e, PyObject **regs, int failed, int any)
{
    if (failed < 1 || (uint32_t)failed >= e->nnodes || !e->valid) {
        return NULL;
    }
    int op = e->nodes[failed].op;
    if (!any && op != GD_OP_EQUALS && op != GD_OP_TENSORS && op != GD_OP_SHAPE_ENV && op != GD_OP_PY_CHECK) {
        return NULL;
    }
    int collects = PyGC_Disable(); /* a finalizer could free what the registers hold */
    size_t given = (size_t)e->nslots + 2;
    description d = {e, PyMem_Calloc(Py_MAX(e->nregs, given), sizeof(PyObject *)), PyList_New(0), PyList_New(0), any};
    PyObject *moved = moved_slots(e, regs), *out = NULL;
    if (d.regs != NULL && d.parts != NULL && d.tensors != NULL && moved != NULL) {
        memcpy(d.regs, regs, given * sizeof(PyObject *));
        if (run(&d, failed) > 0 && PyList_GET_SIZE(d.parts) + PyList_GET_SIZE(d.tensors) > 0) {
            out = PyTuple_Pack(4, e, d.parts, d.tensors, moved);
        }
    }
    PyErr_Clear();
    PyMem_Free(d.regs);
    Py_XDECREF(d.parts);
    Py_XDECREF(d.tensors);
    Py_XDECREF(moved);
    if (collects) {
        PyGC_Enable();
    }
    return out;
}

void
gd_varied_made_for(gd_GuardedCode *e, PyObject *const *slots)
{
    uintptr_t *all = PyMem_Realloc(e->made_for, Py_MAX(e->nslots, 1) * sizeof(*all));
    if (all == NULL) {
        return;
    }
    for (uint32_t i = 0; i < e->nslots; i++) {
        all[i] = (uintptr_t)slots[i];
    }
    e->made_for = all;
}
