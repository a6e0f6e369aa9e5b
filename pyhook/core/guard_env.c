/* See guard_env.h. Nothing here is on the hot path. Functions for Python return new references, or NULL with an
 * exception set. */
#include "guard_env.h"

#include "cache/entry.h"
#include "calls/traceback.h"
#include "guards/access.h"
#include "guards/end.h"
#include "guards/eval.h"
#include "guards/failure.h"
#include "guards/memo.h"
#include "guards/pure.h"
#include "guards/tensor.h"
#include "guards/weak.h"
#include "pycommon/guard.h"
#include "torch/torch_state.h"

/* ---- running an entry's program from Python ---- */

/* Returns the builtins of a frame with these globals, borrowed. */
static PyObject *
builtins_of(PyObject *globals)
{
    PyObject *builtins = PyDict_GetItemString(globals, "__builtins__");
    if (builtins != NULL && PyModule_Check(builtins)) {
        builtins = PyModule_GetDict(builtins);
    }
    return builtins != NULL && PyDict_Check(builtins) ? builtins : PyEval_GetBuiltins();
}

/* Returns registers for one evaluation, which the caller frees, or NULL with an exception set. slots: a tuple;
 * globals: a dict, or None for the globals of e's function. */
static PyObject **
registers_for(gd_GuardedCode *e, PyObject *slots, PyObject *globals)
{
    if (PyTuple_GET_SIZE(slots) != e->nslots) {
        PyErr_Format(PyExc_TypeError, "this entry is for %d slots, not %zd", (int)e->nslots, PyTuple_GET_SIZE(slots));
        return NULL;
    }
    if (globals == Py_None) {
        globals = e->function != NULL ? ((PyFunctionObject *)e->function)->func_globals : PyEval_GetGlobals();
    }
    if (globals == NULL || !PyDict_Check(globals)) {
        PyErr_SetString(PyExc_TypeError, "globals are a dict");
        return NULL;
    }
    PyObject **regs = PyMem_Calloc(e->nregs, sizeof(PyObject *));
    if (regs == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(regs, ((PyTupleObject *)slots)->ob_item, e->nslots * sizeof(PyObject *));
    regs[e->nslots] = globals;
    regs[e->nslots + 1] = builtins_of(globals);
    return regs;
}

/* Evaluates the guards. Sets *failed to the failing node, or -1. If text is not NULL, sets *text to a new str that
 * says what failed, or to None. Returns 0, or -1 with an exception set. */
static int
evaluate(gd_GuardedCode *e, PyObject *slots, PyObject *globals, int *failed, PyObject **text)
{
    PyObject **regs = registers_for(e, slots, globals);
    if (regs == NULL) {
        return -1;
    }
    *failed = gd_guard_eval(e, regs);
    int status = 0;
    if (text != NULL) {
        *text = *failed >= 0 ? gd_guard_failure_text(e, *failed, regs) : Py_NewRef(Py_None);
        status = *text != NULL ? 0 : -1;
    }
    PyMem_Free(regs);
    return status;
}

static PyObject *
entry_check(gd_GuardedCode *e, PyObject *args, PyObject *kwargs)
{
    PyObject *globals = Py_None;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        globals = PyDict_GetItemString(kwargs, "globals");
        if (globals == NULL || PyDict_GET_SIZE(kwargs) > 1) {
            PyErr_SetString(PyExc_TypeError, "check() takes slots and the keyword globals");
            return NULL;
        }
    }
    int failed;
    return evaluate(e, args, globals, &failed, NULL) < 0 ? NULL : PyBool_FromLong(failed < 0);
}

static PyObject *
entry_failure(gd_GuardedCode *e, PyObject *args)
{
    PyObject *slots, *globals = Py_None, *text;
    int failed;
    if (!PyArg_ParseTuple(args, "O!|O", &PyTuple_Type, &slots, &globals)
        || evaluate(e, slots, globals, &failed, &text) < 0) {
        return NULL;
    }
    return text;
}

