/* Explains a failed guard in words, with both values, for recompile logs. A `part` is one of the conditions
 * that the guard text joins with `and`. Functions that return a new str return NULL with an exception set
 * on failure. */
#include "guards/failure.h"

#include "guards/access.h"
#include "guards/iterators.h"
#include "guards/show.h"
#include "guards/sizes.h"
#include "guards/tensor.h"
#include "pycommon/guard.h"
#include "torch/tensor_layout.h"
#include "torch/tensor_python.h"
#include "torch/torch_state.h"

static const char *const failure_texts[] = {
#define X(name, access, a, b, text) text,
    GD_GUARD_OPS(X)
#undef X
};

/* The values of a failed guard: the value found now, and the value when the guard was made. Either may be
 * NULL. A function that returns this struct passes its references to the caller. */
typedef struct {
    PyObject *found, *was; /* strong str or NULL */
} both;

/* The tensor that differs, as an expression in the guard's text, and the name of the field that differs. */
typedef struct {
    PyObject *place; /* strong str or NULL */
    const char *field; /* static, or NULL */
} which;

static void
drop(both *values)
{
    Py_CLEAR(values->found);
    Py_CLEAR(values->was);
}

/* Returns a new str, or NULL with an exception set. */
static PyObject *
text_of(const char *s)
{
    return PyUnicode_FromString(s);
}

/* Describes the constant of operand a. An object that has died is shown by its address. Returns a new str. */
static PyObject *
show_wanted(gd_GuardedCode *e, uint32_t a)
{
    PyObject *constant = gd_guard_constant(e, a);
    return constant != NULL ? gd_show_value(constant) : PyUnicode_FromFormat("the object at %p", e->consts[a]);
}

/* Returns a new str: the __name__ of a function, class, builtin or module, read without an attribute lookup,
 * as the NAME_MATCH node reads it. */
static PyObject *
name_of(PyObject *v)
{
    if (PyModule_Check(v)) {
        PyObject *name = PyDict_GetItemString(PyModule_GetDict(v), "__name__");
        return name != NULL ? gd_show_value(name) : text_of("nothing");
    }
    if (PyFunction_Check(v)) {
        return gd_show_value(((PyFunctionObject *)v)->func_name);
    }
    if (PyType_Check(v) && ((PyTypeObject *)v)->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        return gd_show_value(((PyHeapTypeObject *)v)->ht_name);
    }
    if (PyType_Check(v)) {
        return PyUnicode_FromFormat("'%s'", ((PyTypeObject *)v)->tp_name);
    }
    return PyCFunction_Check(v) ? PyUnicode_FromFormat("'%s'", ((PyCFunctionObject *)v)->m_ml->ml_name)
                                : text_of("nothing");
}

/* Describes the keys of a dict, or the object itself if it is not a dict. Returns a new str. */
static PyObject *
keys_of(PyObject *v)
{
    PyObject *keys = PyDict_Check(v) ? gd_dict_keys_tuple(v) : NULL;
    PyErr_Clear();
    PyObject *text = gd_show_value(keys != NULL ? keys : v);
    Py_XDECREF(keys);
    return text;
}

/* Returns a new str: how many items a tuple iterator has left. */
static PyObject *
left_in(PyObject *v)
{
    PyObject *seq;
    Py_ssize_t first;
    if (!gd_tuple_iter_look(v, &seq, &first)) {
        return gd_show_value(v);
    }
    return PyUnicode_FromFormat("%zd", seq != NULL ? PyTuple_GET_SIZE(seq) - first : 0);
}

/* Describes a check that a value is present. Returns a new str. */
static PyObject *
presence(int there)
{
    return text_of(there ? "there" : "missing");
}

/* Returns the predicate's own description of the values it accepts: the second argument in the text
 * ___object(address, 'words')(place). It is a new str, or NULL with no exception set if the text has
 * another form. */
static PyObject *
predicate_words(PyObject *part)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(part);
    Py_ssize_t from = PyUnicode_FindChar(part, ',', 0, n, 1);
    PyObject *end = text_of(")(");
    Py_ssize_t to = end != NULL ? PyUnicode_Find(part, end, 0, n, -1) : -1;
    Py_XDECREF(end);
    if (from < 0 || to < from + 4) {
        PyErr_Clear();
        return NULL;
    }
    return PyUnicode_Substring(part, from + 3, to - 1);
}

