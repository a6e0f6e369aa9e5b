/* What CPython 3.11 to 3.14 have in common: facts about internal structs whose fields have the same names. Included
 * by py3xx/internals.h only, after CPython's internal headers and the facts of that version. */
#ifndef GD_PYCOMMON_INTERNALS_H
#define GD_PYCOMMON_INTERNALS_H

typedef _PyFrameEvalFunction gd_py_eval_function;

/* Returns the function's code, borrowed, if a call with n positional arguments gives each parameter its value, or NULL
 * if it does not. function may be NULL. */
static inline PyObject *
gd_py_code_for_exact_call(PyObject *function, uint32_t n)
{
    if (function == NULL || !PyFunction_Check(function)) {
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    int wanted = CO_OPTIMIZED | CO_NEWLOCALS;
    int flags = code->co_flags & (wanted | CO_VARARGS | CO_VARKEYWORDS);
    return flags == wanted && code->co_kwonlyargcount == 0 && code->co_argcount == (int)n ? (PyObject *)code : NULL;
}

/* Returns the calling thread's state, borrowed. The caller holds the GIL. */
static inline PyThreadState *
gd_py_thread_state(void)
{
    return _PyThreadState_GET();
}

/* Reports whether trace events go to this C trace function and no profile function is active. */
static inline int
gd_py_traced_by(PyThreadState *tstate, Py_tracefunc function)
{
    return tstate->c_tracefunc == function && tstate->c_profilefunc == NULL;
}

/* Keeps signal handlers and pending calls from running until gd_py_release_signals. CPython runs both on the thread
 * that its runtime records as the main thread (_Py_ThreadCanHandleSignals in pycore_pystate.h); during the hold no
 * thread is recorded. Signals that arrive stay pending, as during a long C call. Returns 1 if this call began the
 * hold; 0 on other threads, and if signals are held already. */
static inline int
gd_py_hold_signals(void)
{
    if (_PyRuntime.main_thread != PyThread_get_thread_ident()) {
        return 0;
    }
    _PyRuntime.main_thread = 0;
    return 1;
}

/* Ends the hold. Call it only on the thread where gd_py_hold_signals returned 1. Makes the eval loop check its
 * requests again, since during the hold it may have found that it could not handle them. */
static inline void
gd_py_release_signals(PyThreadState *tstate)
{
    _PyRuntime.main_thread = PyThread_get_thread_ident();
    if (gd_py_signals_wait(tstate)) {
        gd_py_request_check(tstate->interp);
    }
}

/* Does the work of gd_py_release_signals for the main thread, on a thread that has no thread state and no GIL. The
 * stores are atomic. main_thread: the main thread's ident; interp: its interpreter. */
static inline void
gd_py_release_signals_of(unsigned long main_thread, PyInterpreterState *interp)
{
    __atomic_store_n(&_PyRuntime.main_thread, main_thread, __ATOMIC_SEQ_CST);
    gd_py_request_check(interp);
}

/* The state that gd_py_hold_full_collections replaced. */
typedef struct {
    struct _gc_runtime_state *collector;
    Py_ssize_t total, held;
} gd_py_collections;

/* Delays full collections. gc_collect_generations (Modules/gcmodule.c) starts one only if long_lived_pending is at
 * least a quarter of long_lived_total, so a larger total delays it. It still starts once as many objects as there are
 * now, and two million more, have survived a younger collection. gc.get_threshold() and gc.collect() are unchanged. */
static inline gd_py_collections
gd_py_hold_full_collections(PyInterpreterState *interp)
{
    struct _gc_runtime_state *gc = &interp->gc;
    gd_py_collections was = {gc, gc->long_lived_total, 4 * (gc->long_lived_total + 2000000)};
    gc->long_lived_total = was.held;
    return was;
}

/* Undoes gd_py_hold_full_collections. If a full collection ran meanwhile, it counted the objects itself, and its
 * total stays. */
static inline void
gd_py_release_full_collections(gd_py_collections was)
{
    if (was.collector->long_lived_total == was.held) {
        was.collector->long_lived_total = was.total;
    }
}

/* Reports whether Python code can change the attributes of the class: a class statement made it, or a C library that
 * did not protect it. Some C types of the standard library are static in one version and protected heap types in the
 * next. */
static inline int
gd_py_class_may_change(const PyTypeObject *type)
{
    return (type->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_IMMUTABLETYPE)) == Py_TPFLAGS_HEAPTYPE;
}

/* Returns the code that the frame object runs or ran, borrowed. */
static inline PyCodeObject *
gd_py_frame_code_of(PyFrameObject *frame)
{
    return gd_py_code_run_by(frame->f_frame);
}

