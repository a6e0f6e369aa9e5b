/* A group's plan in the form in which calls read it; see calls/group.h. */
#ifndef GD_GROUP_RUN_H
#define GD_GROUP_RUN_H

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

typedef struct {
    enum { GD_FROM_EXTERNAL, GD_FROM_STEP, GD_FROM_CONSTANT } from;
    uint32_t index;
    PyObject *value; /* strong: the constant; NULL for the others */
} gd_group_operand;

typedef struct {
    binaryfunc operator; /* NULL for a method */
    PyObject *name;      /* strong: the method's name */
    PyObject *names;     /* strong tuple: the keyword names of the last operands, or NULL */
    PyObject *foreach;   /* strong, or NULL */
    gd_foreach_form form;
    uint32_t n;
    uint32_t last; /* the last step that reads the result; its own index if none does */
    char writes;   /* changes its first operand if that is a tensor, and returns it */
    gd_group_operand operands[GD_GROUP_OPERANDS];
} gd_group_step;

typedef struct {
    PyObject_HEAD PyObject *plan; /* strong tuple */
    vectorcallfunc vectorcall;
    uint32_t units, externals, nsteps;
    unsigned int grouped;
    gd_group_step *steps;
    char *written; /* per external: a step changes it */
} gd_group;

/* The vectorcall of a Group: runs the units on their values. Returns None (new), or NULL with the exception of the
 * step that raised it. If that ran together with other units, these may have got further than in the program. */
PyObject *gd_group_call(PyObject *group, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