/* Appends the addresses if the two texts are equal. values: stolen. */
static both
told_apart(both values, const void *found, const void *was)
{
    if (values.found != NULL && values.was != NULL && PyUnicode_Compare(values.found, values.was) == 0) {
        PyUnicode_AppendAndDel(&values.found, PyUnicode_FromFormat(" at %p", found));
        PyUnicode_AppendAndDel(&values.was, PyUnicode_FromFormat(" at %p", was));
    }
    return values;
}

/* Returns both values of a failed node. v is the value of the node's source register, or NULL. */
static both
both_values(gd_GuardedCode *e, uint32_t at, PyObject *v, PyObject **regs)
{
    const gd_guard_node *node = &e->nodes[at];
    int there = (node->flags & GD_FLAG_PRESENT) != 0;
    if (v == NULL) {
        return (both){text_of("nothing"), NULL};
    }
    switch (node->op) {
    case GD_OP_TYPE_MATCH:
        return (both){text_of(Py_TYPE(v)->tp_name), show_wanted(e, node->a)};
    case GD_OP_ID_MATCH:
    case GD_OP_EQUALS:
        return told_apart((both){gd_show_value(v), show_wanted(e, node->a)}, v, e->consts[node->a]);
    case GD_OP_FLOAT_COMPARE:
        return (both){gd_show_value(v), Py_NewRef(PyTuple_GET_ITEM(e->parts, e->node_parts[at]))};
    case GD_OP_OBJECT_MUTATION:
        return v != e->consts[node->a] ? (both){gd_show_value(v), show_wanted(e, node->a)}
                                       : (both){text_of("changed"), text_of("as it was made")};
    case GD_OP_NOT_NONE:
        return (both){text_of("None"), text_of("alive")};
    case GD_OP_NAME_MATCH:
        return (both){name_of(v), show_wanted(e, node->a)};
    case GD_OP_DICT_LACKS:
        return (both){presence(1), presence(0)};
    case GD_OP_HAS_ATTR:
    case GD_OP_TYPE_HAS_ATTR:
    case GD_OP_DICT_CONTAINS:
    case GD_OP_HOLDS:
        return (both){presence(!there), presence(there)};
    case GD_OP_LENGTH:
        return (both){PyUnicode_FromFormat("%zd", gd_storage_length(v)), PyUnicode_FromFormat("%d", (int)node->a)};
    case GD_OP_TUPLE_ITER_LEN:
        return (both){left_in(v), PyUnicode_FromFormat("%d", (int)node->a)};
    case GD_OP_ITER_LEFT:
        return (both){PyUnicode_FromFormat("%zd", gd_iterator_left(v)),
                      PyUnicode_FromFormat("%d", (int)(int32_t)node->a)};
    case GD_OP_DICT_KEYS:
        return (both){keys_of(v), show_wanted(e, node->a)};
    case GD_OP_PARAM_NAMES: {
        PyObject *names = gd_param_names(v);
        PyObject *text = gd_show_value(names != NULL ? names : v);
        Py_XDECREF(names);
        return (both){text, show_wanted(e, node->a)};
    }
    case GD_OP_GRAD_MODE:
        return (both){text_of(there ? "off" : "on"), text_of(there ? "on" : "off")};
    case GD_OP_CELL_EMPTY:
        return (both){PyCell_Check(v) && PyCell_GET(v) != NULL ? gd_show_value(PyCell_GET(v)) : gd_show_value(v),
                      text_of("empty")};
    case GD_OP_QUIET:
    case GD_OP_QUIET_NAME:
    case GD_OP_QUIET_KEY:
    case GD_OP_QUIET_SLOT:
    case GD_OP_QUIET_INDEX:
        return (both){text_of("runs code when it ends"), text_of("none that does")};
    case GD_OP_SAME:
        return (both){gd_show_value(v), regs[node->a] != NULL ? gd_show_value(regs[node->a]) : text_of("nothing")};
    case GD_OP_DIFFERENT:
        return (both){gd_show_value(v), text_of("another object")};
    case GD_OP_PY_CHECK: {
        PyObject *words = predicate_words(PyTuple_GET_ITEM(e->parts, e->node_parts[at]));
        return (both){gd_show_value(v), words != NULL || PyErr_Occurred() ? words : show_wanted(e, node->a)};
    }
    case GD_OP_INDEX:
        return (both){PyUnicode_FromFormat("%zd items", gd_storage_length(v)),
                      PyUnicode_FromFormat("item %d", (int)(int32_t)node->a)};
    case GD_OP_VALID:
        return (both){NULL, NULL};
    default: /* nodes that fetch a value */
        return (both){presence(0), presence(1)};
    }
}

