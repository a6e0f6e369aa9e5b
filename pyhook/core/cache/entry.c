/* Creates a GuardedCode from a gd_entry_spec. Every spec is verified here, since a wrong register or
 * operand would be read as an address. GuardedCode supports garbage collection, so a Callable can be
 * collected even if the objects that it guards refer to it. */
#include "cache/entry.h"

#include "cache/bound.h"
#include "guards/memo.h"
#include "guards/pure.h"
#include "guards/sizes.h"
#include "guards/tensor.h"
#include "guards/weak.h"
#include "pycommon/guard.h"
#include "structmember.h"
#include "torch/torch_state.h"

/* ---- verifying ---- */

static const struct {
    const char *name;
    uint8_t access, a, b;
} op_table[] = {
#define X(name, access, a, b, text) {#name, access, a, b},
    GD_GUARD_OPS(X)
#undef X
};

static int
malformed(uint32_t node, const gd_node_spec *n, const char *what)
{
    const char *name = n->op < GD_OP_COUNT ? op_table[n->op].name : "?";
    PyErr_Format(PyExc_ValueError, "malformed guard program: node %u, %s: %s", (unsigned)node, name, what);
    return -1;
}

typedef struct {
    const gd_entry_spec *spec;
    char *written; /* per register */
    char *caches; /* per inline cache: whether a node already uses that cache */
    char *kept; /* per kept int: whether a node already uses it */
    uint32_t end; /* index of the first of the nodes that follow TENSORS */
} verifier;

/* Returns why the size cannot be read from the register, or NULL. The example's dimensions are checked later, by
 * copy_sizes. */
static const char *
bad_size(verifier *v, uint32_t reg)
{
    const gd_node_spec *last = v->end > 0 ? &v->spec->nodes[v->end - 1] : NULL;
    for (uint32_t i = 0; last != NULL && last->op == GD_OP_TENSORS && i < last->b; i++) {
        const gd_tensor_spec *t = &v->spec->tensors[last->a + i];
        if (t->reg == reg && t->fields & GD_TENSOR_NDIM) {
            return NULL;
        }
    }
    return "the size of a tensor whose number of dimensions TENSORS does not compare";
}

/* Returns why the steps do not form a condition, or NULL. */
static const char *
bad_steps(verifier *v, const gd_size_spec *steps, uint32_t n)
{
    int depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        const gd_size_spec *s = &steps[i];
        if (s->op >= GD_SIZE_STEP_COUNT || (s->op >= GD_SIZE_EQ) != (i == n - 1)) {
            return "a condition ends with its only relation";
        }
        if (depth < gd_size_step_takes(s->op)) {
            return "too few or too many values of a condition";
        }
        depth += 1 - gd_size_step_takes(s->op);
        if (depth < 1 || depth > GD_SIZE_STACK) {
            return "too few or too many values of a condition";
        }
        const char *bad = NULL;
        if (s->op == GD_SIZE_INT) {
            bad = s->reg < v->spec->nregs && v->written[s->reg] ? NULL : "a register is read before it is written";
        }
        else if (s->op == GD_SIZE_SIZE || s->op == GD_SIZE_STRIDE) {
            bad = bad_size(v, s->reg);
        }
        if (bad != NULL) {
            return bad;
        }
    }
    return depth == 1 && n >= 3 ? NULL : "too few or too many values of a condition";
}

