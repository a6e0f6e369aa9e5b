/* Runs a guard program. Nodes run in order until one fails. Registers hold borrowed references. The
 * references stay valid because this file runs no code that could drop the objects, except the Python
 * calls described at gd_guard_eval. */
#include "guards/eval.h"

#include "guards/access.h"
#include "guards/end.h"
#include "guards/iterators.h"
#include "guards/memo.h"
#include "guards/pure.h"
#include "guards/sizes.h"
#include "guards/tensor.h"
#include "interrupt.h"
#include "pycommon/guard.h"
#include "runtime.h"
#include "torch/tensor_grad.h"
#include "torch/torch_state.h"

#define PRESENT(node) (((node)->flags & GD_FLAG_PRESENT) != 0)

/* Looks up a key in a dict through the node's cache. Returns a borrowed reference or NULL. */
static inline PyObject *
cached_get(PyObject *dict, PyObject *key, Py_hash_t hash, gd_inline_cache *cache)
{
    uint64_t tag = gd_dict_tag(dict);
    if (GD_UNLIKELY(cache->tag != tag)) {
        cache->value = gd_dict_lookup(dict, key, hash);
        cache->tag = tag;
    }
    return cache->value;
}

/* Reports whether a dict lacks a key, through the node's cache. A NULL in the cache means that it does; any other value
 * is never dereferenced. */
static inline int
cached_lacks(PyObject *dict, PyObject *key, Py_hash_t hash, gd_inline_cache *cache)
{
    uint64_t tag = gd_dict_tag(dict);
    if (GD_UNLIKELY(cache->tag != tag)) {
        cache->value = gd_dict_lacks(dict, key, hash) ? NULL : key;
        cache->tag = tag;
    }
    return cache->value == NULL;
}

/* Reports whether a DICT_KEYS node holds. Any non-NULL value in the cache means that the keys were right.
 * The value is never dereferenced. */
static inline int
keys_hold(PyObject *dict, PyObject *keys, gd_inline_cache *cache)
{
    if (PyODict_Check(dict)) {
        return gd_dict_keys_are(dict, keys); /* move_to_end() does not change the tag */
    }
    uint64_t tag = gd_dict_tag(dict);
    if (cache->tag != tag) {
        cache->value = gd_dict_keys_are(dict, keys) ? keys : NULL;
        cache->tag = tag;
    }
    return cache->value != NULL;
}

/* Returns the i-th item of a list, tuple or deque, borrowed, or NULL. A negative i counts from the end. */
static inline PyObject *
item_at(PyObject *v, int32_t i)
{
    PyObject **items;
    Py_ssize_t n;
    if (PyList_Check(v)) {
        items = ((PyListObject *)v)->ob_item;
        n = PyList_GET_SIZE(v);
    }
    else if (PyTuple_Check(v)) {
        items = ((PyTupleObject *)v)->ob_item;
        n = PyTuple_GET_SIZE(v);
    }
    else {
        return i >= 0 && i < gd_storage_length(v) ? gd_deque_item(v, i) : NULL;
    }
    Py_ssize_t at = i < 0 ? i + n : i;
    return at >= 0 && at < n ? items[at] : NULL;
}

/* Returns the value of a name in the __dict__ of the i-th class of an MRO, borrowed, or NULL. */
static inline PyObject *
mro_value(PyObject *type, PyObject *name, Py_hash_t hash, uint32_t i)
{
    PyObject *mro = PyType_Check(type) ? ((PyTypeObject *)type)->tp_mro : NULL;
    if (mro == NULL || !PyTuple_Check(mro) || (Py_ssize_t)i >= PyTuple_GET_SIZE(mro)) {
        return NULL;
    }
    PyObject *dict = gd_py_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
    return dict != NULL ? gd_dict_lookup(dict, name, hash) : NULL;
}

/* Returns the item that a tuple iterator yields after i other items, borrowed, or NULL. */
static inline PyObject *
tuple_iter_item(PyObject *v, uint32_t i)
{
    PyObject *seq;
    Py_ssize_t first;
    if (!gd_tuple_iter_look(v, &seq, &first) || seq == NULL || (Py_ssize_t)i >= PyTuple_GET_SIZE(seq) - first) {
        return NULL;
    }
    return PyTuple_GET_ITEM(seq, first + (Py_ssize_t)i);
}

static inline int
tuple_iter_left(PyObject *v, uint32_t n)
{
    PyObject *seq;
    Py_ssize_t first;
    if (!gd_tuple_iter_look(v, &seq, &first)) {
        return 0;
    }
    return (seq != NULL ? PyTuple_GET_SIZE(seq) - first : 0) == (Py_ssize_t)n;
}

