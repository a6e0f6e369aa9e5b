/* GuardedCode: one translation of one code object, and the guard program that decides when it applies.
 *
 * gd_entry_new (cache/entry.c) makes an entry from a gd_entry_spec. A gd_FrameCache owns it, and the garbage
 * collector sees it. The evaluator (guards/eval.c) and the call path (calls/callable_call.c,
 * calls/eval_frame.c) read it.
 */
#ifndef GD_GUARDED_CODE_H
#define GD_GUARDED_CODE_H

#include "pycompat.h"
#include "golib.h"

typedef struct {
    /* ma_version_tag of the dict when `value` was read; 0 if the cache was never filled. For the bit
     * GD_INLINE_HINT, see guards/access.h. */
    uint64_t tag;
    PyObject *value; /* borrowed from that dict: valid exactly while the tag is unchanged */
} gd_inline_cache;

/* A node in the form that the evaluator runs: a gd_node_spec packed into 16 bytes. The index of the
 * condition in the guard text to which the node belongs (its part) is in gd_GuardedCode.node_parts, which
 * is read only after a failure. */
typedef struct {
    uint32_t op : 8, src : 24;
    uint32_t flags : 8, dst : 24;
    uint32_t a, b;
} gd_guard_node;
_Static_assert(sizeof(gd_guard_node) == 16, "a node is 16 bytes");

/* A gd_size_spec in the form that the evaluator runs. */
typedef struct {
    uint32_t op : 8;
    uint32_t at : 24; /* SIZE, STRIDE: offset in bytes of the number from the start of the tensor's C++ object */
    uint32_t reg;
    int64_t n;
} gd_size_step;
_Static_assert(sizeof(gd_size_step) == 16, "a step is 16 bytes");

/* A number that conditions on sizes read, and its value when all conditions last held. While all these numbers are
 * the same, no condition is computed again. */
typedef struct {
    gd_size_step step; /* SIZE, STRIDE or INT */
    int64_t held;
} gd_size_input;

/* The int that a TENSOR_SIZE, TENSOR_STRIDE or ITER_NUMBER node returned last. A register's reference to it is borrowed
 * and must be used before the entry's program runs again: the frame of the entry's function takes a reference first. */
typedef struct {
    int64_t value;
    PyObject *object; /* strong: an exact int, or NULL */
} gd_kept_int;

/* A PY_CHECK node whose operand is a constant of the entry. It depends on no other node, so it can run before the memo
 * is compared. Then the memo is compared once, not once more for each Python call. */
typedef struct {
    uint32_t node, operand; /* indices into nodes and consts */
} gd_early_check;

/* The maximum number of values on the stack of a condition on sizes; guards/sizes.go has the same constant. */
#define GD_SIZE_STACK 32

/* A limit on registers, below the 24 bits in which a node addresses one; guards/program.go has the same
 * constant. */
#define GD_MAX_REGS (1u << 22)

typedef struct gd_GuardedCode {
    PyObject_HEAD
        /* fields of the hot path */
        char valid;                 /* cleared when an object in `weakrefs` dies or reset() runs; never set again */
    uint8_t memo_wait;          /* successful runs before a memo is made; 0: no memo is made */
    uint16_t nlate;             /* nodes after TENSORS: TENSOR_SIZE, TENSOR_STRIDE, SHAPE_ENV */
    uint32_t nslots;            /* registers 0 .. nslots-1 */
    uint32_t nregs;
    uint32_t nextra;            /* registers passed to the function after the slots, ascending */
    uint32_t nnodes;
    uint32_t flags;             /* GD_ENTRY_* */
    uint32_t nearly;
    struct gd_guard_memo *memo; /* guards/memo.h; NULL: the whole program runs */
    gd_guard_node *nodes;
    gd_inline_cache *caches;
    PyObject **consts;          /* constants compared by address may be dead: dereference only those in `strong` */
    Py_hash_t *hashes;          /* hashes of the consts that are keys or names */
    struct gd_tensor_check *tensors; /* guards/tensor.h */
    uint32_t *extra_regs;
    gd_size_step *sizes;        /* the steps of the SHAPE_ENV nodes */
    gd_size_input *inputs;      /* what these steps read; NULL if comparing it would save too little */
    gd_kept_int *kept;
    gd_early_check *early;      /* the PY_CHECK nodes on constants, in the program's order */
    PyObject *function;         /* strong; NULL with GD_ENTRY_RUN_ORIGINAL */
    vectorcallfunc vectorcall;  /* vectorcall of `function` */
    PyObject *exact;            /* strong: code of `function` if gd_py_call_exact may run it, or NULL */
    uint64_t hits;
    /* the entry that served the call after this entry's last one; the pointer may be stale, so it is only compared */
    struct gd_GuardedCode *follower;
    /* the other fields */
    PyObject *strong;           /* tuple of the consts that are kept by strong reference */
    PyObject *weakrefs;         /* tuple of weak references whose callback invalidates the entry */
    PyObject *chains, *operations, *parts, *part_lines, *info, *orig_code;
    gd_tb_row *tb_rows;
    uint32_t *node_parts; /* per node: the index of its part */
    uint32_t ntb_rows, nconsts, ntensors, ncaches, nkept, ninputs;
    char inputs_held;     /* the inputs have values for which the conditions held */
    /* per register: how many memos ended because its object changed; NULL until the first memo */
    uint8_t *memo_stale;
    /* the objects in the slots of the call the entry was made for, or NULL; only compared, since they may be dead */
    uintptr_t *made_for;
    uint64_t checked; /* hits at the last check of config.memory_mib (cache/bound.c) */
    size_t bytes; /* its size, or 0 until it is needed; gd_entry_bytes */
    void *torch_state; /* snapshot that the TENSORS node compares; torch/torch_state.c */
    PyObject *weakreflist;
} gd_GuardedCode;

extern PyTypeObject gd_GuardedCode_Type;

/* Marks the entry invalid. The FrameCache removes the entry when it next drops its invalid entries. */
static inline void
gd_entry_invalidate(gd_GuardedCode *e)
{
    e->valid = 0;
}

#endif