/* Returns why an operand is wrong, or NULL. */
static const char *
bad_operand(verifier *v, const gd_node_spec *n, uint8_t class, uint32_t x)
{
    const gd_entry_spec *spec = v->spec;
    switch (class) {
    case GD_OPERAND_OBJECT:
    case GD_OPERAND_HELD:
    case GD_OPERAND_NAME:
    case GD_OPERAND_LITERAL:
        if (x >= spec->nconsts) {
            return "no such constant";
        }
        if (class == GD_OPERAND_HELD && spec->consts[x].keep == GD_KEEP_NONE) {
            return "the constant may be gone when it is read";
        }
        if ((class == GD_OPERAND_NAME || class == GD_OPERAND_LITERAL) && spec->consts[x].keep != GD_KEEP_STRONG) {
            return "the constant may be gone when it is read";
        }
        if (class == GD_OPERAND_NAME && !PyUnicode_CheckExact(spec->consts[x].object)) {
            return "the name is no str";
        }
        if ((n->op == GD_OP_DICT_KEYS || n->op == GD_OP_PARAM_NAMES) && !PyTuple_CheckExact(spec->consts[x].object)) {
            return "the keys are no tuple";
        }
        return NULL;
    case GD_OPERAND_REG:
        return x < spec->nregs && v->written[x] ? NULL : "a register is read before it is written";
    case GD_OPERAND_FIELD:
        return x < GD_FUNC_FIELDS ? NULL : "no such field";
    case GD_OPERAND_OFFSET:
        return x % sizeof(void *) == 0 && x <= 1u << 20 ? NULL : "no offset of a slot";
    case GD_OPERAND_CACHE:
        if (x >= spec->ncaches || v->caches[x]) {
            return "the cache is absent or another node's";
        }
        v->caches[x] = 1;
        return NULL;
    case GD_OPERAND_KEPT:
        if (x >= spec->nkept || v->kept[x]) {
            return "the int is absent or another node's";
        }
        v->kept[x] = 1;
        return n->op == GD_OP_ITER_NUMBER ? NULL : bad_size(v, n->src);
    case GD_OPERAND_STEP:
        if ((uint64_t)n->a + n->b > spec->nsizes) {
            return "no such steps";
        }
        return bad_steps(v, spec->sizes + n->a, n->b);
    case GD_OPERAND_TENSOR:
        if ((uint64_t)n->a + n->b > spec->ntensors) {
            return "no such tensors";
        }
        for (uint32_t i = n->a; i < n->a + n->b; i++) {
            uint32_t reg = spec->tensors[i].reg;
            if (reg >= spec->nregs || !v->written[reg]) {
                return "a tensor's register is read before it is written";
            }
        }
        return NULL;
    default:
        return NULL;
    }
}

/* Reports whether nodes of this operation follow TENSORS. */
static int
is_late(uint8_t op)
{
    return op == GD_OP_TENSOR_SIZE || op == GD_OP_TENSOR_STRIDE || op == GD_OP_SHAPE_ENV;
}

/* Returns the index of the first node that follows TENSORS. If the program has no TENSORS, returns the index where such
 * nodes begin. */
static uint32_t
late_from(const gd_entry_spec *spec)
{
    uint32_t i = spec->nnodes;
    while (i > 0 && is_late(spec->nodes[i - 1].op)) {
        i--;
    }
    return i;
}

static int
verify_node(verifier *v, uint32_t i)
{
    const gd_entry_spec *spec = v->spec;
    const gd_node_spec *n = &spec->nodes[i];
    if (n->op >= GD_OP_COUNT) {
        return malformed(i, n, "unknown operation");
    }
    if ((n->op == GD_OP_VALID) != (i == 0)) {
        return malformed(i, n, "VALID stands first and only there");
    }
    if ((n->op == GD_OP_TENSORS && i != v->end - 1) || (is_late(n->op) && i < v->end)) {
        return malformed(i, n, "TENSORS stands last, followed by sizes");
    }
    if ((Py_ssize_t)n->part >= PyTuple_GET_SIZE(spec->parts)) {
        return malformed(i, n, "no such part");
    }
    if (n->src >= spec->nregs || !v->written[n->src]) {
        return malformed(i, n, "a register is read before it is written");
    }
    const char *bad = bad_operand(v, n, op_table[n->op].a, n->a);
    if (bad == NULL) {
        bad = bad_operand(v, n, op_table[n->op].b, n->b);
    }
    if (bad != NULL) {
        return malformed(i, n, bad);
    }
    if (op_table[n->op].access) {
        if (n->dst < spec->nslots + 2 || n->dst >= spec->nregs || v->written[n->dst]) {
            return malformed(i, n, "the register cannot be written here");
        }
        v->written[n->dst] = 1;
    }
    return 0;
}

static int
verify_extra(verifier *v)
{
    const gd_entry_spec *spec = v->spec;
    for (uint32_t i = 0; i < spec->nextra; i++) {
        uint32_t reg = spec->extra_regs[i];
        if (reg >= spec->nregs || !v->written[reg] || reg < spec->nslots + i
            || (i > 0 && reg <= spec->extra_regs[i - 1])) {
            PyErr_SetString(PyExc_ValueError, "malformed guard program: extra registers do not ascend after the slots");
            return -1;
        }
    }
    return 0;
}

