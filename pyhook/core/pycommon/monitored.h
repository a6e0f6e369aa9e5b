/* What CPython 3.12 to 3.14 have in common, and 3.11 lacks: sys.monitoring, an eval loop that ends its frames itself.
 * Included by py3xx/internals.h only, after CPython's internal headers. */
#ifndef GD_PYCOMMON_MONITORED_H
#define GD_PYCOMMON_MONITORED_H

#include <string.h>

/* The tools of sys.monitoring whose numbers are not those through which CPython serves sys.settrace and
 * sys.setprofile, one byte for each event. */
#define GD_PY_OTHER_TOOLS 0x3f3f3f3f3f3f3f3fULL

/* Reports whether another tool listens to one of n events, 8 to 16. tools: one byte for each event, with a bit for each
 * tool. */
static inline int
gd_py_others_listen(const uint8_t *tools, size_t n)
{
    _Static_assert(PY_MONITORING_SYS_PROFILE_ID == 6 && PY_MONITORING_SYS_TRACE_ID == 7, "six tools are others");
    uint64_t first, last;
    memcpy(&first, tools, sizeof first);
    memcpy(&last, tools + n - sizeof last, sizeof last);
    return ((first | last) & GD_PY_OTHER_TOOLS) != 0;
}

/* Reports whether a trace or profile function is active on this thread, or a tool of sys.monitoring: events must then
 * come from CPython itself. */
static inline int
gd_py_tracing(PyThreadState *tstate)
{
    return (((tstate->c_tracefunc != NULL) | (tstate->c_profilefunc != NULL)) && tstate->tracing == 0)
           || gd_py_others_listen(tstate->interp->monitors.tools, sizeof tstate->interp->monitors.tools);
}

/* Reports whether a tool may listen to the events of this code alone (sys.monitoring.set_local_events): the code has
 * been instrumented before. */
static inline int
gd_py_code_may_be_observed(const PyCodeObject *code)
{
    return code->_co_monitoring != NULL;
}

/* Reports whether a tool listens to the events of this code alone. */
static inline int
gd_py_code_observed(const PyCodeObject *code)
{
    const _PyCoMonitoringData *monitoring = code->_co_monitoring;
    return monitoring != NULL
           && gd_py_others_listen(monitoring->local_monitors.tools, sizeof monitoring->local_monitors.tools);
}

/* Returns the opcode in whose place an INSTRUMENTED_LINE is. unit: its place in the code. */
static inline int
gd_py_line_opcode(const _PyCoMonitoringData *monitoring, int unit)
{
#if PY_VERSION_HEX >= 0x030E0000 /* the opcode is the first byte of each entry (get_original_opcode) */
    return monitoring->lines->data[unit * monitoring->lines->bytes_per_entry];
#else
    return monitoring->lines[unit].original_opcode;
#endif
}

/* Returns the opcode at a byte offset, specialized or not, but never an instrumented form that hides another opcode; -1
 * if the offset is outside the code. */
static inline int
gd_py_opcode_at(PyCodeObject *code, int offset)
{
    if (offset < 0 || offset >= _PyCode_NBYTES(code)) {
        return -1;
    }
    int unit = offset / (int)sizeof(_Py_CODEUNIT), op = _PyCode_CODE(code)[unit].op.code;
    const _PyCoMonitoringData *monitoring = code->_co_monitoring;
    if (op == INSTRUMENTED_LINE && monitoring != NULL && monitoring->lines != NULL) {
        op = gd_py_line_opcode(monitoring, unit);
    }
    if (op == INSTRUMENTED_INSTRUCTION && monitoring != NULL && monitoring->per_instruction_opcodes != NULL) {
        op = monitoring->per_instruction_opcodes[unit];
    }
    return op;
}

/* Returns the number of Python frames in use on this thread, as the recursion limit counts them. */
static inline int
gd_py_depth(PyThreadState *tstate)
{
    return tstate->py_recursion_limit - tstate->py_recursion_remaining;
}

static inline int
gd_py_depth_left(PyThreadState *tstate)
{
    return tstate->py_recursion_remaining;
}

/* Returns the function that the frame runs, borrowed. */
static inline PyFunctionObject *
gd_py_frame_function(const _PyInterpreterFrame *frame)
{
    return (PyFunctionObject *)gd_py_reference_object(frame->f_funcobj);
}

/* Ends a frame that an eval-frame function has not run: releases its references and takes it off the thread's data
 * stack. The frame is the last one on it, has no frame object, and is not linked to its caller yet. From
 * 3.12 on the eval loop does this itself, so a frame that the loop never sees is left to its eval-frame function. */
void gd_py_end_frame(PyThreadState *tstate, _PyInterpreterFrame *frame);

/* Returns the dict of a class, borrowed; NULL if the class has none. The interpreter keeps the dicts of its own static
 * classes, whose tp_dict is NULL. */
static inline PyObject *
gd_py_type_dict(PyTypeObject *type)
{
    PyObject *dict = type->tp_dict;
    if (dict == NULL) {
        dict = PyType_GetDict(type);
        Py_XDECREF(dict); /* the class holds it */
    }
    return dict;
}

/* Returns a new array (PyMem_Free) with the depth of the stack before each code unit of the code, -1 where it is
 * unknown; NULL without an exception if there is no memory. bytes: the code's instructions, not specialized. */
int16_t *gd_py_stack_depths(PyCodeObject *code, PyObject *bytes);

/* Returns the address past the top of the stack of a frame that is about to run the instruction at a unit, for a trace
 * function; NULL if it is unknown. depths: what gd_py_stack_depths returned. */
static inline const gd_py_slot *
gd_py_stack_top(_PyInterpreterFrame *frame, const int16_t *depths, Py_ssize_t unit)
{
    return depths != NULL && depths[unit] >= 0 ? _PyFrame_Stackbase(frame) + depths[unit] : NULL;
}

#endif
