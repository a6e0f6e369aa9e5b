/* State of the process and of each thread: settings, modes, counters, headroom (the C stack that is left).
 *
 * All of it is read and written under the GIL, except the fork generation (fork.c).
 */
#ifndef GD_RUNTIME_H
#define GD_RUNTIME_H

#include "pycompat.h"

/* Counters, by the names that _C.counters() shows. Those from hook_no_extent on are the reasons why the
 * eval-frame hook left a frame to CPython; so are `watched`, `cold` and `replaced_builtins`. */
/* clang-format off */
#define GD_COUNTERS(X) \
    X(misses) X(translations) X(translated) X(skipped) X(passed) X(given_up) X(raised) X(internal_errors) \
    X(refused) X(limit_reached) X(evicted) X(invalidated) X(unbound) X(traced) X(disabled) X(run_only) X(reentrant) \
    X(in_progress) X(torch_mode) X(replaced_builtins) \
    X(watched) X(cold) X(no_headroom) X(no_golib) X(fresh_guard_failed) X(golib_loads) X(golib_calls) X(forked_inside) \
    X(hook_installs) X(hook_frames) X(hook_served) X(hook_no_extent) X(hook_throw) X(hook_mode) X(hook_traced) \
    X(hook_generator) X(hook_not_function) X(hook_started) X(hook_own_frame) X(hook_ours) X(hook_skip) \
    X(hook_inner_limit) X(hook_no_headroom) X(hook_original)
/* clang-format on */

enum {
#define X(name) GD_COUNT_##name,
    GD_COUNTERS(X)
#undef X
        GD_NCOUNTERS
};

/* Modes of a thread (set_mode). */
enum {
    GD_MODE_NORMAL = 0,
    GD_MODE_RUN_ONLY = 1, /* existing entries serve, nothing new is translated */
    GD_MODE_DISABLED = 2  /* the user's own code runs, and the hook passes all frames on */
};

/* Stances of the process (godynamo.set_stance; the setting "stance"). */
enum {
    GD_STANCE_DEFAULT = 0,
    GD_STANCE_FORCE_EAGER = 1,        /* as if the setting `enabled` were 0 */
    GD_STANCE_EAGER_ON_RECOMPILE = 2, /* GD_MODE_RUN_ONLY for every thread */
    GD_STANCE_FAIL_ON_RECOMPILE = 3,  /* a call that needs a translation raises exc.RecompileError */
    GD_STANCE_EAGER_THEN_COMPILE = 4  /* the first call of a code object runs in CPython, the next is translated */
};

typedef struct {
    /* Nonzero if a call must not go straight to the entries: everything is switched off, or some thread is in
     * GD_MODE_DISABLED. It is one word, so that the hot path has one test. */
    int special;
    int fork_generation; /* number of forks from the first process to this one; incremented by the atfork handler */
    int broken; /* the limit max_internal_errors, if set, is reached: nothing more is translated */
    /* settings; see the table in runtime.c */
    int enabled, cache_size_limit, cache_evict, fork_reload, inner_limit, max_internal_errors, stance;
    int error_on_recompile, fail_on_recompile_limit_hit, memory_mib;
    int tells; /* whether each translation calls Python's compile_start and compile_end; also a setting */
    uint64_t counters[GD_NCOUNTERS];
    PyObject *translate_callback; /* strong or NULL: replaces the Go library (tests, other front ends) */
} gd_runtime_state;

extern gd_runtime_state gd_runtime;

/* Reports whether nothing is served on any thread. */
static inline int
gd_switched_off(void)
{
    return !gd_runtime.enabled || gd_runtime.stance == GD_STANCE_FORCE_EAGER;
}

#define GD_COUNT(name) ((void)gd_runtime.counters[GD_COUNT_##name]++)

struct gd_extent;
struct gd_py_extent;

typedef struct {
    struct gd_extent *extent; /* innermost extent in force on this thread, or NULL */
    int mode; /* GD_MODE_* */
    int translating; /* depth of translations and callbacks on this thread; while nonzero, nothing is translated */
    unsigned internal_errors; /* number of internal errors reported on this thread so far */
    int watching; /* running frames of user code that examines the interpreter itself; see GD_WATCHED_CALLS */
    PyCodeObject *skip_once; /* borrowed: the next frame of this code runs in CPython */
    /* the frame passed to a foreign eval function; CPython runs it if it comes back */
    struct _PyInterpreterFrame *passing;
    struct gd_py_extent *extents; /* extents of this thread entered from Python, the last one first */
    int holds_collections; /* 1 while this thread translates and full garbage collections wait for it */
    int hides_operators; /* depth of translations that hide this thread's operators; torch/torch_observers.h */
    PyObject *graph_error; /* strong or NULL: a compiled graph's exception, reported once the user's code has run */
    int holds; /* signals are held back on this thread; see interrupt.h */
    int no_memory; /* a translation ran out of memory */
    PyObject *interruption; /* strong or NULL: an exception from outside that a translation noted; interrupt.h */
    struct gd_rerun *rerun; /* the current run of user code in place of transformed code that raised; calls/rerun.h */
    struct {
        PyObject *error, *place; /* strong or NULL */
        int throws;
    } raised; /* input of the next gd_rerun_begin */
    struct gd_TailCall *tail; /* borrowed: the TailCall being run, until a frame takes over its references */
    /* borrowed: the TailCall whose references go to the next frame to start; see calls/tail_call.c */
    struct gd_TailCall *handing;
    gd_py_eval_function handing_to; /* the eval function for that frame */
    struct gd_census *census; /* the census that explain() takes on this thread, or NULL */
    struct gd_escape *escape; /* the call of the Go library in progress on this thread, or NULL; fork.c */
    char *stack_low; /* lowest usable address of the C stack; NULL until determined */
    char *stack_high;
} gd_thread_state;

extern __thread gd_thread_state gd_thread;

/* Returns the name of a GD_COUNT_*. */
const char *gd_counter_name(int counter);

/* Returns the bytes of C stack left below the caller on this thread. Returns PTRDIFF_MAX if the end of the stack is
 * unknown, because it is not the thread's own but a coroutine library's, for example. */
ptrdiff_t gd_stack_headroom(void);

/* With less C stack than this, our calls go no deeper, since CPython needs the rest to raise and report a
 * RecursionError. */
#define GD_STACK_MIN (96 * 1024)
/* The minimum C stack for a translation, since Go's callbacks run Python on it. */
#define GD_STACK_TRANSLATE (384 * 1024)
/* Up to this many Python frames, CPython itself assumes that the C stack suffices. Only beyond it is the stack
 * checked. */
#define GD_DEPTH_TRUSTED 900

/* Recomputes gd_runtime.special after a change of a setting or of this thread's mode. delta: change in the number
 * of disabled threads. */
void gd_update_special(int delta);

/* Imports a module by its absolute name, whatever frame runs. PyImport_ImportModule takes `__import__` from the
 * running frame's builtins, which may lack it in an eval() with custom builtins. Returns a new reference, or NULL
 * with an exception set. */
PyObject *gd_import(const char *name);

/* Reports the pending exception of a callback as unraisable and clears it, since the failure must not reach the
 * user's call. */
void gd_swallow(PyObject *context);

/* Adds the functions of this file to the module: set_config, get_config, set_mode, counters, ... Returns 0 or -1. */
int gd_runtime_init(PyObject *module);

#endif
