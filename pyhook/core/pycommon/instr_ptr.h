/* What CPython 3.13 and 3.14 have in common: frames know their next instruction, requests to the eval loop are the
 * thread's, inline values stay an instance's attributes beside its dict. Included by py3xx/internals.h only. */
#ifndef GD_PYCOMMON_INSTR_PTR_H
#define GD_PYCOMMON_INSTR_PTR_H

/* Returns a version that no dict has and that was not returned before, for dicts without versions. */
static inline uint64_t
gd_dict_no_tag(void)
{
    static uint64_t last = (uint64_t)1 << 62; /* far above the versions that a process reaches */
    return ++last;
}

/* Takes a frame off the thread's data stack, on which it is the last one. Its references have been released. */
static inline void
gd_py_pop_frame(PyThreadState *tstate, _PyInterpreterFrame *frame)
{
    _PyThreadState_PopFrame(tstate, frame);
}

/* Reports whether no instruction of the frame has run. */
static inline int
gd_py_frame_is_new(const _PyInterpreterFrame *frame)
{
    return frame->instr_ptr == _PyCode_CODE(gd_py_code_run_by(frame));
}

/* Sets the instruction at which a frame is that will not run, as a unit of its code. */
static inline void
gd_py_frame_place(_PyInterpreterFrame *frame, int unit)
{
    frame->instr_ptr = _PyCode_CODE(gd_py_code_run_by(frame)) + unit;
}

/* Returns the byte offset of a frame's current instruction. */
static inline int
gd_py_frame_offset(const _PyInterpreterFrame *frame)
{
    return (int)((const char *)frame->instr_ptr - (const char *)_PyCode_CODE(gd_py_code_run_by(frame)));
}

/* Returns the frame that a thread runs, or NULL. */
static inline _PyInterpreterFrame *
gd_py_current_frame(PyThreadState *tstate)
{
    return tstate->current_frame;
}

/* Reports whether CPython's eval loop would look at requests now: a signal, a pending call, an exception or
 * GIL request of another thread. */
static inline int
gd_py_has_requests(PyThreadState *tstate)
{
    return (_Py_atomic_load_uintptr_relaxed(&tstate->eval_breaker) & _PY_EVAL_EVENTS_MASK) != 0;
}

/* Makes the eval loop of the main thread look for signals and pending calls. May be called without the GIL. A thread
 * that looked while signals were held has cleared both requests (handle_signals and make_pending_calls in
 * Python/ceval_gil.c). */
static inline void
gd_py_request_check(PyInterpreterState *Py_UNUSED(interp))
{
    _Py_set_eval_breaker_bit(_PyRuntime.main_tstate, _PY_SIGNALS_PENDING_BIT | _PY_CALLS_TO_DO_BIT);
}

/* Reports whether a signal has arrived or a pending call waits, for the thread that runs them. */
static inline int
gd_py_signals_wait(PyThreadState *tstate)
{
    return _Py_atomic_load_int(&_PyRuntime.signals.is_tripped)
           || _Py_atomic_load_int32_relaxed(&tstate->interp->ceval.pending.npending)
           || _Py_atomic_load_int32_relaxed(&_PyRuntime.ceval.pending_mainthread.npending);
}

/* Reports whether an instance's inline values are its attributes. They are while `valid` is set, even if its dict has
 * been made, which then shares them. */
static inline int
gd_py_has_inline_values(PyObject *v)
{
    return (Py_TYPE(v)->tp_flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(v)->valid;
}

/* Returns the address of a word that changes if an instance of a class with managed dicts gets or loses inline values.
 * It also changes if an attribute is added or removed. */
static inline const void *
gd_py_values_place(PyObject *v)
{
    _Static_assert(offsetof(PyDictValues, valid) < 8 && offsetof(PyDictValues, values) == 8,
                   "the word before the values holds their state");
    return Py_TYPE(v)->tp_flags & Py_TPFLAGS_INLINE_VALUES ? (const void *)_PyObject_InlineValues(v)
                                                           : (const void *)_PyObject_ManagedDictPointer(v);
}

/* Returns the address where such an instance keeps the pointer to its dict. */
static inline const void *
gd_py_managed_dict_place(PyObject *v)
{
    return &_PyObject_ManagedDictPointer(v)->dict;
}

/* Reads where such an instance keeps its attributes. Sets *values to the inline values, or to NULL, and *dict to the
 * dict that has been made, borrowed, or to NULL. While there are inline values, they are the attributes. */
static inline void
gd_py_managed_attributes(PyObject *v, PyDictValues **values, PyObject **dict)
{
    *values = gd_py_has_inline_values(v) ? _PyObject_InlineValues(v) : NULL;
    *dict = (PyObject *)_PyObject_ManagedDictPointer(v)->dict;
}

/* Reports whether the interpreter is finalizing: modules are torn down, and imports fail. */
#define gd_is_finalizing() Py_IsFinalizing()

/* Makes a frame report its opcodes to the trace function, or not. Called by trace functions, which have no exception
 * set when they ask for opcodes. Setting the attribute instruments the frame's code, but only of a frame that has a
 * trace function of its own (frame_settrace_opcodes in Objects/frameobject.c). */
static inline void
gd_py_trace_opcodes(PyFrameObject *frame, int on)
{
    if (!on) {
        frame->f_trace_opcodes = 0;
        return;
    }
    int without = frame->f_trace == NULL;
    if (without) {
        frame->f_trace = Py_NewRef(Py_None);
    }
    if (PyObject_SetAttrString((PyObject *)frame, "f_trace_opcodes", Py_True) < 0) {
        PyErr_Clear();
    }
    if (without) {
        Py_CLEAR(frame->f_trace);
    }
}

/* Sets a C trace function; NULL removes it. From 3.13 on each frame asks for opcodes itself. */
static inline void
gd_py_set_opcode_trace(PyThreadState *Py_UNUSED(tstate), Py_tracefunc function)
{
    PyEval_SetTrace(function, NULL);
}

#endif