static PyObject *
guard_check(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *entry, *slots, *globals = Py_None;
    int failed;
    if (!PyArg_ParseTuple(args, "O!O!|O", &gd_GuardedCode_Type, &entry, &PyTuple_Type, &slots, &globals)
        || evaluate((gd_GuardedCode *)entry, slots, globals, &failed, NULL) < 0) {
        return NULL;
    }
    if (failed < 0) {
        return Py_BuildValue("(OO)", Py_True, Py_None);
    }
    return Py_BuildValue("(Oi)", Py_False, (int)((gd_GuardedCode *)entry)->node_parts[failed]);
}

/* Evaluates the guards `count` times without the overhead of Python calls. Returns a new tuple (nanoseconds per
 * evaluation, number of failures), or NULL with an exception set. */
static PyObject *
guard_time(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *entry, *slots, *globals = Py_None;
    int count;
    if (!PyArg_ParseTuple(args, "O!O!Oi", &gd_GuardedCode_Type, &entry, &PyTuple_Type, &slots, &globals, &count)) {
        return NULL;
    }
    PyObject **regs = registers_for((gd_GuardedCode *)entry, slots, globals);
    if (regs == NULL) {
        return NULL;
    }
    int failures = 0;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < count; i++) {
        failures += gd_guard_eval((gd_GuardedCode *)entry, regs) >= 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / Py_MAX(count, 1);
    PyMem_Free(regs);
    return Py_BuildValue("(di)", ns, failures);
}

/* Calls a Python function, for tests, and handles its exception as the call path does for an entry's function. */
static PyObject *
entry_call(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *entry, *callable;
    if (!PyArg_ParseTuple(args, "O!O", &gd_GuardedCode_Type, &entry, &callable)) {
        return NULL;
    }
    PyObject *result = PyObject_CallNoArgs(callable);
    if (result == NULL) {
        gd_fix_traceback((gd_GuardedCode *)entry);
    }
    return result;
}

/* ---- data of an entry that the guard text reads ---- */

static PyObject *
entry_const_by_id(gd_GuardedCode *e, PyObject *arg)
{
    void *address = PyLong_AsVoidPtr(arg);
    if (address == NULL && PyErr_Occurred()) {
        return NULL;
    }
    for (uint32_t i = 0; e->valid && i < e->nconsts; i++) {
        PyObject *object = e->consts[i];
        if (object != address) {
            continue;
        }
        int alive = 0;
        for (Py_ssize_t j = 0; !alive && j < PyTuple_GET_SIZE(e->strong); j++) {
            alive = PyTuple_GET_ITEM(e->strong, j) == object;
        }
        for (Py_ssize_t j = 0; !alive && j < PyTuple_GET_SIZE(e->weakrefs); j++) {
            alive = PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(e->weakrefs, j)) == object;
        }
        if (!alive) {
            break; /* the entry has no reference to the object: only an owner, which may be gone, keeps it alive */
        }
        return Py_NewRef(object);
    }
    PyErr_Format(PyExc_LookupError, "the entry holds no object %p", address);
    return NULL;
}

/* Returns a new tuple of ints, or NULL with an exception set. */
static PyObject *
dims_tuple(const int64_t *dims, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple != NULL && i < n; i++) {
        PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(dims[i]));
    }
    return tuple;
}

