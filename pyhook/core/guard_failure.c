/* Why a guard failed, in words, for recompile logs. Values are shown only where showing them runs no code of the user's. */
#include "guard_eval.h"
#include "torch_state.h"

static const char *const failure_texts[] = {
#define X(name, access, a, b, text) text,
    GD_GUARD_OPS(X)
#undef X
};

/* A value of an exact builtin type by its repr, a type by its name, another by its type. new, or NULL with an exception */
static PyObject *
show(PyObject *v)
{
    if (v == NULL) {
        return PyUnicode_FromString("nothing");
    }
    PyTypeObject *type = Py_TYPE(v);
    if (v == Py_None || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyComplex_Type
        || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyRange_Type || v == Py_Ellipsis) {
        PyObject *repr = PyObject_Repr(v);
        if (repr == NULL && type == &PyLong_Type) { /* more digits than sys.set_int_max_str_digits allows */
            PyErr_Clear();
            return PyUnicode_FromString("an int of many digits");
        }
        return repr;
    }
    if (PyType_Check(v)) {
        return PyUnicode_FromString(((PyTypeObject *)v)->tp_name);
    }
    if (type == &PyTuple_Type) {
        PyObject *parts = PyList_New(0), *separator = PyUnicode_FromString(", "), *text = NULL;
        for (Py_ssize_t i = 0; parts != NULL && separator != NULL && i < PyTuple_GET_SIZE(v); i++) {
            /* Nested tuples by type alone: their depth is the user's. */
            PyObject *item = PyTuple_GET_ITEM(v, i);
            PyObject *shown = PyTuple_CheckExact(item) ? PyUnicode_FromString("(...)") : show(item);
            if (shown == NULL || PyList_Append(parts, shown) < 0) {
                Py_CLEAR(parts);
            }
            Py_XDECREF(shown);
        }
        PyObject *joined = parts != NULL && separator != NULL ? PyUnicode_Join(separator, parts) : NULL;
        if (joined != NULL) {
            text = PyUnicode_FromFormat("(%U%s)", joined, PyTuple_GET_SIZE(v) == 1 ? "," : "");
        }
        Py_XDECREF(joined);
        Py_XDECREF(separator);
        Py_XDECREF(parts);
        return text;
    }
    return PyUnicode_FromFormat("a %s object", type->tp_name);
}

/* What the constant of operand a was; a dead one is known by its address only. */
static PyObject *
show_wanted(gd_GuardedCode *e, uint32_t a)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(e->strong); i++) {
        if (PyTuple_GET_ITEM(e->strong, i) == e->consts[a]) {
            return show(e->consts[a]);
        }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(e->weakrefs); i++) {
        if (PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(e->weakrefs, i)) == e->consts[a]) {
            return show(e->consts[a]);
        }
    }
    return PyUnicode_FromFormat("the object at %p", e->consts[a]);
}

/* Fills in the template of the node's operation. v: what stood in its source register. */
static PyObject *
expand(gd_GuardedCode *e, const gd_guard_node *node, PyObject *v)
{
    PyObject *out = PyUnicode_FromString("");
    for (const char *t = failure_texts[node->op]; *t != '\0' && out != NULL;) {
        size_t plain = strcspn(t, "%");
        PyObject *piece = NULL;
        if (plain > 0) {
            piece = PyUnicode_FromStringAndSize(t, (Py_ssize_t)plain);
            t += plain;
        }
        else {
            switch (t[1]) {
            case 'v':
                piece = show(v);
                break;
            case 't':
                piece = PyUnicode_FromString(v != NULL ? Py_TYPE(v)->tp_name : "NULL");
                break;
            case 'w':
                piece = show_wanted(e, node->a);
                break;
            default:
                piece = PyUnicode_FromFormat("%d", (int)(int32_t)node->a);
            }
            t += 2;
        }
        if (piece == NULL) {
            Py_CLEAR(out);
        }
        else {
            PyUnicode_AppendAndDel(&out, piece);
        }
    }
    return out;
}

static const char *
field_name(int field)
{
    switch (field) {
    case GD_TENSOR_TYPE:
        return "type";
    case GD_TENSOR_KEYSET:
        return "dispatch keys";
    case GD_TENSOR_DTYPE:
        return "dtype";
    case GD_TENSOR_DEVICE:
        return "device";
    case GD_TENSOR_REQUIRES_GRAD:
        return "requires_grad";
    case GD_TENSOR_NDIM:
        return "number of dimensions";
    case GD_TENSOR_SIZES:
        return "sizes";
    default:
        return "strides";
    }
}