/* Fills in the message template of the node's operation and returns the message as a new str. v is the value
 * of the node's source register. */
static PyObject *
expand(gd_GuardedCode *e, const gd_guard_node *node, PyObject *v, const both *values)
{
    PyObject *out = text_of("");
    for (const char *t = failure_texts[node->op]; *t != '\0' && out != NULL;) {
        size_t plain = strcspn(t, "%");
        PyObject *piece = NULL;
        if (plain > 0) {
            piece = PyUnicode_FromStringAndSize(t, (Py_ssize_t)plain);
            t += plain;
        }
        else {
            switch (t[1]) {
            case 'f':
                piece = values->found != NULL ? Py_NewRef(values->found) : text_of("nothing");
                break;
            case 'x':
                piece = values->was != NULL ? Py_NewRef(values->was) : text_of("nothing");
                break;
            case 't':
                piece = text_of(v != NULL ? Py_TYPE(v)->tp_name : "NULL");
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

/* ---- the final check ---- */

/* Returns a new str: the i-th argument of a part such as ___check_tensors(x, y[0]), or "a tensor" if the
 * part has another form. */
static PyObject *
argument_name(PyObject *part, Py_ssize_t wanted)
{
    int depth = 0;
    Py_UCS4 quote = 0;
    Py_ssize_t start = -1, n = PyUnicode_GET_LENGTH(part);
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(part, i);
        if (quote != 0) {
            if (c == '\\') {
                i++;
            }
            else if (c == quote) {
                quote = 0;
            }
            continue;
        }
        if (c == '\'' || c == '"') {
            quote = c;
        }
        else if (c == '(' || c == '[') {
            if (++depth == 1) {
                start = i + 1;
            }
        }
        else if ((c == ',' && depth == 1) || ((c == ')' || c == ']') && --depth == 0)) {
            if (wanted-- == 0) {
                return PyUnicode_Substring(part, start, i);
            }
            if (c != ',') {
                break;
            }
            start = i + 2;
        }
    }
    return text_of("a tensor");
}

/* Formats sizes or strides as a tuple. Returns a new str. */
static PyObject *
dims_text(const int64_t *dims, int n)
{
    PyObject *text = text_of("(");
    for (int i = 0; i < n && text != NULL; i++) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat(i > 0 ? ", %lld" : "%lld", (long long)dims[i]));
    }
    if (text != NULL) {
        PyUnicode_AppendAndDel(&text, text_of(n == 1 ? ",)" : ")"));
    }
    return text;
}

/* The name of each field. */
static const struct {
    int field;
    int item; /* index in the tuple of tensor_state() */
    const char *name;
} fields[] = {
    {GD_TENSOR_TYPE, 0, "type"},
    {GD_TENSOR_KEYSET, 1, "dispatch keys"},
    {GD_TENSOR_DTYPE, 2, "dtype"},
    {GD_TENSOR_DEVICE, 3, "device"},
    {GD_TENSOR_REQUIRES_GRAD, 4, "requires_grad"},
    {GD_TENSOR_NDIM, 5, "number of dimensions"},
    {GD_TENSOR_SIZES, 5, "sizes"},
    {GD_TENSOR_STRIDES, 6, "strides"},
};

/* Returns both values of a field, for a tensor whose layout is known. */
static both
field_of_plain(const gd_tensor_check *c, PyObject *v, int field)
{
    gd_tensor_view view;
    if (field == GD_TENSOR_TYPE || !gd_tensor_view_read(v, &view)) {
        return (both){text_of(Py_TYPE(v)->tp_name), text_of(c->type->tp_name)};
    }
    const char *impl = gd_tensor_impl(v);
    uint16_t device;
    memcpy(&device, impl + gd_tensor_layout.device, sizeof device);
    switch (field) {
    case GD_TENSOR_KEYSET:
        return (both){gd_tensor_field_text(field, view.keyset), gd_tensor_field_text(field, c->keyset)};
    case GD_TENSOR_DTYPE:
        return (both){gd_tensor_field_text(field, (uint64_t)view.scalar_type), gd_tensor_field_text(field, c->dtype)};
    case GD_TENSOR_DEVICE:
        return (both){gd_tensor_field_text(field, device), gd_tensor_field_text(field, c->device)};
    case GD_TENSOR_REQUIRES_GRAD:
        return (both){text_of(c->requires_grad ? "False" : "True"), text_of(c->requires_grad ? "True" : "False")};
    case GD_TENSOR_NDIM:
        return (both){PyUnicode_FromFormat("%d", (int)view.ndim), PyUnicode_FromFormat("%d", (int)c->ndim)};
    case GD_TENSOR_SIZES:
        return (both){dims_text(view.sizes, c->ndim), dims_text(c->sizes, c->ndim)};
    default:
        return (both){dims_text(view.strides, c->ndim), dims_text(c->strides, c->ndim)};
    }
}

/* Returns both values of a field, for a tensor that only Python can read. */
static both
field_by_python(const gd_tensor_check *c, PyObject *v, int field)
{
    PyObject *now = gd_tensor_python_state(v);
    both out = {NULL, NULL};
    for (size_t i = 0; now != NULL && PyTuple_CheckExact(now) && i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].field == field && field != GD_TENSOR_TYPE) {
            out.found = PyObject_Str(PyTuple_GET_ITEM(now, fields[i].item));
            out.was = PyObject_Str(PyTuple_GET_ITEM(c->state, fields[i].item));
        }
    }
    Py_XDECREF(now);
    PyErr_Clear();
    if (out.found == NULL || out.was == NULL) {
        drop(&out);
        return (both){text_of(Py_TYPE(v)->tp_name), text_of(c->type->tp_name)};
    }
    return out;
}

