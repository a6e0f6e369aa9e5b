/* The type Group. calls/group_run.c runs the units of one call. */
#include "calls/group.h"

#include "calls/group_plan.h"
#include "calls/group_run.h"
#include "structmember.h"

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
    gd_group *g = gd_group_make(type, plan, units, externals, steps);
    if (g != NULL) {
        g->vectorcall = gd_group_call;
    }
    return (PyObject *)g;
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
    .tp_dealloc = (destructor)gd_group_dealloc,
};

int
gd_group_init(PyObject *module)
{
    return PyModule_AddType(module, &group_type);
}
