/* The memo of a guard program. It lets a call skip nodes while nothing that they read has changed.
 *
 * Most nodes of a module's program read objects that stay the same from call to call: the module tree,
 * globals, classes, functions. After the program has held, gd_memo_learn records each word of memory these
 * nodes depend on (a dict's version tag, a class's version, a pointer, a length) as a pair {address, value}.
 * While every word has the recorded value, those nodes would hold again and fetch the same objects, so only
 * the other nodes run. Comparing a word takes 0.5 to 1 ns, running a node 2 to 4 ns.
 *
 *   roots    registers that the caller fills and that must still hold the same object
 *   words    in the order in which the program read them. Each address is in an object that is proved alive by the
 *            roots and the previous words
 *   values   registers that the remaining nodes and the transformed function read, with the object each holds
 *   nodes    the remaining nodes, in the program's order
 *
 * A memo never makes a program fail. If a word differs, the whole program runs; if the program holds, a new
 * memo is made. Changes (a slot that holds another object on each call, a dict with a counter in it) are
 * counted per register. After GD_MEMO_STALE_MAX changes, later memos do not depend on that register.
 */
#ifndef GD_GUARD_MEMO_H
#define GD_GUARD_MEMO_H

#include "guards/guarded_code.h"

/* A word of any object; it may alias an object of another type. */
typedef uint64_t __attribute__((may_alias)) gd_word;

typedef struct {
    const gd_word *at;
    uint64_t want;
} gd_memo_word;

typedef struct {
    uint32_t reg;
    PyObject *value; /* borrowed; alive while roots and words have the recorded values */
} gd_memo_value;

typedef struct gd_guard_memo {
    uint32_t nroots, nwords, nvalues, nnodes;
    uint64_t born; /* the entry's hits when the memo was made */
    gd_memo_value *roots;
    gd_memo_word *words;
    /* per word: the register whose node read the word; if the word differs, a change of that register is counted */
    uint32_t *readers;
    gd_memo_value *values;
    gd_guard_node *nodes;
    uint32_t *index; /* index of each node in the whole program */
} gd_guard_memo;

/* The whole program holds this many times before a memo is made, so an entry that serves once or twice
 * pays nothing. */
#define GD_MEMO_WAIT 2
#define GD_MEMO_STALE_MAX 3
/* A memo that served this many calls has paid for itself: its end is not counted as a change. */
#define GD_MEMO_WORTH 256

/* Reports whether the caller's registers, laid out as for gd_guard_eval, hold the recorded objects. */
static inline int
gd_memo_roots_hold(const gd_guard_memo *m, PyObject **regs)
{
    for (uint32_t i = 0; i < m->nroots; i++) {
        if (regs[m->roots[i].reg] != m->roots[i].value) {
            return 0;
        }
    }
    return 1;
}

/* Reports whether all roots and words still have the recorded values. If so, stores the memo's values in regs. */
static inline int
gd_memo_holds(const gd_guard_memo *m, PyObject **regs)
{
    if (!gd_memo_roots_hold(m, regs)) {
        return 0;
    }
    for (const gd_memo_word *w = m->words, *end = w + m->nwords; w < end; w++) {
        if (*w->at != w->want) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < m->nvalues; i++) {
        regs[m->values[i].reg] = m->values[i].value;
    }
    return 1;
}

/* Drops a memo that did not hold, and makes a new one when it is time. Must be called after the whole
 * program held on regs in one run that called no Python. Runs no user code and raises nothing; if memory is
 * out, no memo is made. */
void gd_memo_learn(gd_GuardedCode *e, PyObject **regs);

/* Sets e->memo_wait of a new entry, which decides whether its program may have a memo. */
void gd_memo_prepare(gd_GuardedCode *e);

/* Frees the memo and the counts of changes. */
void gd_memo_drop(gd_GuardedCode *e);

/* Adds guard_memo() and guard_forget() to the module. Returns 0, or -1 with an exception set. */
int gd_guard_memo_init(PyObject *module);

#endif