/* Describes the first tensor that differs, the field, and both values. The returned text, *out and *tensor
 * hold new references. */
static PyObject *
first_difference(const gd_tensor_check *checks, PyObject *part, PyObject *values, both *out, which *tensor)
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
        size_t row = 0;
        while (fields[row].field != field) {
            row++;
        }
        *out = v == NULL          ? (both){text_of("nothing"), text_of(c->type->tp_name)}
               : c->state != NULL ? field_by_python(c, v, field)
                                  : field_of_plain(c, v, field);
        PyObject *name = argument_name(part, i), *text = NULL;
        if (name != NULL && out->found != NULL && out->was != NULL) {
            text = PyUnicode_FromFormat("tensor %U: %s differ%s, found %U, was %U", name, fields[row].name,
                                        row < 6 && row != 1 ? "s" : "", out->found, out->was);
        }
        tensor->place = name;
        tensor->field = fields[row].name;
        return text;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
        for (Py_ssize_t j = 0; checks[i].fields & GD_TENSOR_DISTINCT && j < i; j++) {
            if (checks[j].fields & GD_TENSOR_DISTINCT && PyTuple_GET_ITEM(values, i) == PyTuple_GET_ITEM(values, j)) {
                *out = (both){text_of("one object"), text_of("distinct objects")};
                PyObject *a = argument_name(part, j), *b = argument_name(part, i);
                PyObject *text =
                    a != NULL && b != NULL ? PyUnicode_FromFormat("tensors %U and %U are one object now", a, b) : NULL;
                tensor->place = a;
                tensor->field = "identity";
                Py_XDECREF(b);
                return text;
            }
        }
    }
    return text_of(failure_texts[GD_OP_TENSORS]);
}

/* Repeats the check to find the tensor or the state that differs. The returned text, *out and *tensor hold
 * new references. */
