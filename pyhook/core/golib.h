/* The contract between the C core (`_C`) and the Go library: only flat structs and two function tables.
 *
 * Both sides are compiled from this header. `_C` opens libgodynamo.so at the first miss, passes it a gd_core_api
 * and receives a gd_golib_api. Nothing here needs libtorch; PyObject is the only CPython type named.
 *
 * Ownership words used below: borrowed (the callee must not release it), new (the receiver must release it), stolen
 * (the callee releases it, also on failure).
 */
#ifndef GD_GOLIB_H
#define GD_GOLIB_H

#include <stddef.h>
#include <stdint.h>

#include "guards/ops_gen.h"

#ifndef Py_PYTHON_H
typedef struct _object PyObject;
#endif

#define GD_ABI_VERSION 7

/* ---- guard programs ------------------------------------------------------------------------------------------------
 * A program is an array of nodes, run in order over an array of registers that hold borrowed references.
 * Registers 0 .. nslots-1 are the frame's slots (see gd_request), register nslots is the globals dict, and nslots+1 the
 * builtins dict. An access node reads register `src` and writes register `dst`; a check node checks register `src`.
 * The opcodes are generated from guards/kinds.table into guards/ops_gen.h. */
typedef struct {
    uint8_t op;    /* GD_OP_*, guards/ops_gen.h */
    uint8_t flags; /* per op */
    uint16_t reserved;
    uint32_t dst;  /* register written by an access node */
    uint32_t src;  /* register read */
    uint32_t part; /* index of the text part this node belongs to: the recompile reason if the node fails */
    uint32_t a;    /* operand: constant index, position, first tensor check, ... (per op) */
    uint32_t b;    /* second operand: index of an inline cache, count, ... (per op) */
} gd_node_spec;

typedef struct {
    uint32_t reg;
    uint16_t fields; /* GD_TENSOR_*, guards/ops_gen.h */
    uint16_t reserved;
    uint64_t static_sizes;   /* bit i: size of dimension i is compared */
    uint64_t static_strides; /* bit i: stride of dimension i is compared */
    PyObject *example;       /* borrowed; its metadata is read when the entry is made, and no reference is kept */
} gd_tensor_spec;

/* One step of a condition on sizes and ints (SHAPE_ENV), which computes with int64 on a stack. A condition ends with
 * its only relation. */
typedef struct {
    uint8_t op;  /* GD_SIZE_*, guards/ops_gen.h */
    uint8_t dim; /* SIZE, STRIDE: the dimension */
    uint16_t reserved;
    uint32_t reg; /* SIZE, STRIDE, INT: register of the tensor or the int */
    int64_t n;    /* CONST: the constant; SIZE, STRIDE, INT: the value in the translated call, for failure texts */
} gd_size_spec;

/* How an entry keeps the objects its program names (gd_const_spec.keep). */
enum {
    GD_KEEP_STRONG = 0, /* the entry holds a reference: for immutable or immortal objects only */
    GD_KEEP_WEAK = 1,   /* a weak reference whose callback clears .valid and unlinks the entry */
    GD_KEEP_NONE = 2    /* kept alive by an owner, which an earlier node checks; only the address is compared */
};

typedef struct {
    PyObject *object; /* borrowed */
    int32_t keep;
    int32_t reserved;
} gd_const_spec;

/* One row of the traceback table: the user frames that instructions of the transformed code represent. Rows are
 * sorted by `start` (code unit index). A row covers code units start .. end-1. `chain` indexes
 * gd_entry_spec.chains. */
typedef struct {
    uint32_t start, end;
    uint32_t chain;
    /* index of another chain: the place where the user's own code raises an exception from outside (of a signal
     * handler, for example) that arrived during this instruction (calls/rerun.h). For the call of a graph, it
     * is the chain of one of the graph's operations, used if the exception does not show which operation was ended */
    uint32_t place;
    /* GD_TB_*. With GD_TB_DROP the row is for the call of a resume function, whose own entry replaces the row's entry
     * in a traceback */
    uint32_t flags;
} gd_tb_row;
enum {
    GD_TB_DROP = 1,
    GD_TB_GRAPH = 2, /* the call of a compiled graph */
    /* the user's code handles this operation's exception: if the operation raises, the user's code runs instead */
    GD_TB_PROTECTED = 4,
};

/* gd_entry_spec.flags */
enum {
    GD_ENTRY_RUN_ORIGINAL = 1, /* nothing to capture: run the user's own code */
    GD_ENTRY_NEEDS_HOOK = 2, /* calls Python code that is not inlined: install the eval-frame hook around the call */
    /* the function is the rest of a frame: it takes over the references to its arguments (calls/tail_call.h) */
    GD_ENTRY_HANDS_OVER = 8,
    /* if the function's native instruction (the one that a graph break leaves to CPython) raises, the function passes
     * the exception to a resume function, as the last argument of a tail call */
    GD_ENTRY_CATCHES = 16,
    /* with RUN_ORIGINAL: the code examines the interpreter itself. If NEEDS_HOOK is set as well, the code's callees are
     * translated only after many calls. If not, no hook is installed while the code runs */
    GD_ENTRY_WATCHES = 32,
    /* the entry's graph changes nothing outside itself. If the graph raises, the user's own code runs from its start
     * instead. Its effects and its exception, if any, are CPython's */
    GD_ENTRY_RERUN = 4,
};