/* Verifies a spec. Returns 0, or -1 with an exception set. */
static int
verify(const gd_entry_spec *spec)
{
    int run_original = (spec->flags & GD_ENTRY_RUN_ORIGINAL) != 0;
    if (spec->nregs > GD_MAX_REGS || (uint64_t)spec->nslots + 2 > spec->nregs || spec->nnodes == 0
        || spec->ncaches > spec->nnodes || spec->nkept > spec->nnodes || spec->nnodes - late_from(spec) > UINT16_MAX
        || spec->nextra > spec->nregs || spec->parts == NULL || !PyTuple_CheckExact(spec->parts)
        || (spec->part_lines != NULL
            && (!PyTuple_CheckExact(spec->part_lines)
                || PyTuple_GET_SIZE(spec->part_lines) != PyTuple_GET_SIZE(spec->parts)))) {
        PyErr_SetString(PyExc_ValueError, "malformed guard program: sizes do not fit together");
        return -1;
    }
    if (run_original ? spec->function != NULL : spec->function == NULL || !PyFunction_Check(spec->function)) {
        PyErr_SetString(PyExc_ValueError,
                        "malformed entry: a function is needed exactly when the original does not run");
        return -1;
    }
    for (uint32_t i = 0; i < spec->nconsts; i++) {
        if (spec->consts[i].object == NULL || spec->consts[i].keep < GD_KEEP_STRONG
            || spec->consts[i].keep > GD_KEEP_NONE) {
            PyErr_Format(PyExc_ValueError, "malformed guard program: constant %u", (unsigned)i);
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(spec->parts); i++) {
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(spec->parts, i))) {
            PyErr_SetString(PyExc_ValueError, "malformed guard program: a part is no str");
            return -1;
        }
    }
    verifier v = {spec, PyMem_Calloc(spec->nregs, 1), PyMem_Calloc(spec->ncaches + 1, 1),
                  PyMem_Calloc(spec->nkept + 1, 1), late_from(spec)};
    int failed = v.written == NULL || v.caches == NULL || v.kept == NULL ? -1 : 0;
    if (failed) {
        PyErr_NoMemory();
    }
    else {
        memset(v.written, 1, spec->nslots + 2);
    }
    for (uint32_t i = 0; i < spec->nnodes && !failed; i++) {
        failed = verify_node(&v, i);
    }
    if (!failed) {
        failed = verify_extra(&v);
    }
    PyMem_Free(v.written);
    PyMem_Free(v.caches);
    PyMem_Free(v.kept);
    return failed;
}

/* ---- making ---- */

static int
takes_weakref(PyObject *object)
{
    return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object));
}