/* Inlines the common cases of gd_instance_attr: the cache holds the position among inline values, or the
 * dict's tag. Returns a borrowed reference or NULL. */
static inline PyObject *
attribute(PyObject *v, PyObject *name, Py_hash_t hash, gd_inline_cache *cache)
{
    if (GD_LIKELY(Py_TYPE(v)->tp_flags & Py_TPFLAGS_MANAGED_DICT)) {
        gd_instance_view view;
        gd_instance_look(v, &view);
        if (view.values != NULL) {
            Py_ssize_t at = (Py_ssize_t)(cache->tag & ~GD_INLINE_HINT);
            if (GD_LIKELY(cache->tag & GD_INLINE_HINT && gd_inline_is(&view, at, name))) {
                return gd_inline_value(&view, at);
            }
        }
        else if (GD_LIKELY(view.dict != NULL && gd_dict_tag(view.dict) == cache->tag)) {
            return cache->value;
        }
    }
    return gd_instance_attr(v, name, hash, cache);
}

/* Returns the dict's value for an object that equals only itself, borrowed, or NULL if there is none. */
static inline PyObject *
found_item(PyObject *dict, PyObject *object)
{
    PyObject *value = NULL;
    return object != NULL && PyDict_Check(dict) && gd_find_object(dict, object, &value) > 0 ? value : NULL;
}

/* Marks the next two functions. Each of them has a case for every operation and is inlined once for each
 * operation, with `op` constant. */
#define ONCE_PER_OPERATION static inline __attribute__((always_inline))

/* Returns the value that an access node fetches, borrowed, or NULL if there is none. */
ONCE_PER_OPERATION PyObject *
fetch(gd_GuardedCode *e, const gd_guard_node *node, PyObject *v, PyObject **regs, int op)
{
    switch (op) {
    case GD_OP_MOVE:
        return v;
    case GD_OP_CONST:
        return e->consts[node->a];
    case GD_OP_DICT_GET:
        return PyDict_Check(v) ? cached_get(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]) : NULL;
    case GD_OP_DICT_ITEM:
        return found_item(v, regs[node->a]);
    case GD_OP_ATTR:
        return attribute(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]);
    case GD_OP_MODULE_ATTR:
        return PyModule_Check(v) && PyModule_GetDict(v) != NULL
                   ? cached_get(PyModule_GetDict(v), e->consts[node->a], e->hashes[node->a], &e->caches[node->b])
                   : NULL;
    case GD_OP_SLOT:
        return gd_slot_value(v, e->consts[node->a], node->b);
    case GD_OP_INSTANCE_DICT:
        return gd_made_dict(v);
    case GD_OP_TYPE:
        return (PyObject *)Py_TYPE(v);
    case GD_OP_TYPE_ATTR:
        return PyType_Check(v) ? _PyType_Lookup((PyTypeObject *)v, e->consts[node->a]) : NULL;
    case GD_OP_MRO_ATTR:
        return mro_value(v, e->consts[node->a], e->hashes[node->a], node->b);
    case GD_OP_MRO_CLASS:
        return gd_mro_class(v, node->a);
    case GD_OP_INDEX:
        return item_at(v, (int32_t)node->a);
    case GD_OP_DICT_KEY:
        return gd_key_at(v, (Py_ssize_t)(int32_t)node->a);
    case GD_OP_DICT_VALUE:
        return gd_value_at(v, (Py_ssize_t)(int32_t)node->a);
    case GD_OP_FUNC_FIELD:
        return gd_func_field(v, node->a);
    case GD_OP_CELL:
        return PyCell_Check(v) ? PyCell_GET(v) : NULL;
    case GD_OP_GRAD:
        return gd_tensor_grad(v);
    case GD_OP_WEAKREF:
        return PyWeakref_CheckRef(v) ? PyWeakref_GET_OBJECT(v) : NULL;
    case GD_OP_TUPLE_ITER_ITEM:
        return tuple_iter_item(v, node->a);
    case GD_OP_ITER_PART:
        return gd_iterator_part(v, node->a);
    case GD_OP_ITER_ITEM:
        return gd_iterator_item(v, node->a);
    case GD_OP_ITER_VALUE:
        return gd_iterator_value(v, node->a);
    case GD_OP_ITER_NUMBER: {
        int64_t number;
        return gd_iterator_number(v, node->a, &number) ? gd_kept_int_of(&e->kept[node->b], number) : NULL;
    }
    default:
        return NULL;
    }
}

