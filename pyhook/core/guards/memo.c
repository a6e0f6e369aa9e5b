/* Makes the memo of a guard program: see guards/memo.h.
 *
 * Each node is examined in order, with the objects that the program has just found in the registers. The
 * state of a register is one of these:
 *
 *   UNKNOWN   nothing is proved: nodes that read the register run
 *   ADDRESS   the memo proves that the register holds an object at the recorded address. It may be a different object,
 *             which replaced the recorded one in its owner and has the same address. The object's words may be
 *             watched once its type is proved unchanged, which requires that this type cannot have died
 *   OBJECT    the memo proves that the register holds the recorded object. The object's owner is a dict whose version
 *             tag is unchanged, a class whose version is unchanged (no two states of any dicts or classes share a
 *             version), or the entry itself
 *
 * A proved address is enough to skip a node: the node would read the same words of the same memory. */
#include "guards/memo.h"

#include "guards/tensor.h"
#include "pycommon/guard.h"
#include "pycommon/internals.h"

typedef enum { UNKNOWN, ADDRESS, OBJECT } known;

typedef struct {
    gd_GuardedCode *e;
    PyObject **regs;
    uint8_t *known; /* per register */
    gd_memo_word *words;
    uint32_t *readers; /* per word */
    uint32_t nwords;
    uint32_t *seen; /* hash table: 1 + the position of each address in `words`, 0 if free */
    uint32_t mask;
    uint32_t reg; /* the register that the current node reads */
    PyObject **kept; /* hash table of the objects that the entry keeps */
    uint32_t kept_mask;
} learner;

static const uint8_t is_access[] = {
#define X(name, access, a, b, text) access,
    GD_GUARD_OPS(X)
#undef X
};

/* The most words that one node watches. An attribute among inline values needs this many. */
enum { WORDS_PER_NODE = 6 };