/* Static types outlive every entry, so they need no weak reference. */
static int
is_static_type(PyObject *object)
{
    return PyType_Check(object) && !(((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

typedef struct {
    PyObject *strong, *weak; /* lists */
    PyObject *callback; /* created on first use */
} keepers;

static int
keep_weakly(gd_GuardedCode *e, keepers *k, PyObject *object)
{
    if (k->callback == NULL) {
        k->callback = gd_weak_callback(e);
    }
    PyObject *reference = k->callback != NULL ? PyWeakref_NewRef(object, k->callback) : NULL;
    int failed = reference != NULL ? PyList_Append(k->weak, reference) : -1;
    Py_XDECREF(reference);
    return failed;
}

/* Keeps one object as `how` (GD_KEEP_*) says. An object that does not support weak references is held
 * strongly; the collector sees it through the entry. */
static int
keep(gd_GuardedCode *e, keepers *k, PyObject *object, int how)
{
    if (how == GD_KEEP_NONE) {
        return 0;
    }
    if (how == GD_KEEP_WEAK && takes_weakref(object) && !is_static_type(object)) {
        return keep_weakly(e, k, object);
    }
    return PyList_Append(k->strong, object);
}

static int
copy_consts(gd_GuardedCode *e, const gd_entry_spec *spec, keepers *k)
{
    e->nconsts = spec->nconsts;
    e->consts = PyMem_Calloc(spec->nconsts + 1, sizeof(PyObject *));
    e->hashes = PyMem_Calloc(spec->nconsts + 1, sizeof(Py_hash_t));
    if (e->consts == NULL || e->hashes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < spec->nconsts; i++) {
        e->consts[i] = spec->consts[i].object;
    }
    for (uint32_t i = 0; i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if (op_table[n->op].a == GD_OPERAND_NAME) {
            /* The name is interned, so that dict lookups find it by its address. The list keeps the name alive. */
            PyObject *name = Py_NewRef(e->consts[n->a]);
            PyUnicode_InternInPlace(&name);
            int failed = PyList_Append(k->strong, name);
            Py_DECREF(name);
            if (failed) {
                return -1;
            }
            e->consts[n->a] = name;
        }
        if (n->op == GD_OP_DICT_GET || n->op == GD_OP_DICT_CONTAINS || n->op == GD_OP_QUIET_KEY
            || op_table[n->op].a == GD_OPERAND_NAME) {
            if ((e->hashes[n->a] = PyObject_Hash(e->consts[n->a])) == -1) {
                return -1;
            }
        }
    }
    for (uint32_t i = 0; i < e->nconsts; i++) {
        if (keep(e, k, e->consts[i], spec->consts[i].keep) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
copy_tensors(gd_GuardedCode *e, const gd_entry_spec *spec, keepers *k)
{
    e->tensors = PyMem_Calloc(spec->ntensors + 1, sizeof(gd_tensor_check));
    if (e->tensors == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < spec->ntensors; i++) {
        if (spec->tensors[i].example == NULL) {
            PyErr_Format(PyExc_ValueError, "malformed guard program: tensor %u has no example", (unsigned)i);
            return -1;
        }
        e->ntensors = i + 1;
        if (gd_tensor_check_init(&e->tensors[i], &spec->tensors[i]) < 0
            || keep(e, k, (PyObject *)e->tensors[i].type, GD_KEEP_WEAK) < 0) {
            return -1;
        }
    }
    for (uint32_t i = 0; i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if (n->op == GD_OP_TENSORS && n->flags & GD_FLAG_STATE
            && (e->torch_state = gd_torch_state_snapshot(n->flags & GD_FLAG_THREADS)) == NULL) {
            return -1;
        }
        if (n->op == GD_OP_GRAD_MODE && gd_torch_state_ensure() < 0) {
            return -1;
        }
    }
    return 0;
}

/* Returns 0 if the tensor in the register has the dimension and C can read it, or -1 with an exception set. */
static int
check_size(const gd_GuardedCode *e, uint32_t reg, uint32_t dim)
{
    uint32_t i = 0;
    while (e->tensors[i].reg != reg) {
        i++; /* found, since bad_size has checked the register */
    }
    if (e->tensors[i].state != NULL || dim >= e->tensors[i].ndim) {
        PyErr_Format(PyExc_ValueError, "malformed guard program: dimension %u of a tensor of %s", (unsigned)dim,
                     e->tensors[i].state != NULL ? "unknown layout" : "fewer dimensions");
        return -1;
    }
    return 0;
}

/* Copies the steps of the conditions on sizes, and checks the dimensions that the program reads. */
static int
copy_sizes(gd_GuardedCode *e, const gd_entry_spec *spec)
{
    for (uint32_t i = 0; i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if ((n->op == GD_OP_TENSOR_SIZE || n->op == GD_OP_TENSOR_STRIDE) && check_size(e, n->src, n->a) < 0) {
            return -1;
        }
        for (uint32_t k = n->a; n->op == GD_OP_SHAPE_ENV && k < n->a + n->b; k++) {
            const gd_size_spec *s = &spec->sizes[k];
            int reads_tensor = s->op == GD_SIZE_SIZE || s->op == GD_SIZE_STRIDE;
            if (reads_tensor && check_size(e, s->reg, s->dim) < 0) {
                return -1;
            }
            uint32_t first = s->op == GD_SIZE_SIZE ? gd_tensor_layout.sizes : gd_tensor_layout.strides;
            e->sizes[k] = (gd_size_step){
                .op = s->op,
                .at = reads_tensor ? (first + s->dim * sizeof(int64_t)) & 0xFFFFFF : 0,
                .reg = reads_tensor || s->op == GD_SIZE_INT ? s->reg : 0,
                .n = s->n,
            };
        }
    }
    return 0;
}

/* Records the present dict version of each object that an OBJECT_MUTATION node checks. */
static int
note_mutations(gd_GuardedCode *e)
{
    for (uint32_t i = 0; i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if (n->op != GD_OP_OBJECT_MUTATION) {
            continue;
        }
        gd_instance_view view;
        gd_instance_look(e->consts[n->a], &view);
        if (view.values != NULL && view.dict != NULL && gd_dict_leave_values(view.dict) < 0) {
            return -1;
        }
        gd_instance_look(e->consts[n->a], &view);
        if (view.dict == NULL || view.values != NULL) {
            PyErr_Format(PyExc_TypeError, "changes of a %s object cannot be watched: it has no __dict__",
                         Py_TYPE(e->consts[n->a])->tp_name);
            return -1;
        }
        e->caches[n->b].tag = gd_dict_tag(view.dict);
    }
    return 0;
}

static void *
copy_array(const void *from, size_t n, size_t size)
{
    void *to = PyMem_Malloc(n * size + 1);
    if (to == NULL) {
        PyErr_NoMemory();
    }
    else if (n > 0) {
        memcpy(to, from, n * size);
    }
    return to;
}

/* Returns a new tuple with the user's line for each condition of the guard text, or with None for each of them if the
 * spec has no lines. Returns NULL with an exception set on failure. */
static PyObject *
lines_or_nones(const gd_entry_spec *spec)
{
    if (spec->part_lines != NULL) {
        return Py_NewRef(spec->part_lines);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(spec->parts);
    PyObject *lines = PyTuple_New(n);
    for (Py_ssize_t i = 0; lines != NULL && i < n; i++) {
        PyTuple_SET_ITEM(lines, i, Py_NewRef(Py_None));
    }
    return lines;
}

/* Lists the PY_CHECK nodes whose operand is a constant. Returns 0, or -1 with an exception set. */
static int
list_early(gd_GuardedCode *e)
{
    uint32_t npython = 0;
    for (uint32_t i = 0; i < e->nnodes; i++) {
        npython += e->nodes[i].op == GD_OP_PY_CHECK;
    }
    e->early = PyMem_Calloc(npython + 1, sizeof(gd_early_check));
    /* per register: 1 + the index of its constant */
    uint32_t *constant = npython > 0 ? PyMem_Calloc(e->nregs, sizeof(uint32_t)) : NULL;
    if (e->early == NULL || (npython > 0 && constant == NULL)) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; npython > 0 && i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if (n->op == GD_OP_CONST) {
            constant[n->dst] = 1 + n->a;
        }
        else if (n->op == GD_OP_PY_CHECK && constant[n->src] != 0) {
            e->early[e->nearly++] = (gd_early_check){.node = i, .operand = constant[n->src] - 1};
        }
    }
    PyMem_Free(constant);
    return 0;
}

static int
fill(gd_GuardedCode *e, const gd_entry_spec *spec, keepers *k)
{
    e->nslots = spec->nslots;
    e->nregs = spec->nregs;
    e->nextra = spec->nextra;
    e->nnodes = spec->nnodes;
    e->ncaches = spec->ncaches;
    e->nkept = spec->nkept;
    e->nlate = (uint16_t)(spec->nnodes - late_from(spec));
    e->flags = spec->flags;
    e->nodes = PyMem_Calloc(spec->nnodes, sizeof(gd_guard_node));
    e->node_parts = PyMem_Calloc(spec->nnodes, sizeof(uint32_t));
    e->caches = PyMem_Calloc(spec->ncaches + 1, sizeof(gd_inline_cache));
    e->sizes = PyMem_Calloc(spec->nsizes + 1, sizeof(gd_size_step));
    e->kept = PyMem_Calloc(spec->nkept + 1, sizeof(gd_kept_int));
    e->extra_regs = copy_array(spec->extra_regs, spec->nextra, sizeof(uint32_t));
    e->tb_rows = copy_array(spec->tb_rows, spec->chains != NULL ? spec->ntb_rows : 0, sizeof(gd_tb_row));
    if (e->nodes == NULL || e->node_parts == NULL || e->caches == NULL || e->extra_regs == NULL || e->tb_rows == NULL
        || e->sizes == NULL || e->kept == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < spec->nnodes; i++) {
        const gd_node_spec *n = &spec->nodes[i];
        e->nodes[i] = (gd_guard_node){
            .op = n->op,
            .src = n->src & 0xFFFFFF, /* src and dst are below nregs if the operation uses them */
            .flags = n->flags,
            .dst = n->dst & 0xFFFFFF,
            .a = n->a,
            .b = n->b,
        };
        e->node_parts[i] = n->part;
    }
    e->ntb_rows = spec->chains != NULL ? spec->ntb_rows : 0;
    e->function = Py_XNewRef(spec->function);
    e->vectorcall = spec->function != NULL ? ((PyFunctionObject *)spec->function)->vectorcall : NULL;
    e->exact = Py_XNewRef(gd_py_code_for_exact_call(spec->function, spec->nslots + spec->nextra));
    e->chains = Py_NewRef(spec->chains != NULL ? spec->chains : Py_None);
    e->operations = Py_NewRef(spec->operations != NULL ? spec->operations : Py_None);
    e->parts = Py_NewRef(spec->parts);
    e->part_lines = lines_or_nones(spec);
    e->info = Py_NewRef(spec->info != NULL ? spec->info : Py_None);
    e->orig_code = Py_NewRef(spec->orig_code != NULL ? spec->orig_code : Py_None);
    if (e->part_lines == NULL || copy_consts(e, spec, k) < 0 || copy_tensors(e, spec, k) < 0 || copy_sizes(e, spec) < 0
        || gd_size_inputs_list(e, spec->nsizes) < 0 || note_mutations(e) < 0 || list_early(e) < 0) {
        return -1;
    }
    e->strong = PyList_AsTuple(k->strong);
    e->weakrefs = PyList_AsTuple(k->weak);
    gd_memo_prepare(e);
    return e->strong != NULL && e->weakrefs != NULL ? 0 : -1;
}

PyObject *
gd_entry_new(const gd_entry_spec *spec)
{
    if (verify(spec) < 0) {
        return NULL;
    }
    gd_GuardedCode *e = PyObject_GC_New(gd_GuardedCode, &gd_GuardedCode_Type);
    if (e == NULL) {
        return NULL;
    }
    memset((char *)e + sizeof(PyObject), 0, sizeof(*e) - sizeof(PyObject));
    e->valid = 1;
    keepers k = {PyList_New(0), PyList_New(0), NULL};
    int failed = k.strong == NULL || k.weak == NULL ? -1 : fill(e, spec, &k);
    Py_XDECREF(k.strong);
    Py_XDECREF(k.weak);
    Py_XDECREF(k.callback);
    PyObject_GC_Track(e);
    if (failed) {
        Py_DECREF(e);
        return NULL;
    }
    return (PyObject *)e;
}

/* ---- the type: getters return new references, or NULL with an exception set ---- */

static int
entry_traverse(gd_GuardedCode *e, visitproc visit, void *arg)
{
    Py_VISIT(e->function);
    Py_VISIT(e->strong);
    Py_VISIT(e->weakrefs);
    Py_VISIT(e->chains);
    Py_VISIT(e->operations);
    Py_VISIT(e->parts);
    Py_VISIT(e->part_lines);
    Py_VISIT(e->info);
    Py_VISIT(e->orig_code);
    for (uint32_t i = 0; i < e->ntensors; i++) {
        Py_VISIT(e->tensors[i].state);
    }
    return 0;
}

/* Fields that the evaluator dereferences are freed only together with the entry: after tp_clear an entry
 * can still be evaluated, and its guards fail. */
static int
entry_clear(gd_GuardedCode *e)
{
    e->valid = 0;
    Py_CLEAR(e->chains);
    Py_CLEAR(e->operations);
    Py_CLEAR(e->info);
    Py_CLEAR(e->function);
    e->vectorcall = NULL;
    Py_CLEAR(e->exact);
    Py_CLEAR(e->weakrefs);
    Py_CLEAR(e->strong);
    for (uint32_t i = 0; i < e->ntensors; i++) {
        Py_CLEAR(e->tensors[i].state);
    }
    return 0;
}

static void
entry_dealloc(gd_GuardedCode *e)
{
    PyObject_GC_UnTrack(e);
    if (e->weakreflist != NULL) {
        PyObject_ClearWeakRefs((PyObject *)e);
    }
    entry_clear(e);
    Py_XDECREF(e->parts);
    Py_XDECREF(e->part_lines);
    Py_XDECREF(e->orig_code);
    gd_memo_drop(e);
    PyMem_Free(e->nodes);
    PyMem_Free(e->node_parts);
    PyMem_Free(e->caches);
    PyMem_Free(e->consts);
    PyMem_Free(e->hashes);
    PyMem_Free(e->tensors);
    for (uint32_t i = 0; e->kept != NULL && i < e->nkept; i++) {
        Py_XDECREF(e->kept[i].object); /* an int, so the collector need not see it */
    }
    PyMem_Free(e->sizes);
    PyMem_Free(e->kept);
    PyMem_Free(e->extra_regs);
    PyMem_Free(e->early);
    PyMem_Free(e->inputs);
    PyMem_Free(e->made_for);
    PyMem_Free(e->tb_rows);
    PyMem_Free(e->torch_state);
    PyObject_GC_Del(e);
}

static PyObject *
get_text(gd_GuardedCode *e, void *unused)
{
    (void)unused;
    PyObject *separator = PyUnicode_FromString(" and ");
    PyObject *text = separator != NULL ? PyUnicode_Join(separator, e->parts) : NULL;
    Py_XDECREF(separator);
    return text;
}

/* Returns the code that runs when the guards hold. */
static PyObject *
get_code(gd_GuardedCode *e, void *unused)
{
    (void)unused;
    return Py_NewRef(e->function != NULL ? ((PyFunctionObject *)e->function)->func_code : e->orig_code);
}

static PyObject *
get_check_fn(gd_GuardedCode *e, void *unused)
{
    (void)unused;
    return PyObject_GetAttrString((PyObject *)e, "check");
}

static PyObject *
get_valid(gd_GuardedCode *e, void *unused)
{
    (void)unused;
    return PyBool_FromLong(e->valid);
}

static PyObject *
get_bytes(gd_GuardedCode *e, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(gd_entry_bytes(e));
}

static PyGetSetDef entry_getset[] = {
    {"bytes", (getter)get_bytes, NULL, "About how much memory the entry takes, without what a backend has compiled.",
     NULL},
    {"valid", (getter)get_valid, NULL, "False once an object the entry depends on died, or reset() was called.", NULL},
    {"text", (getter)get_text, NULL, "The parts joined by ' and ': the condition under which the entry serves.", NULL},
    {"code", (getter)get_code, NULL, "The code object that runs when the guards hold.", NULL},
    {"check_fn", (getter)get_check_fn, NULL, "check(*slots): whether the guards hold for these slots.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef entry_members[] = {
    {"hits", T_ULONGLONG, offsetof(gd_GuardedCode, hits), READONLY, "Calls served."},
    {"parts", T_OBJECT, offsetof(gd_GuardedCode, parts), READONLY, "Conditions, in the order they are checked."},
    {"part_lines", T_OBJECT, offsetof(gd_GuardedCode, part_lines), READONLY, "(file, line) of each part, or None."},
    {"info", T_OBJECT, offsetof(gd_GuardedCode, info), READONLY, "What explain() shows."},
    {"orig_code", T_OBJECT, offsetof(gd_GuardedCode, orig_code), READONLY, "The user's code object."},
    {"function", T_OBJECT, offsetof(gd_GuardedCode, function), READONLY, "Function of the transformed code, or None."},
    {"nslots", T_UINT, offsetof(gd_GuardedCode, nslots), READONLY, "Slots of the frame."},
    {"flags", T_UINT, offsetof(gd_GuardedCode, flags), READONLY, "ENTRY_RUN_ORIGINAL, ENTRY_NEEDS_HOOK, ..."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject gd_GuardedCode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.GuardedCode",
    .tp_doc = "One translation of one code object and the guard program that says when it serves.",
    .tp_basicsize = sizeof(gd_GuardedCode),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_weaklistoffset = offsetof(gd_GuardedCode, weakreflist),
    .tp_getset = entry_getset,
    .tp_members = entry_members,
};
