/* Implements calls/group_plan.h. */
#include "calls/group_plan.h"

#include <string.h>

#include "calls/group_ops_gen.h"
#include "torch/tensor_layout.h"
#include "torch/torch_symbols.h"

/* ---- the operations, which are rows of bytecode/translate/groups.table ---- */

/* Returns a new reference. */
static PyObject *
power(PyObject *a, PyObject *b)
{
    return PyNumber_Power(a, b, Py_None);
}

/* Returns a new reference. */
static PyObject *
in_place_power(PyObject *a, PyObject *b)
{
    return PyNumber_InPlacePower(a, b, Py_None);
}

/* Returns a new reference. */
static PyObject *
negative(PyObject *a, PyObject *Py_UNUSED(b))
{
    return PyNumber_Negative(a);
}

#define METHOD(name, form, small) {name, form, small},
#define OPERATOR(symbol, method, function) {symbol, method, function},

static const struct {
    const char *name;
    gd_foreach_form form;
    gd_small_op small;
} methods[] = {GD_GROUP_METHODS(METHOD)};

static const struct {
    const char *symbol, *method;
    binaryfunc function;
} operators[] = {GD_GROUP_OPERATORS(OPERATOR)};

/* Finds torch's function for a method of tensors, and reports whether the method is in the table. If this torch lacks
 * the function, the units call the method. */
static int
find_foreach(gd_group_step *s, const char *method)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(methods[i].name, method) == 0) {
            s->form = methods[i].form;
            s->small = methods[i].small;
            if (s->form != GD_FOREACH_NONE) {
                char path[64];
                PyOS_snprintf(path, sizeof(path), "_foreach_%s", method);
                s->foreach = gd_torch_attribute(path);
                PyErr_Clear();
            }
            return 1;
        }
    }
    return 0;
}

/* ---- the plan ---- */

static int
malformed(const char *what)
{
    PyErr_Format(PyExc_ValueError, "malformed plan of a group: %s", what);
    return -1;
}

static int
read_operand(const gd_group *g, uint32_t at, PyObject *from, gd_group_operand *to)
{
    if (PyTuple_CheckExact(from) && PyTuple_GET_SIZE(from) == 1) {
        to->value = Py_NewRef(PyTuple_GET_ITEM(from, 0));
        to->from = GD_FROM_CONSTANT;
        return 0;
    }
    long index = PyLong_CheckExact(from) ? PyLong_AsLong(from) : -1 - (long)at - 1;
    if (index == -1 && PyErr_Occurred()) {
        return -1;
    }
    to->from = index >= 0 ? GD_FROM_EXTERNAL : GD_FROM_STEP;
    if (index >= 0 ? index >= (long)g->externals : ~index >= (long)at) {
        return malformed("no such operand");
    }
    to->index = (uint32_t)(index >= 0 ? index : ~index);
    return 0;
}

/* Stores the attributes that an operator looks up: __add__ and __radd__ for +, __iadd__ for +=. */
static int
name_attributes(gd_group_step *s, const char *method)
{
    char text[32];
    size_t length = strlen(method), in_place = length > 0 && method[length - 1] == '_';
    const char *name = strncmp(method, "div", 3) == 0 ? "truediv" : method;
    PyOS_snprintf(text, sizeof(text), "%s", name);
    text[name == method ? length - in_place : strlen(name)] = '\0';
    s->looked_up = PyUnicode_FromFormat("__%s%s__", in_place ? "i" : "", text);
    /* The translator moves the tensor to the left where the order makes no difference. */
    if (s->looked_up != NULL && (strcmp(method, "add") == 0 || strcmp(method, "mul") == 0)) {
        s->reflected = PyUnicode_FromFormat("__r%s__", method);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Reports whether a class has TensorBase's own method of this name. */
static int
is_torchs(PyTypeObject *type, PyObject *name)
{
    static const char *const renamed[][2] = {{"__itruediv__", "__idiv__"}, {"__neg__", "neg"}};
    PyObject *found = _PyType_Lookup(type, name); /* borrowed */
    if (found == NULL || !Py_IS_TYPE(found, &PyMethodDescr_Type) || PyDescr_TYPE(found) != gd_tensor_layout.base) {
        return 0;
    }
    PyObject *called = PyDescr_NAME(found);
    int is = PyUnicode_Compare(called, name) == 0;
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]) && !is; i++) {
        is = PyUnicode_CompareWithASCIIString(name, renamed[i][0]) == 0
             && PyUnicode_CompareWithASCIIString(called, renamed[i][1]) == 0;
    }
    return is;
}

int
gd_group_calls_torch(gd_group *g, PyTypeObject *type)
{
    /* CPython gives a class a new tag if an attribute of it or of one of its bases changes; 0 is none. */
    unsigned int tag = type->tp_version_tag;
    if (GD_LIKELY(tag != 0 && (tag == g->own_tags[0] || tag == g->own_tags[1]))) {
        return 1;
    }
    for (uint32_t i = 0; i < g->nsteps; i++) {
        const gd_group_step *s = &g->steps[i];
        if ((s->small != GD_SMALL_NONE || s->foreach != NULL) && s->looked_up != NULL
            && (!is_torchs(type, s->looked_up) || (s->reflected != NULL && !is_torchs(type, s->reflected)))) {
            return 0;
        }
    }
    g->own_tags[1] = g->own_tags[0];
    g->own_tags[0] = type->tp_version_tag;
    return 1;
}