/* Returns the frame object of the running Python function, a new reference; NULL if none has been created. */
static inline PyObject *
gd_py_running_frame(PyThreadState *tstate)
{
    _PyInterpreterFrame *frame = gd_py_current_frame(tstate);
    return frame != NULL ? Py_XNewRef((PyObject *)frame->frame_obj) : NULL;
}

/* Reports whether another thread of the interpreter is inside a Python frame. */
static inline int
gd_py_others_run(PyThreadState *tstate)
{
    for (PyThreadState *t = PyInterpreterState_ThreadHead(tstate->interp); t != NULL; t = PyThreadState_Next(t)) {
        if (t != tstate && gd_py_current_frame(t) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* Returns the value of the i-th variable of a frame, read from the variable's cell if it has one; borrowed, NULL if
 * the variable is unbound. */
static inline PyObject *
gd_py_frame_value(PyFrameObject *frame, int i)
{
    PyObject *value = gd_py_slot_object(frame->f_frame->localsplus[i]);
    return value != NULL && PyCell_Check(value) ? PyCell_GET(value) : value;
}

/* Returns the frame that called this one, skipping incomplete frames; NULL if no frame did. */
static inline _PyInterpreterFrame *
gd_py_caller(const _PyInterpreterFrame *frame)
{
    _PyInterpreterFrame *back = frame->previous;
    while (back != NULL && _PyFrame_IsIncomplete(back)) {
        back = back->previous;
    }
    return back;
}

/* Returns the current eval-frame function; never NULL. */
static inline gd_py_eval_function
gd_py_get_eval(PyThreadState *tstate)
{
    gd_py_eval_function f = tstate->interp->eval_frame;
    return f != NULL ? f : _PyEval_EvalFrameDefault;
}

/* Does what _PyInterpreterState_SetEvalFrameFunc in Python/pystate.c does: stores the default function as
 * NULL. Specialized calls test for NULL before they push a frame without a C call. */
static inline void
gd_py_set_eval(PyThreadState *tstate, gd_py_eval_function f)
{
    tstate->interp->eval_frame = f == _PyEval_EvalFrameDefault ? NULL : f;
}

/* Reports whether the dict is as PyDict_New made it: empty, with the table that all empty dicts share,
 * untracked by the collector. */
static inline int
gd_dict_is_fresh(PyObject *dict)
{
    PyDictObject *mp = (PyDictObject *)dict;
    return mp->ma_used == 0 && mp->ma_values == NULL && mp->ma_keys->dk_log2_size == 0
           && !_PyObject_GC_IS_TRACKED(dict);
}

/* The parts of a code object, as CPython objects; all borrowed. */
typedef struct {
    PyObject *name, *qualname, *filename;       /* str */
    PyObject *code, *linetable, *exceptiontable; /* bytes */
    PyObject *consts, *names;                   /* tuples */
    PyObject *localsplusnames, *localspluskinds; /* tuple of str, bytes */
    int flags, firstlineno, argcount, posonlyargcount, kwonlyargcount, stacksize;
} gd_py_code_parts;

/* Returns a new code object, or NULL with an exception set if the parts do not fit together. */
PyObject *gd_py_code_new(const gd_py_code_parts *parts);

/* Reads fields of a code object that have no public accessor. The results are borrowed from code. */
void gd_py_code_tables(PyCodeObject *code, PyObject **linetable, PyObject **exceptiontable, PyObject **localsplusnames,
                       PyObject **localspluskinds);

/* Reports whether the class has a version tag. A tag identifies one state of the class and its bases: no other
 * class or state ever has it. */
static inline int
gd_py_type_has_version(const PyTypeObject *type)
{
    /* 3.13 no longer sets the flag. */
    return (PY_VERSION_HEX >= 0x030D0000 || type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) && type->tp_version_tag != 0;
}

/* Does the same, after giving versions to a class that CPython has stopped giving any. From 3.13 on, it does so after
 * 1,000 changes of the class or a base, and torch.fx changes torch.nn.Module for each graph that it traces. */
int gd_py_type_gets_version(PyTypeObject *type);

/* Return the places of a function's fields that later versions have added. Such a field is NULL in older ones. */
static inline PyObject *const *
gd_py_type_params(const PyFunctionObject *f)
{
#if PY_VERSION_HEX >= 0x030C0000
    return &f->func_typeparams;
#else
    static PyObject *const absent = NULL;
    (void)f;
    return &absent;
#endif
}

static inline PyObject *const *
gd_py_annotate(const PyFunctionObject *f)
{
#if PY_VERSION_HEX >= 0x030E0000
    return &f->func_annotate;
#else
    static PyObject *const absent = NULL;
    (void)f;
    return &absent;
#endif
}

#endif