static inline uint32_t
hash_address(const void *at)
{
    return (uint32_t)(((uintptr_t)at >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static void
watch(learner *l, const void *at)
{
    uint32_t i = hash_address(at) & l->mask;
    for (; l->seen[i] != 0; i = (i + 1) & l->mask) {
        if (l->words[l->seen[i] - 1].at == at) {
            return;
        }
    }
    l->words[l->nwords] = (gd_memo_word){at, *(const gd_word *)at};
    l->readers[l->nwords] = l->reg;
    l->seen[i] = ++l->nwords;
}

/* Returns the object's index in the table of kept objects, or the free index where it belongs. */
static uint32_t
kept_place(const learner *l, const PyObject *v)
{
    uint32_t i = hash_address(v) & l->kept_mask;
    while (l->kept[i] != NULL && l->kept[i] != v) {
        i = (i + 1) & l->kept_mask;
    }
    return i;
}

/* Fills the table of kept objects. Returns 0, or -1 if memory is out. A hash table is used because the
 * objects are searched for each node, and a model of thousands of modules keeps as many objects. */
static int
find_kept(learner *l)
{
    PyObject *strong = l->e->strong, *weakrefs = l->e->weakrefs;
    size_t n = (size_t)(PyTuple_GET_SIZE(strong) + PyTuple_GET_SIZE(weakrefs)), size = 16;
    while (size < 2 * n) {
        size *= 2;
    }
    l->kept = PyMem_Calloc(size, sizeof(PyObject *));
    l->kept_mask = (uint32_t)size - 1;
    if (l->kept == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(strong); i++) {
        PyObject *v = PyTuple_GET_ITEM(strong, i);
        l->kept[kept_place(l, v)] = v;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(weakrefs); i++) {
        PyObject *v = PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(weakrefs, i));
        l->kept[kept_place(l, v)] = v;
    }
    return 0;
}

/* Reports whether the entry keeps the object alive or is notified of its death. If so, no other object can
 * have this address while the entry is valid. */
static inline int
is_kept(const learner *l, const PyObject *v)
{
    return l->kept[kept_place(l, v)] == v;
}

static inline int
is_static(const PyTypeObject *type)
{
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

/* Returns the state, OBJECT or ADDRESS, of a register for which the address of its object v is proved. */
static known
at_address(const learner *l, PyObject *v)
{
    int eternal = v == Py_None || v == Py_True || v == Py_False || v == Py_Ellipsis
                  || (PyType_Check(v) && is_static((PyTypeObject *)v));
    return eternal || is_kept(l, v) ? OBJECT : ADDRESS;
}

/* Watches the words that prove v's type. Returns 0 if they cannot prove it. */
static int
watch_type(learner *l, PyObject *v)
{
    PyTypeObject *type = Py_TYPE(v);
    if (l->known[l->reg] == OBJECT) {
        /* __class__ can be assigned between heap types, and between module types. */
        if (!(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) || PyModule_Check(v)) {
            watch(l, &v->ob_type);
        }
        return 1;
    }
    watch(l, &v->ob_type);
    return is_static(type) || is_kept(l, (PyObject *)type);
}

static int
watch_dict(learner *l, PyObject *dict)
{
    if (!gd_dict_is_tagged(dict) || !watch_type(l, dict)) {
        return 0;
    }
    watch(l, gd_dict_tag_place(dict));
    return 1;
}

static int
watch_class(learner *l, PyObject *type)
{
    if (!watch_type(l, type) || !gd_py_type_gets_version((PyTypeObject *)type)) {
        return 0;
    }
    watch(l, gd_type_version_place((PyTypeObject *)type));
    return 1;
}

/* Watches the words that locate v's attributes, and fills *view. Of view->dict only the address is watched. */
static int
watch_instance(learner *l, PyObject *v, gd_instance_view *view)
{
    if (!watch_type(l, v)) {
        return 0;
    }
    gd_instance_look(v, view);
    PyTypeObject *type = Py_TYPE(v);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        const void *values = gd_py_values_place(v), *dict = gd_py_managed_dict_place(v);
        watch(l, values);
        if (view->values == NULL && dict != values) {
            watch(l, dict);
        }
        return 1;
    }
    if (type->tp_dictoffset > 0) {
        watch(l, (char *)v + type->tp_dictoffset);
    }
    /* A negative tp_dictoffset counts from the end of an object of variable size. */
    return type->tp_dictoffset >= 0;
}

/* Watches the value of that name among inline values, whether or not it is present. */
static known
watch_inline_value(learner *l, const gd_instance_view *view, PyObject *name, PyObject *value)
{
    Py_ssize_t at = gd_inline_position(view, name, UINT64_MAX);
    if (at < 0) {
        watch(l, &view->keys->dk_nentries); /* names are only ever added */
        return OBJECT;
    }
    watch(l, &DK_UNICODE_ENTRIES(view->keys)[at].me_key);
    watch(l, &view->values->values[at]);
    return value != NULL ? at_address(l, value) : OBJECT;
}

/* Watches the instance attribute of that name, whether or not it is present. Returns UNKNOWN if it cannot
 * be watched. */
static known
watch_attribute(learner *l, PyObject *v, PyObject *name, PyObject *value)
{
    gd_instance_view view;
    if (!watch_instance(l, v, &view)) {
        return UNKNOWN;
    }
    if (view.values == NULL) {
        if (view.dict == NULL) {
            return OBJECT;
        }
        if (!PyDict_Check(view.dict)) {
            return UNKNOWN;
        }
        if (!gd_dict_is_tagged(view.dict)) {
            return UNKNOWN;
        }
        watch(l, gd_dict_tag_place(view.dict));
        return OBJECT;
    }
    watch(l, gd_type_inline_keys_place(Py_TYPE(v)));
    return watch_inline_value(l, &view, name, value);
}

/* Watches a key of a dict, whether or not it is present. Returns UNKNOWN if it cannot be watched. */
static known
watch_key(learner *l, PyObject *dict, PyObject *key, PyObject *value)
{
    if (gd_dict_is_tagged(dict) || !PyUnicode_CheckExact(key)) {
        return watch_dict(l, dict) ? OBJECT : UNKNOWN;
    }
    if (!watch_type(l, dict)) {
        return UNKNOWN;
    }
    PyDictObject *mp = (PyDictObject *)dict;
    gd_instance_view view = {.keys = mp->ma_keys, .values = mp->ma_values, .dict = dict};
    watch(l, &mp->ma_keys);
    watch(l, &mp->ma_values); /* another pointer, or NULL, once the dict no longer shares the instance's values */
    return watch_inline_value(l, &view, key, value);
}

static known
watch_item(learner *l, PyObject *v, int32_t i, PyObject *value)
{
    if (PyTuple_Check(v)) {
        if (l->known[l->reg] == OBJECT) {
            return OBJECT; /* the tuple is the same object, so its items are the same */
        }
        if (l->reg < l->e->nslots || !watch_type(l, v)) {
            return UNKNOWN; /* the tuple of *args differs on each call, though often at the same address */
        }
        Py_ssize_t n = PyTuple_GET_SIZE(v);
        watch(l, &((PyVarObject *)v)->ob_size);
        watch(l, &((PyTupleObject *)v)->ob_item[i < 0 ? i + n : i]);
        return at_address(l, value);
    }
    if (!PyList_Check(v) || !watch_type(l, v)) {
        return UNKNOWN;
    }
    PyListObject *list = (PyListObject *)v;
    watch(l, &((PyVarObject *)v)->ob_size);
    watch(l, &list->ob_item);
    watch(l, &list->ob_item[i < 0 ? i + PyList_GET_SIZE(v) : i]);
    return at_address(l, value);
}

static known
watch_func_field(learner *l, PyObject *v, uint32_t field, PyObject *value)
{
    if (field >= GD_EXCEPTION_ARGS || !watch_type(l, v)) {
        return UNKNOWN; /* an exception is a new object on every call */
    }
    if (field >= GD_METHOD_SELF) {
        PyMethodObject *m = (PyMethodObject *)v;
        watch(l, field == GD_METHOD_SELF ? (void *)&m->im_self : (void *)&m->im_func);
        return l->known[l->reg] == OBJECT ? OBJECT : at_address(l, value);
    }
    PyFunctionObject *f = (PyFunctionObject *)v;
    const void *const places[] = {&f->func_code,    &f->func_closure,     &f->func_defaults,    &f->func_kwdefaults,
                                  &f->func_globals, &f->func_name,        &f->func_qualname,    &f->func_doc,
                                  &f->func_module,  &f->func_annotations, gd_py_type_params(f), gd_py_annotate(f)};
    watch(l, places[field]);
    if (field == GD_FUNC_CODE) {
        watch(l, (const void *)&f->vectorcall);
    }
    /* __closure__ and __globals__ cannot be assigned. */
    int fixed = field == GD_FUNC_CLOSURE || field == GD_FUNC_GLOBALS;
    return fixed && l->known[l->reg] == OBJECT ? OBJECT : at_address(l, value);
}

/* Watches the length of a container, in the field that a LENGTH node reads. */
static known
watch_length(learner *l, PyObject *v)
{
    if (PyUnicode_Check(v)) {
        return l->known[l->reg] == OBJECT ? OBJECT : UNKNOWN;
    }
    if (!watch_type(l, v)) {
        return UNKNOWN;
    }
    if (PyDict_Check(v)) {
        watch(l, &((PyDictObject *)v)->ma_used);
    }
    else if (PyAnySet_Check(v)) {
        watch(l, &((PySetObject *)v)->used);
    }
    else {
        watch(l, &((PyVarObject *)v)->ob_size); /* list, tuple, bytes, deque */
    }
    return OBJECT;
}

/* Reports whether a value of an exact builtin type can never change. Only called for values that are equal
 * to a literal. */
static int
is_frozen(PyObject *v, int depth)
{
    if (PyTuple_Check(v)) {
        int frozen = is_static(Py_TYPE(v)) && depth < 4;
        for (Py_ssize_t i = 0; frozen && i < PyTuple_GET_SIZE(v); i++) {
            frozen = is_frozen(PyTuple_GET_ITEM(v, i), depth + 1);
        }
        return frozen;
    }
    return v == Py_None || v == Py_Ellipsis || PyLong_CheckExact(v) || PyBool_Check(v) || PyUnicode_CheckExact(v)
           || PyFloat_CheckExact(v) || PyBytes_CheckExact(v) || PyComplex_CheckExact(v);
}

static known
watch_slot(learner *l, PyObject *v, uint32_t offset, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(v);
    if (!watch_type(l, v) || !gd_py_type_gets_version(type)) {
        return UNKNOWN;
    }
    watch(l, gd_type_version_place(type));
    watch(l, (char *)v + offset);
    return at_address(l, value);
}

static known
watch_module(learner *l, PyObject *v)
{
    if (!watch_type(l, v)) {
        return UNKNOWN;
    }
    watch(l, gd_module_dict_place(v));
    PyObject *dict = PyModule_GetDict(v);
    if (!gd_dict_is_tagged(dict)) {
        return UNKNOWN;
    }
    watch(l, gd_dict_tag_place(dict));
    return OBJECT;
}

static known
as_object(int watched)
{
    return watched ? OBJECT : UNKNOWN;
}

/* Watches the words that the node depends on. Returns UNKNOWN if the node must run each time. Otherwise,
 * for an access node, returns the state of the value that it fetches. For a check node any other result
 * means that the check holds while the words are unchanged. Words may be watched before UNKNOWN is
 * returned; each of them costs only a comparison. */
static known
watch_node(learner *l, const gd_guard_node *n)
{
    gd_GuardedCode *e = l->e;
    PyObject *v = l->regs[n->src];
    known src = l->known[n->src];
    if (n->op == GD_OP_VALID) {
        return OBJECT; /* gd_guard_eval checks `valid` before it uses a memo */
    }
    if (n->op == GD_OP_CONST) {
        return OBJECT;
    }
    if (src == UNKNOWN || e->memo_stale[n->src] >= GD_MEMO_STALE_MAX) {
        return UNKNOWN;
    }
    l->reg = n->src;
    switch (n->op) {
    case GD_OP_MOVE:
        return src;
    case GD_OP_DICT_GET:
        return watch_key(l, v, e->consts[n->a], l->regs[n->dst]);
    case GD_OP_DICT_LACKS:
    case GD_OP_DICT_CONTAINS:
        return watch_key(l, v, e->consts[n->a], NULL);
    case GD_OP_DICT_ITEM:
        return as_object(l->known[n->a] != UNKNOWN && PyDict_Check(v) && watch_dict(l, v));
    case GD_OP_HOLDS: /* a set has no tag */
        return as_object(l->known[n->a] != UNKNOWN && PyDict_Check(v) && watch_dict(l, v));
    case GD_OP_DICT_KEY:
    case GD_OP_DICT_VALUE:
        return as_object(PyDict_Check(v) && !PyODict_Check(v) && watch_dict(l, v));
    case GD_OP_DICT_KEYS:
        /* An OrderedDict's order is not part of its tag. */
        return as_object(!PyODict_Check(v) && watch_dict(l, v));
    case GD_OP_ATTR:
        return watch_attribute(l, v, e->consts[n->a], l->regs[n->dst]);
    case GD_OP_HAS_ATTR:
        return watch_attribute(l, v, e->consts[n->a], NULL);
    case GD_OP_OBJECT_MUTATION: {
        gd_instance_view view;
        if (!watch_instance(l, v, &view) || view.dict == NULL || !PyDict_Check(view.dict)
            || !gd_dict_is_tagged(view.dict)) {
            return UNKNOWN;
        }
        watch(l, gd_dict_tag_place(view.dict));
        return OBJECT;
    }
    case GD_OP_INSTANCE_DICT: {
        gd_instance_view view;
        if (!watch_instance(l, v, &view)) {
            return UNKNOWN;
        }
        if (view.values != NULL && view.dict != NULL) { /* from 3.13 on, the dict may share the values */
            watch(l, gd_py_managed_dict_place(v));
        }
        return at_address(l, view.dict);
    }
    case GD_OP_MODULE_ATTR:
        return watch_module(l, v);
    case GD_OP_SLOT:
        return watch_slot(l, v, n->b, l->regs[n->dst]);
    case GD_OP_TYPE:
        watch(l, &v->ob_type);
        return at_address(l, l->regs[n->dst]);
    case GD_OP_TYPE_ATTR:
    case GD_OP_TYPE_HAS_ATTR:
    case GD_OP_MRO_ATTR:
    case GD_OP_MRO_CLASS:
        return as_object(watch_class(l, v));
    case GD_OP_INDEX:
        return watch_item(l, v, (int32_t)n->a, l->regs[n->dst]);
    case GD_OP_FUNC_FIELD:
        return watch_func_field(l, v, n->a, l->regs[n->dst]);
    case GD_OP_CELL:
    case GD_OP_CELL_EMPTY:
        if (!watch_type(l, v)) {
            return UNKNOWN;
        }
        watch(l, &((PyCellObject *)v)->ob_ref);
        return n->op == GD_OP_CELL ? at_address(l, l->regs[n->dst]) : OBJECT;
    case GD_OP_TYPE_MATCH:
        if (src != OBJECT || !(Py_TYPE(v)->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) || PyModule_Check(v)) {
            watch(l, &v->ob_type);
        }
        return OBJECT;
    case GD_OP_ID_MATCH:
    case GD_OP_NOT_NONE:
        return OBJECT; /* both operations compare only the address */
    case GD_OP_SAME:
    case GD_OP_DIFFERENT:
        return l->known[n->a] != UNKNOWN ? OBJECT : UNKNOWN;
    case GD_OP_EQUALS:
    case GD_OP_FLOAT_COMPARE:
        return as_object(src == OBJECT && is_frozen(v, 0));
    case GD_OP_LENGTH:
        return watch_length(l, v);
    default: /* among them TENSORS and the nodes that follow it: eval.c runs them with a memo as well */
        return UNKNOWN;
    }
}

/* Reports whether the node reads fields of the object in its register. A slot, the globals or the builtins are worth
 * being a root only if some node does. */
static int
reads_on(const gd_guard_node *n)
{
    switch (n->op) {
    case GD_OP_DICT_GET:
    case GD_OP_DICT_LACKS:
    case GD_OP_DICT_CONTAINS:
    case GD_OP_DICT_KEYS:
    case GD_OP_DICT_KEY:
    case GD_OP_DICT_VALUE:
    case GD_OP_ATTR:
    case GD_OP_HAS_ATTR:
    case GD_OP_OBJECT_MUTATION:
    case GD_OP_INSTANCE_DICT:
    case GD_OP_MODULE_ATTR:
    case GD_OP_SLOT:
    case GD_OP_FUNC_FIELD:
    case GD_OP_CELL:
        return 1;
    default:
        return 0;
    }
}

static void
find_roots(learner *l)
{
    const gd_GuardedCode *e = l->e;
    for (uint32_t i = 0; i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if (n->src < e->nslots + 2 && reads_on(n) && e->memo_stale[n->src] < GD_MEMO_STALE_MAX) {
            l->known[n->src] = (uint8_t)at_address(l, l->regs[n->src]);
        }
    }
}

static void *
carve(char **from, size_t n, size_t size)
{
    void *at = *from;
    *from += n * size;
    return at;
}

/* Builds the memo in one block of memory. Returns NULL if memory is out. left: per node, whether it must
 * run each time; used: per register, whether it is read after the memo has held. */
static gd_guard_memo *
assemble(const learner *l, const uint8_t *left, const uint8_t *used)
{
    const gd_GuardedCode *e = l->e;
    uint32_t nroots = 0, nvalues = 0, nnodes = 0, first = e->nslots + 2u;
    for (uint32_t r = 0; r < e->nregs; r++) {
        nroots += r < first && l->known[r] != UNKNOWN;
        nvalues += r >= first && l->known[r] != UNKNOWN && used[r];
    }
    for (uint32_t i = 0; i < e->nnodes; i++) {
        nnodes += left[i];
    }
    size_t size = sizeof(gd_guard_memo) + ((size_t)nroots + nvalues) * sizeof(gd_memo_value)
                  + l->nwords * (sizeof(gd_memo_word) + sizeof(uint32_t))
                  + nnodes * (sizeof(gd_guard_node) + sizeof(uint32_t));
    char *memory = PyMem_Malloc(size);
    if (memory == NULL) {
        return NULL;
    }
    gd_guard_memo *m = carve(&memory, 1, sizeof(gd_guard_memo));
    m->born = e->hits;
    m->nroots = m->nvalues = m->nnodes = 0;
    m->nwords = l->nwords;
    m->words = carve(&memory, l->nwords, sizeof(gd_memo_word));
    m->roots = carve(&memory, nroots, sizeof(gd_memo_value));
    m->values = carve(&memory, nvalues, sizeof(gd_memo_value));
    m->nodes = carve(&memory, nnodes, sizeof(gd_guard_node));
    m->index = carve(&memory, nnodes, sizeof(uint32_t));
    m->readers = carve(&memory, l->nwords, sizeof(uint32_t));
    memcpy(m->words, l->words, l->nwords * sizeof(gd_memo_word));
    memcpy(m->readers, l->readers, l->nwords * sizeof(uint32_t));
    for (uint32_t r = 0; r < e->nregs; r++) {
        gd_memo_value value = {r, l->regs[r]};
        if (r < first && l->known[r] != UNKNOWN) {
            m->roots[m->nroots++] = value;
        }
        else if (l->known[r] != UNKNOWN && used[r]) {
            m->values[m->nvalues++] = value;
        }
    }
    for (uint32_t i = 0; i < e->nnodes; i++) {
        if (left[i]) {
            m->nodes[m->nnodes] = e->nodes[i];
            m->index[m->nnodes++] = i;
        }
    }
    return m;
}

/* Marks the registers that the remaining nodes and the transformed function read. */
static void
mark_used(const gd_GuardedCode *e, const uint8_t *left, uint8_t *used)
{
    for (uint32_t i = 0; i < e->nextra; i++) {
        used[e->extra_regs[i]] = 1;
    }
    for (uint32_t i = 0; i < e->nnodes; i++) {
        const gd_guard_node *n = &e->nodes[i];
        if (!left[i]) {
            continue;
        }
        used[n->src] = 1;
        if (n->op == GD_OP_SAME || n->op == GD_OP_DIFFERENT || n->op == GD_OP_DICT_ITEM || n->op == GD_OP_HOLDS) {
            used[n->a] = 1;
        }
        for (uint32_t t = 0; n->op == GD_OP_TENSORS && t < n->b; t++) {
            used[e->tensors[n->a + t].reg] = 1;
        }
        for (uint32_t s = 0; n->op == GD_OP_SHAPE_ENV && s < n->b; s++) {
            used[e->sizes[n->a + s].reg] = 1; /* 0 for a step that reads none */
        }
    }
}

/* Makes the memo. Returns NULL if memory is out, or if the memo would save too little. */
static gd_guard_memo *
take_down(gd_GuardedCode *e, PyObject **regs)
{
    uint32_t capacity = e->nnodes * WORDS_PER_NODE, size = 16;
    while (size < 2 * capacity) {
        size *= 2;
    }
    /* one block of bytes: known and used per register, left per node */
    uint8_t *bytes = PyMem_Calloc(2u * e->nregs + e->nnodes, 1);
    learner l = {
        .e = e,
        .regs = regs,
        .known = bytes,
        .words = PyMem_Malloc(capacity * sizeof(gd_memo_word)),
        .readers = PyMem_Malloc(capacity * sizeof(uint32_t)),
        .seen = PyMem_Calloc(size, sizeof(uint32_t)),
        .mask = size - 1,
    };
    gd_guard_memo *memo = NULL;
    if (bytes != NULL && l.words != NULL && l.readers != NULL && l.seen != NULL && find_kept(&l) == 0) {
        uint8_t *used = bytes + e->nregs, *left = used + e->nregs;
        uint32_t saved = 0;
        find_roots(&l);
        for (uint32_t i = 0; i < e->nnodes; i++) {
            const gd_guard_node *n = &e->nodes[i];
            known k = watch_node(&l, n);
            left[i] = k == UNKNOWN;
            saved += k != UNKNOWN;
            if (is_access[n->op]) {
                l.known[n->dst] = (uint8_t)k;
            }
        }
        mark_used(e, left, used);
        if (2 * saved > l.nwords + 4) {
            memo = assemble(&l, left, used);
        }
    }
    PyMem_Free(bytes);
    PyMem_Free(l.words);
    PyMem_Free(l.readers);
    PyMem_Free(l.seen);
    PyMem_Free(l.kept);
    return memo;
}

/* Counts a change for each register whose object has changed since the memo was made. Reads words only up
 * to the first one that differs: later words may be in objects that are gone. */
static void
blame(gd_GuardedCode *e, const gd_guard_memo *m, PyObject **regs)
{
    int found = 0;
    for (uint32_t i = 0; i < m->nroots; i++) {
        if (regs[m->roots[i].reg] != m->roots[i].value) {
            e->memo_stale[m->roots[i].reg]++;
            found = 1;
        }
    }
    for (uint32_t i = 0; i < m->nwords && !found; i++) {
        if (*m->words[i].at != m->words[i].want) {
            e->memo_stale[m->readers[i]]++;
            found = 1;
        }
    }
}

void
gd_memo_learn(gd_GuardedCode *e, PyObject **regs)
{
    if (e->memo_stale == NULL && (e->memo_stale = PyMem_Calloc(e->nregs, 1)) == NULL) {
        e->memo_wait = 0;
        return;
    }
    if (e->memo != NULL) {
        if (e->hits - e->memo->born < GD_MEMO_WORTH) {
            blame(e, e->memo, regs);
        }
        PyMem_Free(e->memo);
        e->memo = NULL;
    }
    if (--e->memo_wait > 0) {
        return;
    }
    e->memo = take_down(e, regs);
    e->memo_wait = e->memo != NULL; /* the next memo is made as soon as this one fails */
}

void
gd_memo_prepare(gd_GuardedCode *e)
{
    /* A program has no memo if one of its tensors can only be read by Python. PY_CHECK nodes do not
     * prevent a memo: they always run, and the memo is checked again after each of them. */
    int calls = 0;
    for (uint32_t i = 0; i < e->ntensors; i++) {
        calls |= e->tensors[i].state != NULL;
    }
    e->memo_wait = calls ? 0 : GD_MEMO_WAIT;
}

void
gd_memo_drop(gd_GuardedCode *e)
{
    PyMem_Free(e->memo);
    PyMem_Free(e->memo_stale);
    e->memo = NULL;
    e->memo_stale = NULL;
    e->memo_wait = 0;
}

/* ---- for tests: these functions return new references, or NULL with an exception set ---- */

static PyObject *
guard_memo(PyObject *Py_UNUSED(module), PyObject *entry)
{
    if (!Py_IS_TYPE(entry, &gd_GuardedCode_Type)) {
        PyErr_SetString(PyExc_TypeError, "guard_memo() takes a GuardedCode");
        return NULL;
    }
    const gd_guard_memo *m = ((gd_GuardedCode *)entry)->memo;
    if (m == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *left = PyList_New(0);
    for (uint32_t i = 0; left != NULL && i < m->nnodes; i++) {
        PyObject *index = PyLong_FromUnsignedLong(m->index[i]);
        if (index == NULL || PyList_Append(left, index) < 0) {
            Py_CLEAR(left);
        }
        Py_XDECREF(index);
    }
    return left == NULL ? NULL
                        : Py_BuildValue("{s:I,s:I,s:I,s:N}", "roots", m->nroots, "words", m->nwords, "values",
                                        m->nvalues, "left", left);
}

static PyObject *
guard_forget(PyObject *Py_UNUSED(module), PyObject *entry)
{
    if (!Py_IS_TYPE(entry, &gd_GuardedCode_Type)) {
        PyErr_SetString(PyExc_TypeError, "guard_forget() takes a GuardedCode");
        return NULL;
    }
    gd_memo_drop((gd_GuardedCode *)entry);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"guard_memo", guard_memo, METH_O,
     "guard_memo(entry) -> dict or None\n\nHow many roots, words and values the memo of its program has, and which "
     "nodes "
     "are left over."},
    {"guard_forget", guard_forget, METH_O,
     "guard_forget(entry)\n\nDrops the memo for good: the whole program runs from now on."},
    {NULL, NULL, 0, NULL},
};

int
gd_guard_memo_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
