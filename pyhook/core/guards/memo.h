/* The memo of a guard program: what of it need not be run again while nothing it read has changed.
 *
 * Most nodes of a module's program read objects that stay as they are from call to call: the module tree, globals,
 * classes, functions. After the program held, gd_memo_learn takes down each word of memory these nodes depended on (a
 * dict's version tag, a class's version, a pointer, a length) as a pair {address, value}. While every word has its
 * value, those nodes would hold again and fetch the same objects: only the others are run. Comparing a word takes 0.5
 * to 1 ns, a node 2 to 4.
 *
 *   roots    registers filled by the caller that must hold the object they held
 *   words    in the order the program read them: an address lies in an object that the roots and words before it prove
 *            alive
 *   values   registers that the nodes left over and the transformed function read, with the object each holds
 *   nodes    what is left over, in the program's order
 *
 * A memo never fails by itself. Where a word differs the whole program runs; if it holds, a new memo is taken down.
 * What keeps changing (a slot that holds another object on each call, a dict with a counter in it) is counted per
 * register, and after GD_MEMO_STALE_MAX times nothing is derived from that register any more.
 */
#ifndef GD_GUARD_MEMO_H
#define GD_GUARD_MEMO_H

#include "guards/guarded_code.h"

/* A word of any object's: what the compiler takes for another type may lie there. */
typedef uint64_t __attribute__((may_alias)) gd_word;

typedef struct {
    const gd_word *at;
    uint64_t want;
} gd_memo_word;

typedef struct {
    uint32_t reg;
    PyObject *value; /* borrowed; alive when roots and words hold */
} gd_memo_value;

typedef struct gd_guard_memo {
    uint32_t nroots, nwords, nvalues, nnodes;
    uint64_t born; /* the entry's hits when this was taken down */
    gd_memo_value *roots;
    gd_memo_word *words;
    uint32_t *readers; /* per word: register whose node read it, to blame when it differs */
    gd_memo_value *values;
    gd_guard_node *nodes;
    uint32_t *index; /* of each node in the program */
} gd_guard_memo;

/* Successes of the whole program before a memo is taken down: entries that serve once or twice pay nothing. */
#define GD_MEMO_WAIT 2
#define GD_MEMO_STALE_MAX 3
/* A memo that served this many calls was worth its making: its end counts against nobody. */
#define GD_MEMO_WORTH 256

/* Whether roots and words hold; values are in regs then. regs as for gd_guard_eval. */
static inline int
gd_memo_holds(const gd_guard_memo *m, PyObject **regs)
{
    for (uint32_t i = 0; i < m->nroots; i++) {
        if (regs[m->roots[i].reg] != m->roots[i].value) {
            return 0;
        }
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

/* After the whole program held on regs, in one sweep that called no Python: drops a memo that did not hold, and takes
 * down a new one when it is time. Runs no user code, raises nothing; without memory there is no memo. */
void gd_memo_learn(gd_GuardedCode *e, PyObject **regs);

/* Sets up e->memo_wait of an entry just made: whether its program may have a memo. */
void gd_memo_prepare(gd_GuardedCode *e);

/* Frees what belongs to the memo. */
void gd_memo_drop(gd_GuardedCode *e);

/* Adds guard_memo() to the module. 0 or -1 */
int gd_guard_memo_init(PyObject *module);

#endif
