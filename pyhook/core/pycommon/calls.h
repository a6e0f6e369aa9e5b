/* What CPython 3.13 and 3.14 have in common: the NULL of a call without self is above the callable. Included by
 * py3xx/internals.h only. */
#ifndef GD_PYCOMMON_CALLS_H
#define GD_PYCOMMON_CALLS_H

/* Sets *callable to what a CALL or CALL_KW calls, borrowed. sp points past the top of the stack, without the names of
 * a CALL_KW. Returns how many values above the callable are operands: the arguments, and self if there is one. */
static inline int
gd_py_call_operands(const gd_py_slot *sp, int arg, PyObject **callable)
{
    *callable = gd_py_slot_object(sp[-(arg + 2)]);
    return arg + (gd_py_slot_object(sp[-(arg + 1)]) != NULL);
}

/* Sets *callable to what a CALL_FUNCTION_EX calls, and returns its tuple of arguments; both borrowed. */
static inline PyObject *
gd_py_call_ex_operands(const gd_py_slot *sp, int arg, PyObject **callable)
{
#ifdef LOAD_SPECIAL /* 3.14 always has the keywords, or NULL */
    int kw = 1;
    (void)arg;
#else
    int kw = arg & 1;
#endif
    *callable = gd_py_slot_object(sp[-(3 + kw)]);
    return gd_py_slot_object(sp[-(1 + kw)]);
}

#endif