/* Compares two floats; op is one of Py_LT, ..., Py_GE. */
static int
compare_floats(double a, double b, int op)
{
    switch (op) {
    case Py_LT:
        return a < b;
    case Py_LE:
        return a <= b;
    case Py_EQ:
        return a == b;
    case Py_NE:
        return a != b;
    case Py_GT:
        return a > b;
    default:
        return a >= b;
    }
}

/* Reports whether a check node holds. Covers all check nodes except PY_CHECK, TENSORS and SHAPE_ENV. */
ONCE_PER_OPERATION int
holds(gd_GuardedCode *e, const gd_guard_node *node, PyObject *v, PyObject **regs, int op)
{
    switch (op) {
    case GD_OP_VALID:
        return e->valid;
    case GD_OP_DICT_LACKS:
        return PyDict_Check(v) && cached_lacks(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]);
    case GD_OP_TYPE_MATCH:
        return (PyObject *)Py_TYPE(v) == e->consts[node->a];
    case GD_OP_ID_MATCH:
        return v == e->consts[node->a];
    case GD_OP_NOT_NONE:
        return v != Py_None;
    case GD_OP_EQUALS:
        return gd_equals(v, e->consts[node->a]);
    case GD_OP_NAME_MATCH:
        return gd_name_is(v, e->consts[node->a]);
    case GD_OP_HAS_ATTR:
        return (attribute(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]) != NULL) == PRESENT(node);
    case GD_OP_TYPE_HAS_ATTR:
        return PyType_Check(v) && (_PyType_Lookup((PyTypeObject *)v, e->consts[node->a]) != NULL) == PRESENT(node);
    case GD_OP_FLOAT_COMPARE:
        return PyFloat_CheckExact(v)
               && compare_floats(PyFloat_AS_DOUBLE(v), PyFloat_AS_DOUBLE(e->consts[node->a]), (int)node->b)
                      == PRESENT(node);
    case GD_OP_LENGTH:
        return gd_storage_length(v) == (Py_ssize_t)node->a;
    case GD_OP_TUPLE_ITER_LEN:
        return tuple_iter_left(v, node->a);
    case GD_OP_ITER_LEFT: {
        Py_ssize_t left = gd_iterator_left(v), wanted = (int32_t)node->a;
        return left == wanted || (PRESENT(node) && left > wanted);
    }
    case GD_OP_DICT_KEYS:
        return PyDict_Check(v) && keys_hold(v, e->consts[node->a], &e->caches[node->b]);
    case GD_OP_DICT_CONTAINS:
        if (!PyDict_Check(v)) {
            return 0;
        }
        return PRESENT(node) ? cached_get(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]) != NULL
                             : cached_lacks(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]);
    case GD_OP_HOLDS: {
        PyObject *value;
        return regs[node->a] != NULL && gd_find_object(v, regs[node->a], &value) == PRESENT(node);
    }
    case GD_OP_PARAM_NAMES:
        return gd_param_names_are(v, e->consts[node->a]);
    case GD_OP_OBJECT_MUTATION: {
        gd_instance_view view;
        if (v != e->consts[node->a]) {
            return 0;
        }
        gd_instance_look(v, &view);
        return view.dict != NULL && gd_dict_tag(view.dict) == e->caches[node->b].tag;
    }
    case GD_OP_GRAD_MODE:
        return gd_torch_grad_enabled() == PRESENT(node);
    case GD_OP_CELL_EMPTY:
        return PyCell_Check(v) && PyCell_GET(v) == NULL;
    case GD_OP_QUIET:
        return !gd_variable_ends_in_code(v, node->flags);
    case GD_OP_QUIET_NAME: {
        PyObject *had = PyDict_Check(v) ? cached_get(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b])
                                        : attribute(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]);
        return had == NULL || !gd_ends_in_code(had, node->flags);
    }
    case GD_OP_QUIET_KEY: {
        PyObject *had =
            PyDict_Check(v) ? cached_get(v, e->consts[node->a], e->hashes[node->a], &e->caches[node->b]) : NULL;
        return had == NULL || !gd_ends_in_code(had, node->flags);
    }
    case GD_OP_QUIET_SLOT: {
        PyObject *had = gd_slot_value(v, e->consts[node->a], node->b);
        return had == NULL || !gd_ends_in_code(had, node->flags);
    }
    case GD_OP_QUIET_INDEX:
        return !gd_item_ends_in_code(v, (int32_t)node->a, node->flags);
    case GD_OP_SAME:
        return v == regs[node->a];
    case GD_OP_DIFFERENT:
        return v != regs[node->a];
    default:
        return 0;
    }
}