static PyObject *
tensors_text(gd_GuardedCode *e, uint32_t at, PyObject **regs, both *out, which *tensor)
{
    const gd_guard_node *node = &e->nodes[at];
    /* Keeps the tensors alive, since the code below calls Python. No garbage collection may run before the
     * tuple holds them. */
    int collects = PyGC_Disable();
    PyObject *values = PyTuple_New(node->b);
    for (uint32_t i = 0; values != NULL && i < node->b; i++) {
        PyTuple_SET_ITEM(values, i, Py_XNewRef(regs[e->tensors[node->a + i].reg]));
    }
    if (collects) {
        PyGC_Enable();
    }
    if (values == NULL) {
        return NULL;
    }
    PyObject *text = NULL;
    if (node->flags & GD_FLAG_STATE) {
        text = gd_torch_state_difference(e->torch_state, &out->found, &out->was);
        tensor->field = text != NULL ? "state" : NULL;
        if (text != NULL || PyErr_Occurred()) {
            Py_DECREF(values);
            return text;
        }
    }
    text = first_difference(e->tensors + node->a, PyTuple_GET_ITEM(e->parts, e->node_parts[at]), values, out, tensor);
    Py_DECREF(values);
    return text;
}

/* ---- conditions on sizes ---- */

/* Returns the index of the operator in the text, outside of quotes and brackets, or -1. */
static Py_ssize_t
outside(PyObject *text, const char *operator)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(text), length = (Py_ssize_t)strlen(operator);
    Py_UCS4 quote = 0;
    int depth = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(text, i);
        if (quote != 0) {
            i += c == '\\';
            quote = c == quote ? 0 : quote;
            continue;
        }
        quote = c == '\'' || c == '"' ? c : 0;
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        Py_ssize_t same = 0;
        while (depth == 0 && same < length && i + same < n
               && PyUnicode_READ_CHAR(text, i + same) == (Py_UCS4)operator[same]) {
            same++;
        }
        if (same == length) {
            return i;
        }
    }
    return -1;
}

/* Returns the value of one side of a condition as a new str. */
static PyObject *
side_value(const gd_size_step *steps, uint32_t n, PyObject **regs)
{
    int64_t value;
    return gd_size_value(steps, n, regs, &value) ? PyUnicode_FromFormat("%lld", (long long)value)
                                                 : text_of("no int of 64 bits");
}

/* Appends "side is 1, was 2" to *text, and the values to *out, for one side of a condition. side: stolen. */
static void
add_side(PyObject **text, both *out, PyObject *side, const gd_size_step *steps, uint32_t n, PyObject **regs)
{
    PyObject *found = side_value(steps, n, regs), *was = side_value(steps, n, NULL);
    int more = *text != NULL && PyUnicode_GET_LENGTH(*text) > 0;
    if (side != NULL && found != NULL && was != NULL && *text != NULL && out->found != NULL && out->was != NULL) {
        PyUnicode_AppendAndDel(text, PyUnicode_FromFormat("%s%U is %U, was %U", more ? "; " : "", side, found, was));
        PyUnicode_AppendAndDel(&out->found, PyUnicode_FromFormat("%s%U", more ? " and " : "", found));
        PyUnicode_AppendAndDel(&out->was, PyUnicode_FromFormat("%s%U", more ? " and " : "", was));
    }
    else {
        Py_CLEAR(*text);
    }
    Py_XDECREF(side);
    Py_XDECREF(found);
    Py_XDECREF(was);
}

/* Describes a condition on sizes that does not hold: the value now and the former value of each side that is
 * not a number. The returned text and *out hold new references. */
static PyObject *
sizes_text(gd_GuardedCode *e, uint32_t at, PyObject **regs, both *out)
{
    static const char *const operators[] = {" == ", " != ", " >= ", " > ", " <= ", " < "};
    const gd_guard_node *node = &e->nodes[at];
    const gd_size_step *steps = e->sizes + node->a;
    const char *operator = operators[steps[node->b - 1].op - GD_SIZE_EQ];
    PyObject *part = PyTuple_GET_ITEM(e->parts, e->node_parts[at]);
    Py_ssize_t middle = outside(part, operator);
    uint32_t right = gd_size_right_side(steps, node->b), end = node->b - 1;
    if (middle < 0) {
        return text_of(failure_texts[node->op]); /* a text of another form, as a test may have */
    }
    PyObject *text = text_of("");
    *out = (both){text_of(""), text_of("")};
    if (right > 1 || steps[0].op != GD_SIZE_CONST) {
        add_side(&text, out, PyUnicode_Substring(part, 0, middle), steps, right, regs);
    }
    if (end - right > 1 || steps[right].op != GD_SIZE_CONST) {
        Py_ssize_t from = middle + (Py_ssize_t)strlen(operator);
        add_side(&text, out, PyUnicode_Substring(part, from, PyUnicode_GET_LENGTH(part)), steps + right, end - right,
                 regs);
    }
    return text;
}

