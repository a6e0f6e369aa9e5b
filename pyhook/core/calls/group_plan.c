/* Implements calls/group_plan.h. */
#include "calls/group_plan.h"

PyObject *
gd_group_call_step(const gd_group_step *s, PyObject **args)
{
    if (s->operator != NULL) {
        return s->operator(args[0], args[1 % s->n]);
    }
    size_t positional = s->n - (s->names != NULL ? (size_t)PyTuple_GET_SIZE(s->names) : 0);
    return PyObject_VectorcallMethod(s->name, args, positional, s->names);
}