static int
read_name(gd_group_step *s, PyObject *kind, PyObject *name)
{
    const char *text = PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text == NULL || !PyUnicode_CheckExact(kind)) {
        return malformed("a step without a name");
    }
    const char *method = text;
    if (PyUnicode_CompareWithASCIIString(kind, "operator") == 0) {
        method = NULL;
        for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
            if (strcmp(operators[i].symbol, text) == 0) {
                s->operator = operators[i].function;
                method = operators[i].method;
            }
        }
        if (method == NULL || s->n != (s->operator == negative ? 1u : 2u)) {
            return malformed("no such operator");
        }
    }
    else if (PyUnicode_CompareWithASCIIString(kind, "call_function") == 0) {
        char path[64];
        PyOS_snprintf(path, sizeof(path), "_C._VariableFunctions.%s", text); /* the program may replace torch.NAME */
        s->function = gd_torch_attribute(path);
        if (s->function == NULL) {
            return -1;
        }
    }
    else if (PyUnicode_CompareWithASCIIString(kind, "call_method") != 0) {
        return malformed("no such kind of step");
    }
    s->name = Py_NewRef(name);
    if (find_foreach(s, method) || s->operator != NULL) {
        if (s->operator == NULL) {
            s->looked_up = s->function == NULL ? Py_NewRef(name) : NULL;
        }
        else if (name_attributes(s, method) < 0) {
            return -1;
        }
        s->writes = *method != '\0' && method[strlen(method) - 1] == '_';
        return 0;
    }
    return malformed("no such method"); /* its result might be a view */
}

static int
read_step(gd_group *g, uint32_t at, PyObject *from)
{
    gd_group_step *s = &g->steps[at];
    PyObject *kind, *name, *operands, *names;
    if (!PyTuple_CheckExact(from)
        || !PyArg_ParseTuple(from, "OOO!O!", &kind, &name, &PyTuple_Type, &operands, &PyTuple_Type, &names)) {
        return malformed("a step is a tuple of four");
    }
    Py_ssize_t n = PyTuple_GET_SIZE(operands);
    if (n < 1 || n > GD_GROUP_OPERANDS || PyTuple_GET_SIZE(names) >= n) {
        return malformed("too many or too few operands");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i))) {
            return malformed("a keyword that is no str");
        }
    }
    s->last = at;
    s->n = (uint32_t)n;
    s->names = PyTuple_GET_SIZE(names) > 0 ? Py_NewRef(names) : NULL;
    if (read_name(s, kind, name) < 0) {
        return -1;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (read_operand(g, at, PyTuple_GET_ITEM(operands, i), &s->operands[i]) < 0) {
            return -1;
        }
        if (s->operands[i].from == GD_FROM_STEP) {
            g->steps[s->operands[i].index].last = at;
        }
    }
    /* What a step changes is an external, or a value that another step of the unit has made. */
    for (const gd_group_operand *o = &s->operands[0]; s->writes; o = &g->steps[o->index].operands[0]) {
        if (o->from == GD_FROM_EXTERNAL) {
            g->written[o->index] = 1;
        }
        if (o->from != GD_FROM_STEP || !g->steps[o->index].writes) {
            break;
        }
    }
    return 0;
}

gd_group *
gd_group_make(PyTypeObject *type, PyObject *plan, int units, int externals, PyObject *steps)
{
    gd_group *g = PyObject_New(gd_group, type);
    if (g == NULL) {
        return NULL;
    }
    memset((char *)g + sizeof(PyObject), 0, sizeof(*g) - sizeof(PyObject));
    g->plan = Py_NewRef(plan);
    g->units = (uint32_t)units;
    g->externals = (uint32_t)externals;
    g->with_kernels = 1;
    if (units < 1 || externals < 1 || PyTuple_GET_SIZE(steps) < 1 || externals > GD_GROUP_EXTERNALS) {
        malformed("no units, externals or steps");
        goto failed;
    }
    g->steps = PyMem_Calloc((size_t)PyTuple_GET_SIZE(steps), sizeof(gd_group_step));
    g->written = PyMem_Calloc(g->externals, 1);
    if (g->steps == NULL || g->written == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    for (; g->nsteps < (uint32_t)PyTuple_GET_SIZE(steps);) {
        uint32_t at = g->nsteps++; /* counted first, so that dealloc frees what has been read */
        if (read_step(g, at, PyTuple_GET_ITEM(steps, at)) < 0) {
            goto failed;
        }
        g->with_kernels &= g->steps[at].form == GD_FOREACH_NONE || g->steps[at].small != GD_SMALL_NONE;
    }
    return g;
failed:
    Py_DECREF(g);
    return NULL;
}

void
gd_group_dealloc(gd_group *g)
{
    for (uint32_t i = 0; i < g->nsteps; i++) {
        gd_group_step *s = &g->steps[i];
        for (uint32_t k = 0; k < s->n; k++) {
            Py_XDECREF(s->operands[k].value);
        }
        Py_XDECREF(s->function);
        Py_XDECREF(s->name);
        Py_XDECREF(s->looked_up);
        Py_XDECREF(s->reflected);
        Py_XDECREF(s->names);
        Py_XDECREF(s->foreach);
    }
    PyMem_Free(g->steps);
    PyMem_Free(g->written);
    PyMem_Free(g->room);
    Py_DECREF(g->plan);
    PyObject_Free(g);
}

PyObject *
gd_group_call_step(const gd_group_step *s, PyObject **args)
{
    if (s->operator != NULL) {
        return s->operator(args[0], args[1 % s->n]);
    }
    size_t positional = s->n - (s->names != NULL ? (size_t)PyTuple_GET_SIZE(s->names) : 0);
    return s->function != NULL ? PyObject_Vectorcall(s->function, args, positional, s->names)
                               : PyObject_VectorcallMethod(s->name, args, positional, s->names);
}