static PyObject *
entry_tensor_checks(gd_GuardedCode *e, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < e->ntensors; i++) {
        const gd_tensor_check *c = &e->tensors[i];
        PyObject *row = Py_BuildValue(
            "{s:i,s:i,s:O,s:K,s:i,s:i,s:i,s:i,s:i,s:N,s:N,s:K,s:K,s:O}", "register", c->reg, "fields", c->fields,
            "type", c->type, "keyset", (unsigned long long)c->keyset, "scalar_type", c->dtype, "device_type",
            ((const int8_t *)&c->device)[0], "device_index", ((const int8_t *)&c->device)[1], "requires_grad",
            c->requires_grad, "ndim", c->ndim, "sizes", dims_tuple(c->sizes, c->ndim), "strides",
            dims_tuple(c->strides, c->ndim), "static_sizes", (unsigned long long)c->static_sizes, "static_strides",
            (unsigned long long)c->static_strides, "state", c->state != NULL ? c->state : Py_None);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *
entry_state_holds(gd_GuardedCode *e, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(e->torch_state == NULL || gd_torch_state_equal(e->torch_state));
}

static PyObject *
entry_unchanged(gd_GuardedCode *e, PyObject *object)
{
    gd_instance_view view;
    gd_instance_look(object, &view);
    for (uint32_t i = 0; i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if (n->op == GD_OP_OBJECT_MUTATION && e->consts[n->a] == object) {
            return PyBool_FromLong(view.dict != NULL && gd_dict_tag(view.dict) == e->caches[n->b].tag);
        }
    }
    Py_RETURN_FALSE;
}

static PyObject *
entry_invalidate(gd_GuardedCode *e, PyObject *unused)
{
    (void)unused;
    gd_entry_invalidate(e);
    Py_RETURN_NONE;
}

static const char *const op_names[] = {
#define X(name, access, a, b, text) #name,
    GD_GUARD_OPS(X)
#undef X
};

static PyObject *
entry_nodes(gd_GuardedCode *e, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        PyObject *row = Py_BuildValue("(siIIIII)", op_names[n->op], (int)n->flags, (unsigned)n->dst, (unsigned)n->src,
                                      (unsigned)e->node_parts[i], n->a, n->b);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

/* Makes a check of sizes or of a value always hold, for tests that search for a call whose result is then wrong. */
static PyObject *
entry_drop_node(gd_GuardedCode *e, PyObject *arg)
{
    unsigned long i = PyLong_AsUnsignedLong(arg);
    if (i == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    gd_guard_node *n = i < e->nnodes ? &e->nodes[i] : NULL;
    if (n != NULL && n->op == GD_OP_EQUALS) {
        n->op = GD_OP_NOT_NONE;
    }
    else if (n != NULL && n->op == GD_OP_SHAPE_ENV) {
        gd_size_step zero = {.op = GD_SIZE_CONST}, equal = {.op = GD_SIZE_EQ};
        e->sizes[n->a] = e->sizes[n->a + 1] = zero; /* 0 == 0: a condition has three steps or more */
        e->sizes[n->a + 2] = equal;
        n->b = 3;
    }
    else {
        PyErr_SetString(PyExc_ValueError, "drop_node() takes the index of a SHAPE_ENV or EQUALS node");
        return NULL;
    }
    gd_memo_drop(e);
    Py_RETURN_NONE;
}

/* Makes the check of one size of a tensor always hold. */
static PyObject *
entry_drop_size(gd_GuardedCode *e, PyObject *args)
{
    unsigned tensor, dim;
    if (!PyArg_ParseTuple(args, "II", &tensor, &dim)) {
        return NULL;
    }
    gd_tensor_check *c = tensor < e->ntensors ? &e->tensors[tensor] : NULL;
    if (c == NULL || dim >= c->ndim || !(c->size_mask >> dim & 1)) {
        PyErr_SetString(PyExc_ValueError,
                        "drop_size() takes the number of a tensor's check and a dimension it compares");
        return NULL;
    }
    c->size_mask &= (uint8_t)~(1u << dim);
    c->static_sizes &= ~((uint64_t)1 << dim);
    c->whole = 0;
    gd_memo_drop(e);
    Py_RETURN_NONE;
}

static PyMethodDef entry_methods[] = {
    {"check", (PyCFunction)(void (*)(void))entry_check, METH_VARARGS | METH_KEYWORDS,
     "check(*slots, globals=None) -> bool\n\nWhether the guards hold for these slots."},
    {"failure", (PyCFunction)entry_failure, METH_VARARGS,
     "failure(slots, globals=None) -> str or None\n\nThe part that fails and what was found there."},
    {"const_by_id", (PyCFunction)entry_const_by_id, METH_O, "const_by_id(id) -> object the entry holds or watches"},
    {"tensor_checks", (PyCFunction)entry_tensor_checks, METH_NOARGS, "tensor_checks() -> list of dict"},
    {"state_holds", (PyCFunction)entry_state_holds, METH_NOARGS,
     "state_holds() -> bool\n\nWhether torch's global state is what it was."},
    {"unchanged", (PyCFunction)entry_unchanged, METH_O,
     "unchanged(object) -> bool\n\nWhether an object watched for mutation has not been changed."},
    {"invalidate", (PyCFunction)entry_invalidate, METH_NOARGS, "invalidate()\n\nThe entry never serves again."},
    {"nodes", (PyCFunction)entry_nodes, METH_NOARGS, "nodes() -> list of (op, flags, dst, src, part, a, b)"},
    {"drop_node", (PyCFunction)entry_drop_node, METH_O,
     "Tests: drop_node(index)\n\nThe SHAPE_ENV or EQUALS node holds from now on, for every call."},
    {"drop_size", (PyCFunction)entry_drop_size, METH_VARARGS,
     "Tests: drop_size(tensor, dim)\n\nThe check tensor_checks()[tensor] compares this size no longer."},
    {NULL, NULL, 0, NULL},
};

/* ---- making an entry from a dict ---- */

/* The memory that a gd_entry_spec points to while the entry is made. */
typedef struct {
    gd_node_spec *nodes;
    gd_const_spec *consts;
    gd_tensor_spec *tensors;
    gd_size_spec *sizes;
    uint32_t *extra;
    gd_tb_row *rows;
    PyObject *held; /* sequences whose items are borrowed */
} spec_memory;

/* Returns an item of the dict as a tuple, borrowed from memory->held; an empty tuple if the dict has no such item.
 * Returns NULL with an exception set on failure. */
static PyObject *
sequence_of(PyObject *dict, const char *name, spec_memory *memory)
{
    PyObject *item = PyDict_GetItemString(dict, name);
    PyObject *fast = item != NULL && item != Py_None ? PySequence_Tuple(item) : PyTuple_New(0);
    if (fast == NULL || PyList_Append(memory->held, fast) < 0) {
        Py_CLEAR(fast);
    }
    Py_XDECREF(fast);
    return fast;
}

static void *
array_for(PyObject *sequence, size_t size)
{
    void *array = PyMem_Calloc((size_t)PyTuple_GET_SIZE(sequence) + 1, size);
    if (array == NULL) {
        PyErr_NoMemory();
    }
    return array;
}

/* Returns the number of the guard operation `op` (GD_OP_*), which is a number or a name; -1 if there is none. */
static int
op_number(PyObject *op)
{
    if (PyLong_Check(op)) {
        long number = PyLong_AsLong(op);
        return number >= 0 && number <= UINT8_MAX ? (int)number : -1;
    }
    for (int i = 0; PyUnicode_Check(op) && i < GD_OP_COUNT; i++) {
        if (PyUnicode_CompareWithASCIIString(op, op_names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static int
read_nodes(PyObject *dict, gd_entry_spec *spec, spec_memory *memory)
{
    PyObject *list = sequence_of(dict, "nodes", memory);
    if (list == NULL || (memory->nodes = array_for(list, sizeof(gd_node_spec))) == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++) {
        PyObject *op;
        gd_node_spec *n = &memory->nodes[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(list, i), "ObIIIII", &op, &n->flags, &n->dst, &n->src, &n->part, &n->a,
                              &n->b)) {
            return -1;
        }
        int number = op_number(op);
        if (number < 0) {
            PyErr_Format(PyExc_ValueError, "malformed guard program: no operation %R", op);
            return -1;
        }
        n->op = (uint8_t)number;
    }
    spec->nodes = memory->nodes;
    spec->nnodes = (uint32_t)PyTuple_GET_SIZE(list);
    return 0;
}

static int
read_consts(PyObject *dict, gd_entry_spec *spec, spec_memory *memory)
{
    PyObject *list = sequence_of(dict, "consts", memory);
    if (list == NULL || (memory->consts = array_for(list, sizeof(gd_const_spec))) == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++) {
        gd_const_spec *c = &memory->consts[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(list, i), "Oi", &c->object, &c->keep)) {
            return -1;
        }
    }
    spec->consts = memory->consts;
    spec->nconsts = (uint32_t)PyTuple_GET_SIZE(list);
    return 0;
}

static int
read_tensors(PyObject *dict, gd_entry_spec *spec, spec_memory *memory)
{
    PyObject *list = sequence_of(dict, "tensors", memory);
    if (list == NULL || (memory->tensors = array_for(list, sizeof(gd_tensor_spec))) == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++) {
        gd_tensor_spec *t = &memory->tensors[i];
        unsigned long long sizes, strides;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(list, i), "IHKKO", &t->reg, &t->fields, &sizes, &strides, &t->example)) {
            return -1;
        }
        t->static_sizes = sizes;
        t->static_strides = strides;
    }
    spec->tensors = memory->tensors;
    spec->ntensors = (uint32_t)PyTuple_GET_SIZE(list);
    return 0;
}

static const char *const size_names[] = {
#define X(name) #name,
    GD_SIZE_STEPS(X)
#undef X
};

static int
read_sizes(PyObject *dict, gd_entry_spec *spec, spec_memory *memory)
{
    PyObject *list = sequence_of(dict, "sizes", memory);
    if (list == NULL || (memory->sizes = array_for(list, sizeof(gd_size_spec))) == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++) {
        gd_size_spec *s = &memory->sizes[i];
        const char *op;
        long long n;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(list, i), "sbIL", &op, &s->dim, &s->reg, &n)) {
            return -1;
        }
        s->n = n;
        s->op = 0;
        while (s->op < GD_SIZE_STEP_COUNT && strcmp(op, size_names[s->op]) != 0) {
            s->op++;
        }
    }
    spec->sizes = memory->sizes;
    spec->nsizes = (uint32_t)PyTuple_GET_SIZE(list);
    return 0;
}

static int
read_numbers(PyObject *dict, gd_entry_spec *spec, spec_memory *memory)
{
    PyObject *extra = sequence_of(dict, "extra", memory), *rows = sequence_of(dict, "tb_rows", memory);
    if (extra == NULL || rows == NULL || (memory->extra = array_for(extra, sizeof(uint32_t))) == NULL
        || (memory->rows = array_for(rows, sizeof(gd_tb_row))) == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(extra); i++) {
        memory->extra[i] = (uint32_t)PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(extra, i));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++) {
        gd_tb_row *r = &memory->rows[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, i), "IIII", &r->start, &r->end, &r->chain, &r->flags)) {
            return -1;
        }
    }
    spec->extra_regs = memory->extra;
    spec->nextra = (uint32_t)PyTuple_GET_SIZE(extra);
    spec->tb_rows = memory->rows;
    spec->ntb_rows = (uint32_t)PyTuple_GET_SIZE(rows);
    return PyErr_Occurred() ? -1 : 0;
}

