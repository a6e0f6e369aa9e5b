/* Implements calls/epilogue.h. */
#include "calls/epilogue.h"

#include <string.h>

#include "calls/group_plan.h"
#include "calls/group_small.h"
#include "structmember.h"
#include "torch/tensor_layout.h"
#include "torch/torch_modes.h"

enum {
    STEPS = 16,     /* of an epilogue */
    IN_VAIN = 1024, /* After so many calls in a row that could not use the kernels, an epilogue tries this no more. */
};

/* An epilogue's first calls use no kernels: to find one, torch's operation is run on dozens of samples. */
static unsigned int early = 16;

/* Calls the operations. Returns the last result, new, or NULL with an exception set. */
static PyObject *
run_one_by_one(const gd_group *g, PyObject *fresh)
{
    PyObject *results[STEPS];
    uint32_t done = 0;
    int failed = 0;
    for (; done < g->nsteps && !failed; done++) {
        const gd_group_step *s = &g->steps[done];
        PyObject *args[GD_GROUP_OPERANDS];
        for (uint32_t i = 0; i < s->n; i++) {
            const gd_group_operand *o = &s->operands[i];
            args[i] = o->from == GD_FROM_EXTERNAL ? fresh : o->from == GD_FROM_STEP ? results[o->index] : o->value;
        }
        results[done] = gd_group_call_step(s, args);
        failed = results[done] == NULL || PyErr_CheckSignals() < 0; /* as CPython does after a call */
        for (uint32_t i = 0; i < s->n; i++) {
            const gd_group_operand *o = &s->operands[i];
            if (o->from == GD_FROM_STEP && g->steps[o->index].last == done) {
                Py_CLEAR(results[o->index]);
            }
        }
    }
    PyObject *result = failed ? NULL : Py_NewRef(results[done - 1]);
    for (uint32_t i = 0; i < done; i++) {
        Py_XDECREF(results[i]);
    }
    return result;
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
epilogue_call(PyObject *epilogue, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_group *g = (gd_group *)epilogue;
    if (kwnames != NULL || PyVectorcall_NARGS(nargsf) != 1) {
        PyErr_SetString(PyExc_TypeError, "an epilogue takes one value");
        return NULL;
    }
    g->small = 0;
    if (!g->with_kernels) {
        return run_one_by_one(g, args[0]);
    }
    if (g->plain >= early && gd_tensor_layout_ensure() && gd_tensor_layout.storage != 0 && gd_torch_unseen()) {
        PyObject *made = gd_group_run_fresh(g, args[0]);
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
    return run_one_by_one(g, args[0]);
}

/* Reports whether each step reads only the tensor that the one before it has made, the first one the fresh tensor. All
 * can then compute in the same memory. */
static int
reads_in_turn(const gd_group *g)
{
    for (uint32_t i = 0; i < g->nsteps; i++) {
        for (uint32_t k = 0; k < g->steps[i].n; k++) {
            const gd_group_operand *o = &g->steps[i].operands[k];
            if (o->from == GD_FROM_EXTERNAL ? i > 0 : o->from == GD_FROM_STEP && o->index + 1 != i) {
                return 0;
            }
        }
    }
    return 1;
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
epilogue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"steps", NULL};
    PyObject *steps;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Epilogue", names, &PyTuple_Type, &steps)) {
        return NULL;
    }
    gd_group *g = gd_group_make(type, steps, 1, 1, steps);
    if (g == NULL) {
        return NULL;
    }
    g->vectorcall = epilogue_call;
    g->in_turn = (char)reads_in_turn(g);
    if (g->nsteps > STEPS || g->written[0]) {
        PyErr_SetString(PyExc_ValueError, "malformed plan of an epilogue: too many steps, or a change in place");
        Py_CLEAR(g);
    }
    return (PyObject *)g;
}

/* Names the operations: "<epilogue: relu, *>". Returns a new reference, or NULL with an exception set. */
static PyObject *
epilogue_repr(PyObject *epilogue)
{
    const gd_group *g = (const gd_group *)epilogue;
    PyObject *names = PyTuple_New(g->nsteps), *comma = PyUnicode_FromString(", "), *text = NULL;
    for (uint32_t i = 0; names != NULL && i < g->nsteps; i++) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(g->steps[i].name));
    }
    PyObject *joined = names != NULL && comma != NULL ? PyUnicode_Join(comma, names) : NULL;
    if (joined != NULL) {
        text = PyUnicode_FromFormat("<epilogue: %U>", joined);
    }
    Py_XDECREF(names);
    Py_XDECREF(comma);
    Py_XDECREF(joined);
    return text;
}

static PyMemberDef epilogue_members[] = {
    {"plan", T_OBJECT_EX, offsetof(gd_group, plan), READONLY, "the steps from which it was made"},
    {"small", T_UINT, offsetof(gd_group, small), READONLY, "1 if its last call ran on the tensor's memory, else 0"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject epilogue_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.Epilogue",
    .tp_doc = "Epilogue(steps)(fresh): runs operations on a tensor that nothing else reads.",
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
