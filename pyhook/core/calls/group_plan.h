/* A group's plan in the form in which calls read it; see calls/group.h. */
#ifndef GD_GROUP_PLAN_H
#define GD_GROUP_PLAN_H

#include "pycompat.h"

/* Limits on a plan: the operands of a step, and the externals of a unit. */
enum { GD_GROUP_OPERANDS = 6, GD_GROUP_EXTERNALS = 64 };

/* What torch._foreach_NAME takes after its first list of tensors. */
typedef enum {
    GD_FOREACH_NONE,  /* there is no such function */
    GD_FOREACH_ONE,   /* nothing */
    GD_FOREACH_OTHER, /* tensors, with alpha=; or a number, or numbers */
    GD_FOREACH_THREE, /* tensors, tensors; value=, a number or numbers */
    GD_FOREACH_LERP,  /* tensors, a number */
    GD_FOREACH_COPY,  /* tensors */
} gd_foreach_form;

/* What a step computes on small tensors (calls/group_small.h). */
typedef enum {
    GD_SMALL_NONE, /* there is no kernel */
    GD_SMALL_ADD,
    GD_SMALL_SUB,
    GD_SMALL_MUL,
    GD_SMALL_DIV,
    GD_SMALL_ADDCMUL,
    GD_SMALL_ADDCDIV,
    GD_SMALL_LERP,
    GD_SMALL_COPY,
    GD_SMALL_ZERO,
    GD_SMALL_SQRT,
    GD_SMALL_NEG,
    GD_SMALL_ABS,
    GD_SMALL_RECIPROCAL,
    GD_SMALL_RELU,
    GD_SMALL_ITEM,
} gd_small_op;

typedef struct {
    enum { GD_FROM_EXTERNAL, GD_FROM_STEP, GD_FROM_CONSTANT } from;
    uint32_t index;
    PyObject *value; /* strong: the constant; NULL for the others */
} gd_group_operand;

typedef struct {
    binaryfunc operator; /* NULL for a method or a function */
    PyObject *function;  /* strong: torch's function; NULL for an operator or a method */
    PyObject *name;      /* strong: the name of the method or the function */
    PyObject *looked_up; /* strong: the attribute of the class that the step calls; NULL for a function */
    PyObject *reflected; /* strong: that of an operator with the tensor on the right, or NULL */
    PyObject *names;     /* strong tuple: the keyword names of the last operands, or NULL */
    PyObject *foreach;   /* strong, or NULL */
    gd_foreach_form form;
    gd_small_op small;
    uint32_t n;
    uint32_t last; /* the last step that reads the result; its own index if none does */
    char writes;   /* changes its first operand if that is a tensor, and returns it */
    gd_group_operand operands[GD_GROUP_OPERANDS];
} gd_group_step;

typedef struct {
    PyObject_HEAD PyObject *plan; /* strong tuple */
    vectorcallfunc vectorcall;
    uint32_t units, externals, nsteps;
    unsigned int grouped, small; /* units of the last call that ran together, and on their memory */
    char with_kernels;           /* all steps on tensors have kernels, and no call has found otherwise */
    unsigned int plain;          /* of an Epilogue: calls in a row that called torch */
    unsigned int own_tags[2];    /* version tags of classes whose methods gd_group_calls_torch has looked at */
    char *room;                  /* owned: memory for the results of units that run on their memory, or NULL */
    size_t room_bytes;
    gd_group_step *steps;
    char *written; /* per external: a step changes it */
} gd_group;

/* Returns a new object of the type, whose vectorcall is not set, or NULL with an exception set. */
gd_group *gd_group_make(PyTypeObject *type, PyObject *plan, int units, int externals, PyObject *steps);

void gd_group_dealloc(gd_group *g);

/* Reports whether the steps call torch's own methods on an instance of the class, and not ones that the program has put
 * in their place. */
int gd_group_calls_torch(gd_group *g, PyTypeObject *type);

/* Calls a step's operation. Returns a new reference, or NULL with an exception set. */
PyObject *gd_group_call_step(const gd_group_step *s, PyObject **args);

#endif