static uint32_t
number_of(PyObject *dict, const char *name)
{
    PyObject *item = PyDict_GetItemString(dict, name);
    return item != NULL ? (uint32_t)PyLong_AsUnsignedLongMask(item) : 0;
}

/* Returns an item of the dict, borrowed; NULL if it is absent or None. */
static PyObject *
object_of(PyObject *dict, const char *name)
{
    PyObject *item = PyDict_GetItemString(dict, name);
    return item != Py_None ? item : NULL;
}

static PyObject *
make_entry(PyObject *module, PyObject *dict)
{
    (void)module;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "make_entry() takes a dict");
        return NULL;
    }
    spec_memory memory = {.held = PyList_New(0)};
    gd_entry_spec spec = {
        .function = object_of(dict, "function"),
        .nregs = number_of(dict, "nregs"),
        .nslots = number_of(dict, "nslots"),
        .ncaches = number_of(dict, "ncaches"),
        .nkept = number_of(dict, "nkept"),
        .flags = number_of(dict, "flags"),
        .chains = object_of(dict, "chains"),
        .operations = object_of(dict, "operations"),
        .info = object_of(dict, "info"),
        .orig_code = object_of(dict, "orig_code"),
    };
    PyObject *entry = NULL;
    if (memory.held != NULL && !PyErr_Occurred() && read_nodes(dict, &spec, &memory) == 0
        && read_consts(dict, &spec, &memory) == 0 && read_tensors(dict, &spec, &memory) == 0
        && read_sizes(dict, &spec, &memory) == 0 && read_numbers(dict, &spec, &memory) == 0
        && (spec.parts = sequence_of(dict, "parts", &memory)) != NULL
        && (object_of(dict, "part_lines") == NULL
            || (spec.part_lines = sequence_of(dict, "part_lines", &memory)) != NULL)) {
        entry = gd_entry_new(&spec);
    }
    PyMem_Free(memory.nodes);
    PyMem_Free(memory.consts);
    PyMem_Free(memory.tensors);
    PyMem_Free(memory.sizes);
    PyMem_Free(memory.extra);
    PyMem_Free(memory.rows);
    Py_XDECREF(memory.held);
    return entry;
}

