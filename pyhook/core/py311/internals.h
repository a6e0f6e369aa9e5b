/* CPython 3.11: its internal headers and its facts. Included by pycompat.h only. */
#ifndef GD_PYCOMPAT_311_H
#define GD_PYCOMPAT_311_H

/* The internal headers ask for this macro. It is defined after Python.h on purpose: before it, it would change what the
 * public headers declare. */
#ifndef Py_BUILD_CORE
#    define Py_BUILD_CORE 1
#    define GD_DEFINED_PY_BUILD_CORE
#endif
/* Two names that the public headers of 3.11 define as other macros than the internal ones. */
#undef _PyGC_FINALIZED
#undef _PyObject_LookupSpecial
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#ifdef GD_DEFINED_PY_BUILD_CORE
#    undef Py_BUILD_CORE
#    undef GD_DEFINED_PY_BUILD_CORE
#endif

typedef _PyFrameEvalFunction gd_py_eval_function;

/* The calling thread's state; the GIL is held. borrowed */
static inline PyThreadState *
gd_py_thread_state(void)
{
    return _PyThreadState_GET();
}

/* Whether a trace or profile function is active here: events must then be CPython's own. */
static inline int
gd_py_tracing(PyThreadState *tstate)
{
    return tstate->cframe->use_tracing != 0;
}

/* Whether trace events go to this C trace function, and no profile function is active. */
static inline int
gd_py_traced_by(PyThreadState *tstate, Py_tracefunc function)
{
    return tstate->c_tracefunc == function && tstate->c_profilefunc == NULL;
}

/* The frame object of the Python function that is running; NULL where none has been made for it. new */
static inline PyObject *
gd_py_running_frame(PyThreadState *tstate)
{
    _PyInterpreterFrame *frame = tstate->cframe->current_frame;
    return frame != NULL ? Py_XNewRef((PyObject *)frame->frame_obj) : NULL;
}

/* Whether another thread of the interpreter is inside a Python frame. */
static inline int
gd_py_others_run(PyThreadState *tstate)
{
    for (PyThreadState *t = PyInterpreterState_ThreadHead(tstate->interp); t != NULL; t = PyThreadState_Next(t)) {
        if (t != tstate && t->cframe != NULL && t->cframe->current_frame != NULL) {
            return 1;
        }
    }
    return 0;
}

/* Keeps signal handlers and pending calls from running on this thread until gd_py_release_signals: CPython runs both on
 * the thread that its runtime names as the main one (_Py_ThreadCanHandleSignals in pycore_pystate.h), and meanwhile
 * names none. What arrives is kept by CPython as for a long call of C. 1 when this call began to hold them; 0 on other
 * threads, and where they are held already. */
static inline int
gd_py_hold_signals(void)
{
    if (_PyRuntime.main_thread != PyThread_get_thread_ident()) {
        return 0;
    }
    _PyRuntime.main_thread = 0;
    return 1;
}

/* Only on the thread where gd_py_hold_signals returned 1. The eval loop is told to look at its requests again: it may
 * have found them not to be its own meanwhile. */
static inline void
gd_py_release_signals(PyThreadState *tstate)
{
    _PyRuntime.main_thread = PyThread_get_thread_ident();
    if (_Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending)
        || _Py_atomic_load_relaxed(&tstate->interp->ceval.pending.calls_to_do)) {
        _Py_atomic_store_relaxed(&tstate->interp->ceval.eval_breaker, 1);
    }
}

/* Whether CPython's eval loop would look at requests now: a signal, a pending call, another thread's exception, or its
 * wish for the GIL. */
static inline int
gd_py_has_requests(PyThreadState *tstate)
{
    return _Py_atomic_load_relaxed(&tstate->interp->ceval.eval_breaker);
}

/* gd_py_release_signals for the main thread, by another one that holds nothing of CPython: three stores that CPython
 * reads whole. main_thread: its ident; interp: its interpreter */
static inline void
gd_py_release_signals_of(unsigned long main_thread, PyInterpreterState *interp)
{
    __atomic_store_n(&_PyRuntime.main_thread, main_thread, __ATOMIC_SEQ_CST);
    _Py_atomic_store_relaxed(&interp->ceval.eval_breaker, 1);
}