static int
predicate_holds(PyObject *predicate, PyObject *v)
{
    Py_INCREF(v);
    int held = gd_hold_signals();
    /* The hook must not translate functions that a guard calls: the predicate might be a guard of its own entry. */
    gd_thread.translating++;
    PyObject *result = PyObject_CallOneArg(predicate, v), *sent = NULL;
    if (GD_UNLIKELY(result == NULL) && (sent = gd_take_sent()) != NULL) {
        result = PyObject_CallOneArg(predicate, v); /* the exception is not the guard's, but the user's code's */
    }
    Py_DECREF(v);
    int truth = result != NULL ? PyObject_IsTrue(result) : -1;
    gd_thread.translating--;
    gd_release_signals(held);
    Py_XDECREF(result);
    if (truth < 0) {
        PyErr_Clear();
    }
    gd_send_again(sent);
    return truth > 0;
}

/* Reports whether the tensors are distinct. They were distinct at the last call, so only tensors whose
 * address has changed since then are compared: usually none of a module's parameters. One guard for each
 * pair would be 238,000 guards for a module of 690 parameters. */
int
gd_tensors_distinct(const gd_GuardedCode *e, const gd_guard_node *node, PyObject **regs)
{
    gd_tensor_check *first = e->tensors + node->a, *end = first + node->b;
    int changed = 0;
    for (gd_tensor_check *c = first; c < end; c++) {
        uintptr_t v = (uintptr_t)regs[c->reg];
        if (GD_LIKELY(v == c->apart) || !(c->fields & GD_TENSOR_DISTINCT)) {
            continue;
        }
        changed = 1;
        for (gd_tensor_check *other = first; other < end; other++) {
            if (other != c && other->fields & GD_TENSOR_DISTINCT && (uintptr_t)regs[other->reg] == v) {
                return 0;
            }
        }
    }
    for (gd_tensor_check *c = first; changed && c < end; c++) {
        c->apart = (uintptr_t)regs[c->reg];
    }
    return 1;
}

enum { TENSORS_HOLD, TENSORS_FAIL, TENSORS_CALLED };

/* Runs the final check. TENSORS_CALLED: all tensors hold, but Python was called for some of them. The
 * function is not inlined into gd_guard_eval, so that it takes no registers from the loop there. A check of
 * thirty tensors takes 132 ns; with inlining it takes 158 ns (make bench, group guards). */
static __attribute__((noinline)) int
tensors_hold(gd_GuardedCode *e, const gd_guard_node *node, PyObject **regs, int called_before)
{
    if (node->flags & GD_FLAG_STATE && !gd_torch_state_equal(e->torch_state)) {
        return TENSORS_FAIL;
    }
    if (node->flags & GD_FLAG_DISTINCT && !gd_tensors_distinct(e, node, regs)) {
        return TENSORS_FAIL;
    }
    const gd_tensor_check *check = e->tensors + node->a, *end = check + node->b;
    int slow = 0;
    for (; check < end; check++) {
        if (GD_LIKELY(check->whole)) {
            if (GD_UNLIKELY(!gd_tensor_check_whole(check, regs[check->reg]))) {
                return TENSORS_FAIL;
            }
        }
        else if (GD_UNLIKELY(check->state != NULL)) {
            slow = 1;
        }
        else if (GD_UNLIKELY(gd_tensor_check_field(check, regs[check->reg]))) {
            return TENSORS_FAIL;
        }
    }
    if (GD_LIKELY(!slow || called_before)) {
        return TENSORS_HOLD;
    }
    for (check = e->tensors + node->a; check < end; check++) {
        if (check->state != NULL && gd_tensor_check_slow(check, regs[check->reg])) {
            return TENSORS_FAIL;
        }
    }
    return TENSORS_CALLED;
}

