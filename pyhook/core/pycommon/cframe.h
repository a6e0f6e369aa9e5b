/* What CPython 3.11 and 3.12 have in common, and 3.13 does differently: frames name their code and their previous
 * instruction, a thread's frame is in its C frame, and requests to the eval loop are the interpreter's. Included by
 * py3xx/internals.h only, after CPython's internal headers. */
#ifndef GD_PYCOMMON_CFRAME_H
#define GD_PYCOMMON_CFRAME_H

#include "pycommon/slots.h"

/* Returns the code that the frame runs, borrowed. */
static inline PyCodeObject *
gd_py_code_run_by(const _PyInterpreterFrame *frame)
{
    return frame->f_code;
}

/* Reports whether no instruction of the frame has run. */
static inline int
gd_py_frame_is_new(const _PyInterpreterFrame *frame)
{
    return frame->prev_instr == _PyCode_CODE(frame->f_code) - 1;
}

/* Sets the instruction at which a frame is that will not run, as a unit of its code. */
static inline void
gd_py_frame_place(_PyInterpreterFrame *frame, int unit)
{
    frame->prev_instr = _PyCode_CODE(frame->f_code) + unit;
}

/* Returns the byte offset of a frame's current instruction. In a frame that is calling another, this may be an
 * inline cache of the CALL. */
static inline int
gd_py_frame_offset(const _PyInterpreterFrame *frame)
{
    return _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
}

/* Returns the frame that a thread runs, or NULL. */
static inline _PyInterpreterFrame *
gd_py_current_frame(PyThreadState *tstate)
{
    return tstate->cframe != NULL ? tstate->cframe->current_frame : NULL;
}

/* Reports whether CPython's eval loop would look at requests now: a signal, a pending call, an exception or
 * GIL request of another thread. */
static inline int
gd_py_has_requests(PyThreadState *tstate)
{
    return _Py_atomic_load_relaxed(&tstate->interp->ceval.eval_breaker);
}

/* Makes the eval loop of the main thread look at its requests. May be called without the GIL. */
static inline void
gd_py_request_check(PyInterpreterState *interp)
{
    _Py_atomic_store_relaxed(&interp->ceval.eval_breaker, 1);
}

/* Reports whether the dict has a new version after every change. */
static inline int
gd_dict_is_tagged(PyObject *Py_UNUSED(dict))
{
    return 1;
}

/* The version of a dict without versions; see gd_dict_is_tagged. */
static inline uint64_t
gd_dict_no_tag(void)
{
    return 0;
}

#include "pycommon/ma_version.h"

/* Makes a frame report its opcodes to the trace function, or not. Called by trace functions. */
static inline void
gd_py_trace_opcodes(PyFrameObject *frame, int on)
{
    frame->f_trace_opcodes = (char)on;
}

/* Sets *callable to what a CALL calls, borrowed. sp points past the top of the stack. Returns how many values above the
 * callable are operands: the arguments, and self if there is one. */
static inline int
gd_py_call_operands(const gd_py_slot *sp, int arg, PyObject **callable)
{
    int method = sp[-(arg + 2)] != NULL;
    *callable = sp[-(arg + 1 + method)];
    return arg + method;
}

/* Sets *callable to what a CALL_FUNCTION_EX calls, and returns its tuple of arguments; both borrowed. */
static inline PyObject *
gd_py_call_ex_operands(const gd_py_slot *sp, int arg, PyObject **callable)
{
    int kw = arg & 1;
    *callable = sp[-(2 + kw)];
    return sp[-(1 + kw)];
}

/* Reports whether the interpreter is finalizing: modules are torn down, and imports fail. */
#define gd_is_finalizing() _Py_IsFinalizing()

#endif