typedef struct {
    /* borrowed: function made from the transformed code; NULL with RUN_ORIGINAL. Its parameters are all positional:
     * slots 0 .. nslots-1, then extra_regs in order */
    PyObject *function;
    const gd_node_spec *nodes;
    uint32_t nnodes;
    uint32_t nregs; /* slots + 2 + written registers */
    uint32_t nslots;
    uint32_t ncaches; /* inline caches the access nodes use */
    const gd_const_spec *consts;
    uint32_t nconsts;
    uint32_t ntensors;
    const gd_tensor_spec *tensors;
    const uint32_t *extra_regs; /* registers passed to `function` after the slots */
    uint32_t nextra;
    uint32_t flags;
    const gd_tb_row *tb_rows;
    uint32_t ntb_rows;
    uint32_t reserved;
    /* borrowed tuple of chains, or NULL if there are no rows. A chain is a tuple of levels (code, globals, lasti,
     * line), outermost first. The outermost level is the transformed frame itself and may have two more items. The
     * fifth lists the frame's variables, each as (index in localsplus, index of the transformed frame's variable
     * that has the value) or (index, -1, value). The sixth is the number of times that the operation's instruction runs
     * before the run that the chain represents. The number is complemented (~) if an exception from outside is raised
     * instead of running the operation again */
    PyObject *chains;
    PyObject *parts; /* borrowed tuple of str: the text parts. Joined by " and " they are the guard text */
    /* borrowed tuple: for each part the (filename, line) that installed the guard, or None */
    PyObject *part_lines;
    /* borrowed tuple, or NULL. It has a (name, chain) for each operation of the compiled graph: a traceback from
     * the graph gets the failed operation's chain (GD_TB_GRAPH). An operation may take a function that is a graph of
     * its own. Each operation of such a graph then has a (name, chain, number of levels outside the function) */
    PyObject *operations;
    PyObject *info; /* borrowed dict: the data that explain() shows */
    PyObject *orig_code; /* borrowed: the user's code object that this entry replaces */
    const gd_size_spec *sizes; /* the steps of all SHAPE_ENV nodes */
    uint32_t nsizes;
    uint32_t nkept; /* ints the entry keeps, one for each TENSOR_SIZE, TENSOR_STRIDE and ITER_NUMBER node */
} gd_entry_spec;

/* ---- code objects ------------------------------------------------------------------------------------------------ */
typedef struct {
    const char *data; /* UTF-8 (surrogatepass) or raw bytes; owned by the code object while the view is open */
    size_t len;
} gd_bytes;

typedef struct {
    gd_bytes name, qualname, filename;
    gd_bytes code; /* PyCode_GetCode: never the adaptive code */
    gd_bytes linetable, exceptiontable;
    int32_t flags, firstlineno, argcount, posonlyargcount, kwonlyargcount, stacksize;
    int32_t nconsts, nnames, nlocalsplus;
    const gd_bytes *names; /* nnames */
    const gd_bytes *localsplusnames; /* nlocalsplus */
    const uint8_t *localspluskinds; /* nlocalsplus; CO_FAST_LOCAL 0x20, CO_FAST_CELL 0x40, CO_FAST_FREE 0x80 */
    PyObject *const *consts; /* nconsts, borrowed from the code object */
    void *internal;
} gd_code_view;

typedef struct {
    gd_bytes name, qualname, filename, code, linetable, exceptiontable;
    int32_t flags, firstlineno, argcount, posonlyargcount, kwonlyargcount, stacksize;
    PyObject *consts; /* borrowed tuple */
    int32_t nnames, nlocalsplus;
    const gd_bytes *names;
    const gd_bytes *localsplusnames;
    const uint8_t *localspluskinds;
} gd_code_spec;

/* ---- tensors ----------------------------------------------------------------------------------------------------- */
typedef struct {
    int64_t sizes[5], strides[5];
    uint64_t keyset;
    int32_t ndim;
    int32_t scalar_type; /* c10::ScalarType */
    int32_t device_type, device_index;
    int32_t requires_grad, is_leaf;
} gd_tensor_view;

/* ---- a miss ------------------------------------------------------------------------------------------------------ */
enum { GD_FRAME_DIRECT = 0, GD_FRAME_HOOK = 1, GD_FRAME_RESUME = 2 };

/* A frame to translate. Its slots are the argument slots in localsplus order (positional, keyword-only, *args
 * tuple, **kwargs dict), then the cells of function.__closure__. All are borrowed and alive during the call. A
 * RESUME function takes everything as positional parameters, so some of its argument slots hold cells (see Origin
 * in bytecode/translate). */
