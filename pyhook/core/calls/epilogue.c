/* Implements calls/epilogue.h. */
#include "calls/epilogue.h"

#include <string.h>

#include "calls/group_plan.h"
#include "calls/group_small.h"
#include "structmember.h"
#include "torch/tensor_layout.h"
#include "torch/torch_modes.h"

/* After so many calls in a row that could not use the kernel, an epilogue tries this no more. */
enum { IN_VAIN = 1024 };

/* An epilogue's first calls use no kernel: to find one, torch's operation is run on dozens of samples. */
static unsigned int early = 16;

/* Calls the operation. Returns its result, new, or NULL with an exception set. */
static PyObject *
call_torch(const gd_group *g, PyObject *const *external)
{
    PyObject *args[GD_GROUP_OPERANDS];
    for (uint32_t i = 0; i < g->steps->n; i++) {
        const gd_group_operand *o = &g->steps->operands[i];
        args[i] = o->from == GD_FROM_EXTERNAL ? external[o->index] : o->value;
    }
    return gd_group_call_step(g->steps, args);
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
epilogue_call(PyObject *epilogue, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_group *g = (gd_group *)epilogue;
    if (kwnames != NULL || (size_t)PyVectorcall_NARGS(nargsf) != g->externals) {
        PyErr_Format(PyExc_TypeError, "this epilogue takes %u values", (unsigned int)g->externals);
        return NULL;
    }
    g->small = 0;
    if (!g->with_kernels) {
        return call_torch(g, args);
    }
    if (g->plain >= early && gd_tensor_layout_ensure() && gd_tensor_layout.storage != 0 && gd_torch_unseen()) {
        PyObject *made = gd_group_run_fresh(g, args);
        if (made != NULL) {
            g->plain = early;
            g->small = 1;
            return made;
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    g->with_kernels = ++g->plain < IN_VAIN;
    return call_torch(g, args);
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
epilogue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"plan", NULL};
    PyObject *plan, *steps;
    int externals;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Epilogue", names, &PyTuple_Type, &plan)
        || !PyArg_ParseTuple(plan, "iO!", &externals, &PyTuple_Type, &steps)) {
        return NULL;
    }
    gd_group *g = gd_group_make(type, plan, 1, externals, steps);
    if (g == NULL) {
        return NULL;
    }
    g->vectorcall = epilogue_call;
    if (g->nsteps != 1 || g->steps->writes) {
        PyErr_SetString(PyExc_ValueError, "malformed plan of an epilogue: several steps, or a change in place");
        Py_CLEAR(g);
    }
    return (PyObject *)g;
}

/* Names the operation: "<epilogue: relu>". Returns a new reference, or NULL with an exception set. */
static PyObject *
epilogue_repr(PyObject *epilogue)
{
    return PyUnicode_FromFormat("<epilogue: %U>", ((const gd_group *)epilogue)->steps->name);
}

static PyMemberDef epilogue_members[] = {
    {"plan", T_OBJECT_EX, offsetof(gd_group, plan), READONLY, "the plan from which it was made"},
    {"small", T_UINT, offsetof(gd_group, small), READONLY, "1 if its last call ran on the tensor's memory, else 0"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject epilogue_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.Epilogue",
    .tp_doc = "Epilogue(plan)(fresh, *others): runs an operation on a tensor that nothing else reads.",
    .tp_basicsize = sizeof(gd_group),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(gd_group, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = epilogue_repr,
    .tp_new = epilogue_new,
    .tp_members = epilogue_members,
    .tp_dealloc = (destructor)gd_group_dealloc,
};

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
epilogues_wait(PyObject *Py_UNUSED(module), PyObject *calls)
{
    long before = (long)early, now = PyLong_AsLong(calls);
    if (now < 0 || now >= IN_VAIN) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "not from 0 to %d", IN_VAIN - 1);
    }
    early = (unsigned int)now;
    return PyLong_FromLong(before);
}

static PyMethodDef functions[] = {
    {"_epilogues_wait", epilogues_wait, METH_O,
     "Tests: sets how many calls of an epilogue use no kernels at first. Returns the number before."},
    {NULL, NULL, 0, NULL},
};

int
gd_epilogue_init(PyObject *module)
{
    return PyModule_AddType(module, &epilogue_type) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
