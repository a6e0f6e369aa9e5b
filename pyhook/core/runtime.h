/* What the whole process and each thread know: settings, modes, counters, headroom.
 *
 * Everything here is read and written under the GIL, but for the fork generation (fork.c).
 */
#ifndef GD_RUNTIME_H
#define GD_RUNTIME_H

#include "pycompat.h"

/* Counters: one row each, the name is what _C.counters() shows. Those that start with hook_ are the reasons for which
 * the eval-frame hook left a frame to CPython, in the order of its checks. */
/* clang-format off */
#define GD_COUNTERS(X) \
    X(misses) X(translations) X(translated) X(skipped) X(passed) X(given_up) X(raised) X(internal_errors) \
    X(refused) X(limit_reached) X(evicted) X(invalidated) X(unbound) X(traced) X(disabled) X(run_only) X(reentrant) \
    X(in_progress) X(torch_mode) \
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
    GD_MODE_RUN_ONLY = 1, /* what is translated serves, nothing new is translated */
    GD_MODE_DISABLED = 2  /* the user's own code runs, the hook passes everything on */
};

/* Stances of the process (godynamo.set_stance; the setting "stance"). */
enum {
    GD_STANCE_DEFAULT = 0,
    GD_STANCE_FORCE_EAGER = 1,        /* as if switched off */
    GD_STANCE_EAGER_ON_RECOMPILE = 2, /* GD_MODE_RUN_ONLY for every thread */
    GD_STANCE_FAIL_ON_RECOMPILE = 3,  /* what would be translated raises exc.RecompileError */
    GD_STANCE_EAGER_THEN_COMPILE = 4  /* the first call of a code object runs in CPython, the next is translated */
};

typedef struct {
    /* Not zero when a call may not go straight to the entries: all switched off, or some thread is in GD_MODE_DISABLED.
     * One word, so that the hot path tests one word. */
    int special;
    int fork_generation; /* how many forks lie between the first process and this one; written by the atfork handler */
    int broken; /* max_internal_errors, where the user has set it, is reached: nothing is translated any more */
    /* settings; see the table in runtime.c */
    int enabled, cache_size_limit, cache_evict, fork_reload, inner_limit, max_internal_errors, stance;
    int error_on_recompile, fail_on_recompile_limit_hit;
    int tells; /* whether each translation is told to Python's compile_start and compile_end; a setting as well */
    uint64_t counters[GD_NCOUNTERS];
    PyObject *translate_callback; /* strong or NULL: stands in for the Go library (tests, other front ends) */
} gd_runtime_state;

extern gd_runtime_state gd_runtime;

/* Whether nothing is served on any thread. */
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
    int translating; /* depth of translations and callbacks on this thread: nothing new is translated meanwhile */
    unsigned internal_errors; /* reported on this thread so far */
    int watching; /* running frames of the user's own code that look at the interpreter itself; see GD_WATCHED_CALLS */
    PyCodeObject *skip_once; /* borrowed: the next frame of this code is the user's own run on purpose */
    struct _PyInterpreterFrame *passing; /* frame handed to a foreign eval function: seen again, it goes to CPython's */
    struct gd_py_extent *extents; /* of them those entered from Python, the last one first */
    PyObject
        *graph_error; /* strong or NULL: what a compiled graph raised, on its way to the run of the user's own code */
    int holds; /* signals are held back on this thread; interrupt.h */
    int no_memory; /* a translation met MemoryError */
    PyObject *interruption; /* strong or NULL: an exception from outside that a translation met; interrupt.h */
    struct gd_rerun
        *rerun; /* the run of the user's own code in the place of transformed code that raised; calls/rerun.h */
    struct {
        PyObject *error, *place; /* strong or NULL */
        int throws;
    } raised; /* what the next gd_rerun_begin takes */
    struct gd_TailCall *tail; /* borrowed: the TailCall whose W is being called, until its references are handed over */
    struct gd_TailCall *handing; /* borrowed: its references go to the frame that starts next; see calls/tail_call.c */
    gd_py_eval_function handing_to; /* what runs that frame */
    struct gd_census *census; /* of what CPython runs, while explain() takes one on this thread; or NULL */
    struct gd_escape *escape; /* the call of the Go library that this thread is in, or NULL; fork.c */
    char *stack_low; /* lowest usable address of the C stack, once known */
    char *stack_high;
} gd_thread_state;

extern __thread gd_thread_state gd_thread;

/* The name of a GD_COUNT_*. */
const char *gd_counter_name(int counter);

/* Bytes of C stack left below the caller on this thread; PTRDIFF_MAX where the stack is not the thread's own (a
 * coroutine library's) and its end is therefore unknown. */
ptrdiff_t gd_stack_headroom(void);

/* Under this much C stack no call of ours goes deeper: what CPython needs to raise and report a RecursionError. */
#define GD_STACK_MIN (96 * 1024)
/* The least a translation starts with: Go's callbacks run Python on this stack. */
#define GD_STACK_TRANSLATE (384 * 1024)
/* Python frames below which the C stack is not looked at: CPython itself trusts every stack to this depth. */
#define GD_DEPTH_TRUSTED 900

/* Recomputes gd_runtime.special after a setting or this thread's mode changed; delta is what the mode change adds. */
void gd_update_special(int delta);

/* An absolute import, whatever frame runs: PyImport_ImportModule asks its builtins for __import__, which a program's
 * eval with builtins of its own does not have. new reference, or NULL with an exception. */
PyObject *gd_import(const char *name);

/* Reports the pending exception of a callback whose failure must not reach the user's call; clears it. */
void gd_swallow(PyObject *context);

/* Adds the functions of this file to the module: set_config, get_config, set_mode, counters, ... 0 or -1 */
int gd_runtime_init(PyObject *module);

#endif