/* The code that the frame object runs or ran. borrowed */
static inline PyCodeObject *
gd_py_frame_code_of(PyFrameObject *frame)
{
    return frame->f_frame->f_code;
}

/* The i-th of a frame's variables, out of its cell; borrowed, NULL where it has no value. */
static inline PyObject *
gd_py_frame_value(PyFrameObject *frame, int i)
{
    PyObject *value = frame->f_frame->localsplus[i];
    return value != NULL && PyCell_Check(value) ? PyCell_GET(value) : value;
}

/* The opcode at a byte offset, as it is now: specialized or not. -1 outside of the code. */
static inline int
gd_py_opcode_at(PyCodeObject *code, int offset)
{
    return offset >= 0 && offset < _PyCode_NBYTES(code)
               ? _Py_OPCODE(_PyCode_CODE(code)[offset / (int)sizeof(_Py_CODEUNIT)])
               : -1;
}

/* Where a frame is: its code and the byte offset of its instruction. A frame that calls another may be at the caches of
 * its CALL. */
static inline int
gd_py_frame_offset(const _PyInterpreterFrame *frame)
{
    return _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
}

/* The frame that called this one, past those that have not begun; NULL at the end. */
static inline _PyInterpreterFrame *
gd_py_caller(const _PyInterpreterFrame *frame)
{
    _PyInterpreterFrame *back = frame->previous;
    while (back != NULL && _PyFrame_IsIncomplete(back)) {
        back = back->previous;
    }
    return back;
}

/* Python frames in use on this thread, as the recursion limit counts them. */
static inline int
gd_py_depth(PyThreadState *tstate)
{
    return tstate->recursion_limit - tstate->recursion_remaining;
}

static inline int
gd_py_depth_left(PyThreadState *tstate)
{
    return tstate->recursion_remaining;
}

/* The eval-frame function in force; never NULL. */
static inline gd_py_eval_function
gd_py_get_eval(PyThreadState *tstate)
{
    gd_py_eval_function f = tstate->interp->eval_frame;
    return f != NULL ? f : _PyEval_EvalFrameDefault;
}

/* What _PyInterpreterState_SetEvalFrameFunc does in Python/pystate.c of 3.11: the default is stored as NULL, which is
 * what the specialised calls test before they push a frame without a C call. */
static inline void
gd_py_set_eval(PyThreadState *tstate, gd_py_eval_function f)
{
    tstate->interp->eval_frame = f == _PyEval_EvalFrameDefault ? NULL : f;
}

/* Whether the dict is as PyDict_New made it: empty, with the table all empty dicts share, unknown to the collector. */
static inline int
gd_dict_is_fresh(PyObject *dict)
{
    PyDictObject *mp = (PyDictObject *)dict;
    return mp->ma_used == 0 && mp->ma_values == NULL && mp->ma_keys->dk_log2_size == 0
           && !_PyObject_GC_IS_TRACKED(dict);
}

/* What a code object is made of, in CPython's own objects; all borrowed. */
typedef struct {
    PyObject *name, *qualname, *filename;       /* str */
    PyObject *code, *linetable, *exceptiontable; /* bytes */
    PyObject *consts, *names;                   /* tuples */
    PyObject *localsplusnames, *localspluskinds; /* tuple of str, bytes */
    int flags, firstlineno, argcount, posonlyargcount, kwonlyargcount, stacksize;
} gd_py_code_parts;

/* new code object; NULL with an exception when the parts do not fit together */
PyObject *gd_py_code_new(const gd_py_code_parts *parts);

/* Reads what has no public accessor. borrowed from code */
void gd_py_code_tables(PyCodeObject *code, PyObject **linetable, PyObject **exceptiontable, PyObject **localsplusnames,
                       PyObject **localspluskinds);

/* Whether the interpreter has begun to end: modules go, imports fail. Public under another name from 3.13 on. */
#define gd_is_finalizing() _Py_IsFinalizing()

#endif