/* ---- the whole text ---- */

/* Returns GuardFailure, a subclass of str with the details as attributes, created on first use; borrowed. */
static PyObject *
failure_type(void)
{
    static PyObject *type;
    if (type == NULL) {
        type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s:(sssssss),s:s,s:s}", "GuardFailure",
                                     &PyUnicode_Type, "__slots__", "part", "reason", "found", "was", "line", "place",
                                     "field", "__module__", "godynamo._C", "__doc__",
                                     "Why an entry did not serve: a line of text, and what it is made of. part: the "
                                     "condition; found, was: the value now and when it was made (str, or None where "
                                     "there is none); line: the user's (file, line) that needed it, or None; "
                                     "place, field: of a tensor which one, in the condition's words, and what of it "
                                     "differs (\"state\": a torch setting), else None.");
    }
    return type;
}

/* Returns a new GuardFailure with this text, or NULL with an exception set. */
static PyObject *
with_details(PyObject *text, PyObject *part, PyObject *reason, const both *values, const which *tensor, PyObject *line)
{
    PyObject *type = failure_type();
    PyObject *field = tensor->field != NULL ? text_of(tensor->field) : Py_NewRef(Py_None);
    PyObject *out = type != NULL && field != NULL ? PyObject_CallOneArg(type, text) : NULL;
    const struct {
        const char *name;
        PyObject *value;
    } details[] = {
        {"part", part}, {"reason", reason},       {"found", values->found}, {"was", values->was},
        {"line", line}, {"place", tensor->place}, {"field", field},
    };
    for (size_t i = 0; out != NULL && i < sizeof(details) / sizeof(details[0]); i++) {
        if (PyObject_SetAttrString(out, details[i].name, details[i].value != NULL ? details[i].value : Py_None) < 0) {
            Py_CLEAR(out);
        }
    }
    Py_XDECREF(field);
    return out;
}

PyObject *
gd_guard_failure_text(gd_GuardedCode *e, int failed_node, PyObject **regs)
{
    if (failed_node < 0 || (uint32_t)failed_node >= e->nnodes) {
        return text_of("the guards hold");
    }
    const gd_guard_node *node = &e->nodes[failed_node];
    both values = {NULL, NULL};
    which tensor = {NULL, NULL};
    PyObject *reason;
    if (node->op == GD_OP_TENSORS) {
        reason = tensors_text(e, (uint32_t)failed_node, regs, &values, &tensor);
    }
    else if (node->op == GD_OP_SHAPE_ENV) {
        reason = sizes_text(e, (uint32_t)failed_node, regs, &values);
    }
    else {
        PyObject *v = Py_XNewRef(regs[node->src]);
        values = both_values(e, (uint32_t)failed_node, v, regs);
        reason = PyErr_Occurred() ? NULL : expand(e, node, v, &values);
        Py_XDECREF(v);
    }
    PyObject *out = NULL;
    if (reason != NULL) {
        PyObject *part = PyTuple_GET_ITEM(e->parts, e->node_parts[failed_node]);
        PyObject *line = PyTuple_GET_ITEM(e->part_lines, e->node_parts[failed_node]);
        int known = PyTuple_Check(line) && PyTuple_GET_SIZE(line) == 2;
        PyObject *text = known ? PyUnicode_FromFormat("%U: %U (%S:%S)", part, reason, PyTuple_GET_ITEM(line, 0),
                                                      PyTuple_GET_ITEM(line, 1))
                               : PyUnicode_FromFormat("%U: %U", part, reason);
        out = text != NULL ? with_details(text, part, reason, &values, &tensor, line) : NULL;
        Py_XDECREF(text);
        Py_DECREF(reason);
    }
    drop(&values);
    Py_XDECREF(tensor.place);
    return out;
}
