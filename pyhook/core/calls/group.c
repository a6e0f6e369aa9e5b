/* The type Group: its plan, and its calls. calls/group_run.c runs the units of one call. */
#include "calls/group.h"

#include <string.h>

#include "calls/group_ops_gen.h"
#include "calls/group_run.h"
#include "structmember.h"
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
    else if (PyUnicode_CompareWithASCIIString(kind, "call_method") != 0) {
        return malformed("no such kind of step");
    }
    s->name = Py_NewRef(name);
    if (find_foreach(s, method) || s->operator != NULL) {
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

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
group_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"plan", NULL};
    PyObject *plan, *steps;
    int units, externals;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Group", names, &PyTuple_Type, &plan)) {
        return NULL;
    }
    if (!PyArg_ParseTuple(plan, "iiO!", &units, &externals, &PyTuple_Type, &steps)) {
        return NULL;
    }
    gd_group *g = PyObject_New(gd_group, type);
    if (g == NULL) {
        return NULL;
    }
    memset((char *)g + sizeof(PyObject), 0, sizeof(*g) - sizeof(PyObject));
    g->plan = Py_NewRef(plan);
    g->vectorcall = gd_group_call;
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
    return (PyObject *)g;
failed:
    Py_DECREF(g);
    return NULL;
}

static void
group_dealloc(gd_group *g)
{
    for (uint32_t i = 0; i < g->nsteps; i++) {
        gd_group_step *s = &g->steps[i];
        for (uint32_t k = 0; k < s->n; k++) {
            Py_XDECREF(s->operands[k].value);
        }
        Py_XDECREF(s->name);
        Py_XDECREF(s->names);
        Py_XDECREF(s->foreach);
    }
    PyMem_Free(g->steps);
    PyMem_Free(g->written);
    PyMem_Free(g->room);
    Py_DECREF(g->plan);
    PyObject_Free(g);
}

static PyMemberDef group_members[] = {
    {"plan", T_OBJECT_EX, offsetof(gd_group, plan), READONLY, "the plan from which it was made"},
    {"grouped", T_UINT, offsetof(gd_group, grouped), READONLY, "units that ran together in its last call"},
    {"small", T_UINT, offsetof(gd_group, small), READONLY, "units that ran on their memory in its last call"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject group_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.Group",
    .tp_doc = "Group(plan)(*values): runs equal operations on different tensors together, if nothing can tell.",
    .tp_basicsize = sizeof(gd_group),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(gd_group, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = group_new,
    .tp_members = group_members,
    .tp_dealloc = (destructor)group_dealloc,
};

int
gd_group_init(PyObject *module)
{
    return PyModule_AddType(module, &group_type);
}
