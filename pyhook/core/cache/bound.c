/* See bound.h. The bound is checked only when an entry is added, so hits cost nothing: each entry counts its calls
 * anyway, and the count at the last check shows whether it has been used since. */
#include "cache/bound.h"

#include <stdlib.h>

#include "cache/frame_cache.h"
#include "guards/tensor.h"
#include "runtime.h"

/* ---- the size of an entry ---- */

/* How deep tables of the entry are nested: info is a dict of tuples of texts. */
enum { DEPTH = 6 };

/* Returns the bytes of an object of the entry's tables and of its items. Other objects count as nothing: they belong
 * to the program. */
static size_t
held(PyObject *o, int depth)
{
    if (o == NULL || depth == 0) {
        return 0;
    }
    size_t bytes = (size_t)Py_TYPE(o)->tp_basicsize;
    if (PyUnicode_CheckExact(o)) {
        return bytes + (size_t)PyUnicode_GET_LENGTH(o) * PyUnicode_KIND(o);
    }
    if (PyBytes_CheckExact(o)) {
        return bytes + (size_t)PyBytes_GET_SIZE(o);
    }
    if (PyTuple_CheckExact(o)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
            bytes += sizeof(PyObject *) + held(PyTuple_GET_ITEM(o, i), depth - 1);
        }
        return bytes;
    }
    if (PyDict_CheckExact(o)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(o, &at, &key, &value)) {
            bytes += 3 * sizeof(PyObject *) + held(key, depth - 1) + held(value, depth - 1);
        }
        return bytes;
    }
    if (PyCode_Check(o)) {
        PyCodeObject *code = (PyCodeObject *)o;
        bytes += (size_t)Py_SIZE(code) * 2;
        return bytes + held(code->co_consts, depth - 1) + held(code->co_names, depth - 1)
               + held(code->co_linetable, depth - 1) + held(code->co_exceptiontable, depth - 1);
    }
    if (PyFunction_Check(o)) {
        return bytes + held(PyFunction_GET_CODE(o), depth - 1) + held(PyFunction_GET_CLOSURE(o), depth - 1);
    }
    return 0;
}

size_t
gd_entry_bytes(gd_GuardedCode *e)
{
    if (e->bytes == 0) {
        PyObject *tables[] = {e->function,   e->strong, e->weakrefs, e->chains,
                              e->operations, e->parts,  e->info,     e->part_lines};
        size_t bytes = sizeof(*e) + e->nnodes * (sizeof(*e->nodes) + sizeof(*e->node_parts))
                       + e->ncaches * sizeof(*e->caches) + e->nconsts * (sizeof(*e->consts) + sizeof(*e->hashes))
                       + e->ntensors * sizeof(*e->tensors) + e->nkept * sizeof(*e->kept)
                       + e->ninputs * sizeof(*e->inputs) + e->nearly * sizeof(*e->early)
                       + e->ntb_rows * sizeof(*e->tb_rows);
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
            bytes += held(tables[i], DEPTH);
        }
        e->bytes = bytes;
    }
    return e->bytes;
}

/* ---- dropping entries ---- */

typedef struct {
    gd_FrameCache *cache; /* strong */
    gd_GuardedCode *entry; /* strong */
    uint64_t calls; /* since the last check */
    size_t place; /* the process's caches are listed newest first, and so are the entries of a cache */
} candidate;

/* Sorts by calls, the fewest first, and then by age, the oldest first. */
static int
by_calls(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->calls != y->calls) {
        return x->calls < y->calls ? -1 : 1;
    }
    return x->place > y->place ? -1 : 1;
}

/* Returns the number of entries and adds up their bytes. */
static size_t
count(size_t *bytes)
{
    size_t n = 0;
    for (gd_FrameCache *c = gd_frame_caches(); c != NULL; c = c->next) {
        for (uint32_t i = 0; i < c->nentries; i++) {
            *bytes += gd_entry_bytes(c->entries[i]);
            n++;
        }
    }
    return n;
}

void
gd_bound_apply(gd_GuardedCode *latest)
{
    size_t bound = (size_t)gd_runtime.memory_mib << 20, bytes = 0;
    if (bound == 0) {
        return;
    }
    size_t n = count(&bytes);
    if (bytes <= bound) {
        return;
    }
    candidate *all = PyMem_Calloc(n, sizeof(*all));
    if (all == NULL) {
        return;
    }
    n = 0;
    for (gd_FrameCache *c = gd_frame_caches(); c != NULL; c = c->next) {
        for (uint32_t i = 0; i < c->nentries; i++) {
            gd_GuardedCode *e = c->entries[i];
            all[n] =
                (candidate){(gd_FrameCache *)Py_NewRef(c), (gd_GuardedCode *)Py_NewRef(e), e->hits - e->checked, n};
            n++;
            e->checked = e->hits;
        }
    }
    qsort(all, n, sizeof(*all), by_calls);
    for (size_t i = 0; i < n && bytes > bound; i++) {
        if (all[i].entry != latest && gd_frame_cache_drop(all[i].cache, all[i].entry)) {
            bytes -= gd_entry_bytes(all[i].entry);
        }
    }
    for (size_t i = 0; i < n; i++) {
        Py_DECREF(all[i].entry);
        Py_DECREF(all[i].cache);
    }
    PyMem_Free(all);
}