/* ---- helpers of the guard text that only C can implement without creating objects or running code ---- */

/* Returns the attribute that the object itself has, borrowed; NULL if it has none of this name. name: a str. */
static PyObject *
own_attribute(PyObject *object, PyObject *name)
{
    gd_inline_cache cache = {0, NULL};
    return gd_instance_attr(object, name, PyObject_Hash(name), &cache);
}

static PyObject *
instance_attr(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object, *name;
    if (!PyArg_ParseTuple(args, "OU", &object, &name)) {
        return NULL;
    }
    PyObject *value = own_attribute(object, name);
    if (value == NULL) {
        PyErr_SetObject(PyExc_AttributeError, name);
    }
    return Py_XNewRef(value);
}

static PyObject *
ends_in_code_at(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *owner, *at;
    int places, slot = 0;
    if (!PyArg_ParseTuple(args, "OOi|p", &owner, &at, &places, &slot)) {
        return NULL;
    }
    int ends = gd_ends_in_code_at(owner, at, slot, places);
    return ends < 0 ? NULL : PyBool_FromLong(ends);
}

/* How many more references to a variable's value exist while Python evaluates the guard text (eval_text in
 * _called/guard_env.py) than while C evaluates the guards. */
enum { TEXT_HOLDS = 6 };

static PyObject *
ends_in_code(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object;
    int places;
    if (!PyArg_ParseTuple(args, "Oi", &object, &places)) {
        return NULL;
    }
    return PyBool_FromLong(gd_variable_ends_in_code(object, places + TEXT_HOLDS));
}