int
gd_guard_node_runs(gd_GuardedCode *e, const gd_guard_node *node, PyObject **regs)
{
    PyObject *v = regs[node->src], *value;
    switch (node->op) {
#define X(name, is_access, class_a, class_b, text) \
    case GD_OP_##name: \
        if (is_access) { \
            value = fetch(e, node, v, regs, GD_OP_##name); \
            regs[node->dst] = value; \
            return value != NULL; \
        } \
        return holds(e, node, v, regs, GD_OP_##name);
        GD_GUARD_OPS(X)
#undef X
    default:
        return 0;
    }
}

/* Runs the PY_CHECK nodes on constants, which are alive while the entry is valid. */
static __attribute__((noinline)) int
early_checks_hold(gd_GuardedCode *e)
{
    for (uint32_t i = 0; i < e->nearly; i++) {
        const gd_early_check *check = &e->early[i];
        if (!e->valid || !predicate_holds(e->consts[e->nodes[check->node].a], e->consts[check->operand])) {
            return 0;
        }
    }
    return 1;
}

static __attribute__((noinline)) int
is_early(const gd_GuardedCode *e, int node)
{
    for (uint32_t i = 0; i < e->nearly; i++) {
        if (e->early[i].node == (uint32_t)node) {
            return 1;
        }
    }
    return 0;
}

/* During a Python call (for PY_CHECK, or for a tensor that only Python can read) anything may happen:
 * another thread runs, the collector calls finalizers, an object in a register dies. So after each such
 * call the whole program starts again, and the call is not repeated. If there is a memo, all calls with constants are
 * made before it is compared. The final result comes from one run of
 * the nodes without any such call. The register of a tensor that Python reads is used right after the other
 * nodes have run, so only slots and constants must survive the calls. */
int
gd_guard_eval(gd_GuardedCode *e, PyObject **regs)
{
    int done = -1;  /* the Python calls of nodes up to this index have been made, and the nodes held */
    int early = 0; /* 1: so have those of all early checks. -1: one of them failed, so no memo is used */
restart:;
    /* VALID is the first node and occurs only there. The last `nlate` nodes follow TENSORS, which is the last node
     * otherwise. A memo skips none of these. */
    if (GD_UNLIKELY(!e->valid)) {
        return 0;
    }
    const gd_guard_memo *memo = e->memo; /* a Python call may have replaced the memo */
    const gd_guard_node *nodes = e->nodes;
    int first = 1, n = (int)e->nnodes, i;
    if (memo != NULL) {
        if (e->nearly > 0 && early == 0 && gd_memo_roots_hold(memo, regs)) {
            /* After a failure, the program runs in its order: a caller relies on what precedes the failed node. */
            early = early_checks_hold(e) ? 1 : -1;
            goto restart;
        }
        if (GD_LIKELY(early >= 0 && gd_memo_holds(memo, regs))) {
            nodes = memo->nodes;
            first = 0;
            n = (int)memo->nnodes;
        }
        else {
            memo = NULL;
        }
    }
    n -= e->nlate;
    const gd_guard_node *late = nodes + n;
    const gd_guard_node *tensors = n > 0 && nodes[n - 1].op == GD_OP_TENSORS ? &nodes[--n] : NULL;
    for (i = first; i < n; i++) {
        const gd_guard_node *node = &nodes[i];
        PyObject *v = regs[node->src];
        switch (node->op) {
#define X(name, is_access, class_a, class_b, text) \
    case GD_OP_##name: \
        if (is_access) { \
            PyObject *value = fetch(e, node, v, regs, GD_OP_##name); \
            if (GD_UNLIKELY(value == NULL)) { \
                goto fails; \
            } \
            regs[node->dst] = value; \
        } \
        else if (GD_OP_##name == GD_OP_PY_CHECK) { \
            goto may_call; \
        } \
        else if (GD_UNLIKELY(!holds(e, node, v, regs, GD_OP_##name))) { \
            goto fails; \
        } \
        break;
            GD_GUARD_OPS(X)
#undef X
        default:
            goto fails; /* unreachable: gd_entry_new verifies the operations of each program */
        }
        continue;
    may_call:;
        int at = memo != NULL ? (int)memo->index[i] : i;
        if (at <= done || (early > 0 && is_early(e, at))) {
            continue;
        }
        if (!predicate_holds(e->consts[node->a], v)) {
            return at;
        }
        done = at;
        goto restart;
    }
    if (tensors != NULL) {
        int outcome = tensors_hold(e, tensors, regs, i <= done);
        if (GD_UNLIKELY(outcome != TENSORS_HOLD)) {
            if (outcome == TENSORS_FAIL) {
                goto fails;
            }
            done = i; /* a program with tensors that Python checks has no memo, so i is the node's own index */
            goto restart;
        }
    }
    if (GD_UNLIKELY(e->nlate > 0)) {
        int held = gd_late_nodes_hold(e, late, e->nlate, regs);
        if (GD_UNLIKELY(held < e->nlate)) {
            i = (int)(late - nodes) + held;
            goto fails;
        }
    }
    if (GD_UNLIKELY(memo == NULL && e->memo_wait > 0)) {
        gd_memo_learn(e, regs);
    }
    return -1;
fails:
    return memo != NULL ? (int)memo->index[i] : i;
}