/* ", found (2, 3), was (2, 4)" where the numbers are at hand, else "". new */
static PyObject *
dims_text(const gd_tensor_check *c, PyObject *v, int field)
{
    gd_tensor_view view;
    if (c->state != NULL || !(field & (GD_TENSOR_SIZES | GD_TENSOR_STRIDES)) || !gd_tensor_view_read(v, &view)) {
        return PyUnicode_FromString("");
    }
    const int64_t *now = field == GD_TENSOR_SIZES ? view.sizes : view.strides;
    const int64_t *was = field == GD_TENSOR_SIZES ? c->sizes : c->strides;
    PyObject *text = PyUnicode_FromString(", found (");
    for (int i = 0; i < 2 * c->ndim && text != NULL; i++) {
        int64_t value = i < c->ndim ? now[i] : was[i - c->ndim];
        const char *before = i == c->ndim ? "), was (" : i == 0 ? "" : ", ";
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%s%lld", before, (long long)value));
    }
    if (text != NULL) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
    }
    return text;
}

/* The first tensor that differs and how. new */
static PyObject *
first_difference(const gd_tensor_check *checks, PyObject *values)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
        const gd_tensor_check *c = &checks[i];
        PyObject *v = PyTuple_GET_ITEM(values, i);
        int field = v == NULL          ? GD_TENSOR_TYPE
                    : c->state != NULL ? gd_tensor_check_slow(c, v)
                                       : gd_tensor_check_field(c, v);
        if (field == 0) {
            continue;
        }
        PyObject *dims = v != NULL ? dims_text(c, v, field) : PyUnicode_FromString("");
        PyObject *text = NULL;
        if (dims != NULL) {
            text = PyUnicode_FromFormat("tensor %zd: %s differ%U", i, field_name(field), dims);
            Py_DECREF(dims);
        }
        return text;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
        for (Py_ssize_t j = 0; checks[i].fields & GD_TENSOR_DISTINCT && j < i; j++) {
            if (checks[j].fields & GD_TENSOR_DISTINCT && PyTuple_GET_ITEM(values, i) == PyTuple_GET_ITEM(values, j)) {
                return PyUnicode_FromFormat("tensors %zd and %zd are one object now", j, i);
            }
        }
    }
    return PyUnicode_FromString(failure_texts[GD_OP_TENSORS]);
}

/* The tensor or the state that differs, found by looking again. */
static PyObject *
tensors_text(gd_GuardedCode *e, const gd_guard_node *node, PyObject **regs)
{
    if (node->flags & GD_FLAG_STATE) {
        PyObject *text = gd_torch_state_difference(e->torch_state);
        if (text != NULL || PyErr_Occurred()) {
            return text;
        }
    }
    /* Held, since looking at some of them calls Python. */
    PyObject *values = PyTuple_New(node->b);
    if (values == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < node->b; i++) {
        PyTuple_SET_ITEM(values, i, Py_XNewRef(regs[e->tensors[node->a + i].reg]));
    }
    PyObject *text = first_difference(e->tensors + node->a, values);
    Py_DECREF(values);
    return text;
}
PyObject *
gd_guard_failure_text(gd_GuardedCode *e, int failed_node, PyObject **regs)
{
    if (failed_node < 0 || (uint32_t)failed_node >= e->nnodes) {
        return PyUnicode_FromString("the guards hold");
    }
    const gd_guard_node *node = &e->nodes[failed_node];
    PyObject *reason;
    if (node->op == GD_OP_TENSORS) {
        reason = tensors_text(e, node, regs);
    }
    else {
        PyObject *v = Py_XNewRef(regs[node->src]);
        reason = expand(e, node, v);
        Py_XDECREF(v);
    }
    if (reason == NULL) {
        return NULL;
    }
    PyObject *part = PyTuple_GET_ITEM(e->parts, e->node_parts[failed_node]);
    PyObject *line = PyTuple_GET_ITEM(e->part_lines, e->node_parts[failed_node]);
    PyObject *text;
    if (PyTuple_Check(line) && PyTuple_GET_SIZE(line) == 2) {
        text =
            PyUnicode_FromFormat("%U: %U (%S:%S)", part, reason, PyTuple_GET_ITEM(line, 0), PyTuple_GET_ITEM(line, 1));
    }
    else {
        text = PyUnicode_FromFormat("%U: %U", part, reason);
    }
    Py_DECREF(reason);
    return text;
}