static PyObject *
end_may_run_code(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object;
    int attempts;
    if (!PyArg_ParseTuple(args, "Oi", &object, &attempts)) {
        return NULL;
    }
    return PyBool_FromLong(gd_end_may_run_code(object, attempts));
}

static PyObject *
watched(PyObject *Py_UNUSED(module), PyObject *object)
{
    return PyBool_FromLong(gd_watched(object));
}

static PyObject *
has_instance_attr(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object, *name;
    if (!PyArg_ParseTuple(args, "OU", &object, &name)) {
        return NULL;
    }
    return PyBool_FromLong(own_attribute(object, name) != NULL);
}

static PyObject *
instance_dict(PyObject *module, PyObject *object)
{
    (void)module;
    PyObject *dict = gd_made_dict(object);
    if (dict == NULL) {
        PyErr_Format(PyExc_AttributeError, "a %s object has no __dict__", Py_TYPE(object)->tp_name);
    }
    return Py_XNewRef(dict);
}

static PyObject *
guard_equals(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *a, *b;
    return PyArg_ParseTuple(args, "OO", &a, &b) ? PyBool_FromLong(gd_equals(a, b)) : NULL;
}

static PyObject *
dict_keys(PyObject *module, PyObject *dict)
{
    (void)module;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "a dict is needed");
        return NULL;
    }
    return gd_dict_keys_tuple(dict);
}

