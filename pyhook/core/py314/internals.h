/* CPython 3.14: its internal headers, and facts about them. Included by pycompat.h only. */
#ifndef GD_PY314_INTERNALS_H
#define GD_PY314_INTERNALS_H

/* The internal headers require this macro. It is defined after Python.h on purpose: defined earlier, it would
 * change what the public headers declare. */
#ifndef Py_BUILD_CORE
#    define Py_BUILD_CORE 1
#    define GD_DEFINED_PY_BUILD_CORE
#endif
/* The public headers define these macros differently from the internal ones. */
#undef _PyGC_FINALIZED
/* The current thread's state is read by a function: the variable that holds it is not exported. */
#ifndef Py_BUILD_CORE_MODULE
#    define Py_BUILD_CORE_MODULE 1
#    define GD_DEFINED_PY_BUILD_CORE_MODULE
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter" /* in functions of the headers */
#include <internal/pycore_call.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interpframe.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_setobject.h>
#pragma GCC diagnostic pop
#ifdef GD_DEFINED_PY_BUILD_CORE
#    undef Py_BUILD_CORE
#    undef GD_DEFINED_PY_BUILD_CORE
#endif
#ifdef GD_DEFINED_PY_BUILD_CORE_MODULE
#    undef Py_BUILD_CORE_MODULE
#    undef GD_DEFINED_PY_BUILD_CORE_MODULE
#endif
#include <opcode.h>
/* opcode.h of 3.14 has the numbers from opcode_ids.h, and no longer what sys.monitoring puts in their place. */

#ifdef Py_GIL_DISABLED
#    error "godynamo does not serve free-threaded builds; see docs/porting.md"
#endif

#ifdef Py_STACKREF_DEBUG
#    error "godynamo does not serve builds that count stack references; see docs/porting.md"
#endif

typedef _PyStackRef gd_py_slot;

/* Returns the slot's object, borrowed; NULL if the slot is empty. A reference may be tagged: the frame does not own the
 * object, which another frame, or immortality, keeps alive. */
static inline PyObject *
gd_py_slot_object(gd_py_slot slot)
{
    return PyStackRef_AsPyObjectBorrow(slot);
}

/* Returns the object to which a frame's field refers, borrowed. */
#define gd_py_reference_object(reference) PyStackRef_AsPyObjectBorrow(reference)

/* Returns a slot's value that owns a reference to the object. */
#define gd_py_slot_new(object) PyStackRef_FromPyObjectNew(object)

/* Releases a slot's or field's object, if there is one. Steals the reference. */
static inline void
gd_py_slot_release(gd_py_slot slot)
{
    PyStackRef_XCLOSE(slot);
}

/* Whether a frame that ends releases its last slot first. */
#define GD_PY_CLEARS_BACKWARD 1

/* Returns the number of slots of a frame that are in use. */
#define gd_py_frame_height(frame) ((frame)->stackpointer - (frame)->localsplus)

/* Puts an object into a slot, and then releases the one that it had. Takes over the reference. */
static inline void
gd_py_slot_set(gd_py_slot *slot, PyObject *value)
{
    gd_py_slot had = *slot;
    *slot = value != NULL ? PyStackRef_FromPyObjectSteal(value) : PyStackRef_NULL;
    PyStackRef_XCLOSE(had);
}

/* Copies the objects of n slots, borrowed. */
static inline void
gd_py_slots_read(PyObject **out, const gd_py_slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = PyStackRef_AsPyObjectBorrow(slots[i]);
    }
}

#include "pycommon/calls.h"
#include "pycommon/monitored.h"

/* 3.14 limits recursion in C by the stack's size, not by a number of calls. */
#define gd_py_take_c_unit(tstate, units) ((void)(tstate), (void)(units))
#define gd_py_fit_c_units(tstate, bytes) ((void)(tstate), (void)(bytes), 0)

/* Releases the code that a frame runs. */
#define gd_py_release_code(frame) gd_py_slot_release((frame)->f_executable)

/* The eval loop, as an eval-frame function. Returns a new reference, or NULL with an exception set. */
static inline PyObject *
gd_py_eval_default(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    return _PyEval_EvalFrameDefault(tstate, frame, throwflag);
}

/* Calls a Python function where CPython would call it without using C stack. Returns a new reference, or NULL with an
 * exception set. */
static inline PyObject *
gd_py_call_function(PyThreadState *Py_UNUSED(tstate), vectorcallfunc call, PyObject *function, PyObject *const *args,
                    size_t nargsf, PyObject *kwnames)
{
    return call(function, args, nargsf, kwnames);
}

/* Pushes the frame of a function. The slots from n on are empty; the caller fills the others. The thread has space for
 * it. */
#define gd_py_push_function(tstate, function, n) \
    _PyFrame_PushUnchecked(tstate, PyStackRef_FromPyObjectNew(function), n, NULL)

#include "pycommon/push_frame.h"

/* Returns the code that the frame runs, borrowed. Frames of the interpreter itself have None in its place; the hook
 * sees none of them, and gd_py_caller skips them. */
static inline PyCodeObject *
gd_py_code_run_by(const _PyInterpreterFrame *frame)
{
    return (PyCodeObject *)PyStackRef_AsPyObjectBorrow(frame->f_executable);
}

#include "pycommon/instr_ptr.h"

/* Where _ma_watcher_tag has the version that dict_versions.c gives a dict; 0 if it gives none. */
#define GD_DICT_VERSION_SHIFT DICT_UNIQUE_ID_SHIFT

/* Prepares versions of dicts. Returns 0, or -1 with an exception set. */
int gd_dict_versions_init(void);

/* Begins to give a dict versions. Returns 0 if it cannot have any. Raises nothing. */
int gd_dict_start_versions(PyObject *dict);

static inline int
gd_dict_has_version(PyObject *dict)
{
    return ((PyDictObject *)dict)->_ma_watcher_tag >> GD_DICT_VERSION_SHIFT != 0;
}

/* Reports whether the dict has a new version after every change, from now on. */
static inline int
gd_dict_is_tagged(PyObject *dict)
{
    return GD_LIKELY(gd_dict_has_version(dict)) || gd_dict_start_versions(dict);
}

/* Returns the version of the dict's current state, or a new number if it has no versions. */
static inline uint64_t
gd_dict_version(PyObject *dict)
{
    return gd_dict_is_tagged(dict) ? ((PyDictObject *)dict)->_ma_watcher_tag >> GD_DICT_VERSION_SHIFT
                                   : gd_dict_no_tag();
}

/* Returns the address of the version of a dict that has one. */
static inline const void *
gd_dict_version_place(PyObject *dict)
{
    return &((PyDictObject *)dict)->_ma_watcher_tag;
}

#include "pycommon/internals.h"
#include "pycommon/opcodes.h"

#endif