typedef struct {
    PyObject *owner; /* the Callable, or with GD_FRAME_HOOK the Root, that owns `cache` */
    PyObject *options; /* godynamo._user.options.Options of the owner */
    PyObject *function; /* PyFunctionObject: code, globals, closure */
    PyObject *cache; /* gd_FrameCache (Python object) that will own the entry */
    PyObject *const *slots;
    uint32_t nslots;
    uint32_t nargs; /* slots that are arguments; the rest are cells */
    int32_t kind; /* GD_FRAME_* */
    int32_t nentries; /* entries this frame already has */
    PyObject *failures; /* borrowed list of str, or NULL: why each existing entry did not serve */
    /* borrowed list of tuples (entry, parts, tensors, moved), or NULL: for each entry that failed only because of
     * values, these values; see guards/varied.h. If `last` is set, entries with other failures are included */
    PyObject *varied;
    int32_t last; /* the limit allows no further entry after this one */
    int32_t reserved;
} gd_request;

enum {
    GD_OK = 0, /* entry is a new reference; the entry is added to the FrameCache */
    GD_SKIP = 1, /* this code can never be translated: mark it */
    GD_PASS = 2, /* run this one call, and everything it calls, in CPython; later calls may be translated */
    GD_RAISE = 3, /* an exception is set: a graph break with nopython, a failed backend, KeyboardInterrupt */
    GD_SKIP_HERE = 4, /* no more attempts for this callable; other frames of the code may be translatable */
    GD_LEAVE = 5 /* run this one call in CPython, but serve its callees, as GD_SKIP and GD_SKIP_HERE do */
};
typedef struct {
    int32_t status;
    int32_t reserved;
    PyObject *entry; /* new reference with GD_OK: a gd_GuardedCode */
} gd_reply;

/* The functions of the core. All need the GIL. On failure they return NULL or -1 with an exception set. */
typedef struct {
    uint32_t abi;
    uint32_t size; /* sizeof(gd_core_api) */
    int (*code_view)(PyObject *code, gd_code_view *out); /* returns 0 or -1 */
    void (*code_view_release)(gd_code_view *view);
    PyObject *(*code_new)(const gd_code_spec *spec); /* new */
    PyObject *(*entry_new)(const gd_entry_spec *spec); /* new gd_GuardedCode */
    /* Runs the entry's guard program on slots. Returns 1 if the guards hold; 0 if one fails, with *failed_node set;
     * -1 on error. */
    int (*entry_check)(PyObject *entry, PyObject *const *slots, uint32_t nslots, PyObject *globals, PyObject *builtins,
                       int32_t *failed_node);
    /* Returns a new Callable of kind RESUME around `function`, which runs the rest of a frame. It belongs to the
     * family of `owner` (same options, limit and hook extent). */
    PyObject *(*resume_new)(PyObject *owner, PyObject *function);
    /* Fills *out and returns 1. Returns 0 if the object is not a plain dense tensor with a known layout: read
     * the tensor's Python attributes instead. Never raises. */
    int (*tensor_view)(PyObject *tensor, gd_tensor_view *out);
    /* Returns the function that a Callable wraps, borrowed, and sets *self to the bound object or NULL. Returns
     * NULL without an exception if `obj` is not a Callable. */
    PyObject *(*callable_function)(PyObject *obj, PyObject **self);
    /* Must be called after anything that may have run Python, before returning to Go. In a child forked meanwhile,
     * whose Go runtime is dead, it does not return: it jumps to the caller of translate() and abandons the frames
     * between. */
    void (*python_returned)(void);
    /* Runs the handlers of signals that have arrived. Returns 0, or -1 with an exception set. During a translation
     * signals are otherwise held back (interrupt.h). */
    int (*check_signals)(void);
    /* Reports whether the reply will be ignored: either an exception from outside has been noted, which the call
     * will raise, or memory is exhausted. */
    int (*interrupted)(void);
    /* Reports whether a mode that records or transforms operators is active. */
    int (*mode_active)(void);
    /* Reports whether a call of this exact function runs its code. It does not if a C extension has given the function
     * another C function to call. */
    int (*runs_its_code)(PyObject *function);
    /* New fields may be added at the end; check `size`. */
} gd_core_api;

/* The functions of the Go library. */
typedef struct {
    uint32_t abi;
    uint32_t size;
    int (*translate)(const gd_request *request, gd_reply *reply); /* returns 0 and fills reply */
    /* Writes the translations of a folder whose keys this process has used to the file `archive`, or stores those of
     * the archive in the folder if `store` is true. `limit` is the folder's size in bytes. Returns their number, or -1
     * with the reason in `error`, which has `size` bytes. */
    int64_t (*archive)(const char *folder, int64_t limit, const char *archive, int store, char *error, size_t size);
} gd_golib_api;

/* The only symbol that _C looks up: returns 0 and fills *out, or -1 on an ABI mismatch. */
typedef int (*gd_golib_init_fn)(const gd_core_api *core, gd_golib_api *out);
#define GD_GOLIB_INIT "gdInit"

#endif