static PyObject *
dict_get(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *dict, *key;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &dict, &key)) {
        return NULL;
    }
    Py_hash_t hash = PyObject_Hash(key);
    PyObject *value = hash != -1 ? gd_dict_lookup(dict, key, hash) : NULL;
    if (value == NULL && !PyErr_Occurred()) {
        PyErr_SetObject(PyExc_KeyError, key);
    }
    return Py_XNewRef(value);
}

static PyObject *
torch_state(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return gd_torch_state_describe();
}

static PyMethodDef functions[] = {
    {"make_entry", make_entry, METH_O,
     "make_entry(spec: dict) -> GuardedCode\n\nAn entry from the fields of gd_entry_spec."},
    {"guard_check", guard_check, METH_VARARGS,
     "guard_check(entry, slots, globals=None) -> (holds, index of the failed part or None)"},
    {"guard_time", guard_time, METH_VARARGS,
     "guard_time(entry, slots, globals, count) -> (ns per evaluation, failures)"},
    {"_entry_call", entry_call, METH_VARARGS, "Tests: call with the entry's traceback rewriting."},
    {"guard_equals", guard_equals, METH_VARARGS, "guard_equals(a, b) -> bool\n\nEquality as guards mean it."},
    {"dict_keys", dict_keys, METH_O, "dict_keys(d) -> tuple\n\nThe keys in order."},
    {"dict_get", dict_get, METH_VARARGS,
     "dict_get(d, key)\n\nThe dict's own value; no __missing__, no __eq__ of the user runs."},
    {"instance_attr", instance_attr, METH_VARARGS, "instance_attr(object, name)\n\nWhat the instance itself has."},
    {"ends_in_code_at", ends_in_code_at, METH_VARARGS,
     "ends_in_code_at(owner, at, places, slot=False) -> bool\n\nWhether code may run when that many references "
     "to what a container or instance has at a key, name (slot: of a slot) or index are dropped."},
    {"ends_in_code", ends_in_code, METH_VARARGS,
     "ends_in_code(object, places) -> bool\n\nThe same for a variable of a resumed frame, as the guard text asks it."},
    {"end_may_run_code", end_may_run_code, METH_VARARGS,
     "end_may_run_code(object, attempts) -> bool\n\nThe same for what a store replaces, during a translation, each "
     "attempt of which refers to it as well, or for a variable (0 attempts)."},
    {"watched", watched, METH_O, "watched(object) -> bool\n\nWhether a weak reference with a callback looks at it."},
    {"has_instance_attr", has_instance_attr, METH_VARARGS, "has_instance_attr(object, name) -> bool"},
    {"instance_dict", instance_dict, METH_O,
     "instance_dict(object) -> dict\n\nMade where there is none yet, as reading it does. AttributeError where the type "
     "has none."},
    {"torch_state", torch_state, METH_NOARGS, "torch_state() -> dict of name: (value, how it is read)"},
    {NULL, NULL, 0, NULL},
};

int
gd_guard_env_init(PyObject *module)
{
    gd_GuardedCode_Type.tp_methods = entry_methods; /* the file that defines the type does not depend on this one */
    if (gd_pycompat_guard_check() < 0 || PyModule_AddType(module, &gd_GuardedCode_Type) < 0
        || PyModule_AddFunctions(module, functions) < 0) {
        return -1;
    }
    PyObject *names = PyTuple_New(GD_OP_COUNT);
    for (Py_ssize_t i = 0; names != NULL && i < GD_OP_COUNT; i++) {
        PyTuple_SET_ITEM(names, i, PyUnicode_FromString(op_names[i]));
    }
    int failed = names != NULL ? PyModule_AddObjectRef(module, "GUARD_OPS", names) : -1;
    Py_XDECREF(names);
    return failed;
}
