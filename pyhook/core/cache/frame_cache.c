/* FrameCache and Root: see cache/frame_cache.h. The functions that Python calls return new references, or
 * NULL with an exception set. */
#include "cache/frame_cache.h"

#include <stddef.h>
#include <structmember.h>

#include "runtime.h"

static gd_FrameCache *all_caches; /* every live FrameCache */

/* ---- FrameCache ---- */

gd_FrameCache *
gd_frame_cache_new(PyCodeObject *code, Py_ssize_t ncells, PyObject *globals, void *owner)
{
    gd_FrameCache *c = PyObject_GC_New(gd_FrameCache, &gd_FrameCache_Type);
    if (c == NULL) {
        return NULL;
    }
    memset((char *)c + sizeof(PyObject), 0, sizeof(*c) - sizeof(PyObject));
    c->code = (PyCodeObject *)Py_NewRef(code);
    c->globals = Py_NewRef(globals);
    c->owner = owner;
    int rest = code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
    c->nargs = (uint32_t)(code->co_argcount + rest);
    c->nslots = c->nargs + (uint32_t)ncells;
    c->positional = rest == 0 ? code->co_argcount : -1;
    c->star_positional = rest > 0 && code->co_kwonlyargcount == 0 ? code->co_argcount : -1;
    c->max_regs = c->nslots + 2;
    gd_ExtraState *extra = gd_extra_get(code);
    c->skip = extra != NULL && (extra->flags & GD_CODE_SKIP);
    if (gd_extra_link(code, c) < 0) {
        Py_CLEAR(c->code);
        Py_CLEAR(c->globals);
        PyObject_GC_Del(c);
        return NULL;
    }
    c->next = all_caches;
    if (all_caches != NULL) {
        all_caches->prev = c;
    }
    all_caches = c;
    PyObject_GC_Track(c);
    return c;
}

gd_FrameCache *
gd_frame_cache_of(PyFunctionObject *function)
{
    Py_ssize_t ncells = function->func_closure != NULL ? PyTuple_GET_SIZE(function->func_closure) : 0;
    return gd_frame_cache_new((PyCodeObject *)function->func_code, ncells, function->func_globals, NULL);
}

/* Drops all entries. The list is emptied before the first entry is released, since a destructor may call
 * into this cache. */
static void
drop_entries(gd_FrameCache *c, int invalidate)
{
    gd_GuardedCode **entries = c->entries;
    uint32_t n = c->nentries;
    c->entries = NULL;
    c->nentries = c->capacity = 0;
    c->max_regs = c->nslots + 2;
    c->version++;
    for (uint32_t i = 0; i < n; i++) {
        if (invalidate) {
            gd_entry_invalidate(entries[i]);
        }
        Py_DECREF(entries[i]);
    }
    PyMem_Free(entries);
}

static int
cache_traverse(gd_FrameCache *c, visitproc visit, void *arg)
{
    for (uint32_t i = 0; i < c->nentries; i++) {
        Py_VISIT(c->entries[i]);
    }
    Py_VISIT(c->globals);
    Py_VISIT(c->failures);
    Py_VISIT(c->varied);
    return 0;
}

/* The code object and the globals stay until deallocation, since a call may still use the cache while a
 * cycle is cleared. Neither of the two can keep a cycle alive by itself: code objects refer to nothing
 * that the collector sees, and a dict is emptied by its own tp_clear. */
static int
cache_tp_clear(gd_FrameCache *c)
{
    drop_entries(c, 0);
    Py_CLEAR(c->failures);
    Py_CLEAR(c->varied);
    return 0;
}

static void
cache_dealloc(gd_FrameCache *c)
{
    PyObject_GC_UnTrack(c);
    /* The cache is unlinked before weak reference callbacks run, so that they cannot find a dying cache. */
    gd_extra_unlink(c->code, c);
    if (c->prev != NULL) {
        c->prev->next = c->next;
    }
    else {
        all_caches = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    if (c->weakreflist != NULL) {
        PyObject_ClearWeakRefs((PyObject *)c);
    }
    cache_tp_clear(c);
    Py_CLEAR(c->code);
    Py_CLEAR(c->globals);
    PyObject_GC_Del(c);
}

int
gd_frame_cache_add(gd_FrameCache *c, gd_GuardedCode *entry)
{
    if (entry->nslots != c->nslots) {
        PyErr_Format(PyExc_SystemError, "entry for %d slots, frame %U has %d", (int)entry->nslots, c->code->co_qualname,
                     (int)c->nslots);
        return -1;
    }
    if (c->nentries == c->capacity) {
        uint32_t capacity = c->capacity ? c->capacity * 2 : 2;
        gd_GuardedCode **grown = PyMem_Realloc(c->entries, capacity * sizeof(*grown));
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        c->entries = grown;
        c->capacity = capacity;
    }
    memmove(c->entries + 1, c->entries, c->nentries * sizeof(*c->entries));
    c->entries[0] = (gd_GuardedCode *)Py_NewRef(entry);
    c->nentries++;
    c->version++;
    if (entry->nregs > c->max_regs) {
        c->max_regs = entry->nregs;
    }
    return 0;
}

/* Removes the entry at index i from the list. Returns it as a new reference. */
static gd_GuardedCode *
take_entry(gd_FrameCache *c, uint32_t i)
{
    gd_GuardedCode *entry = c->entries[i];
    c->nentries--;
    memmove(c->entries + i, c->entries + i + 1, (c->nentries - i) * sizeof(*c->entries));
    c->version++;
    return entry;
}

void
gd_frame_cache_sweep(gd_FrameCache *c)
{
    for (uint32_t i = 0; i < c->nentries;) {
        if (c->entries[i]->valid) {
            i++;
            continue;
        }
        GD_COUNT(invalidated);
        Py_DECREF(take_entry(c, i));
        i = 0; /* the destructor may have changed the list */
    }
}

int
gd_frame_cache_drop(gd_FrameCache *c, gd_GuardedCode *entry)
{
    for (uint32_t i = 0; i < c->nentries; i++) {
        if (c->entries[i] == entry) {
            GD_COUNT(evicted);
            Py_DECREF(take_entry(c, i));
            return 1;
        }
    }
    return 0;
}

void
gd_frame_cache_evict(gd_FrameCache *c)
{
    if (c->nentries > 0) {
        gd_frame_cache_drop(c, c->entries[c->nentries - 1]);
    }
}

gd_FrameCache *
gd_frame_caches(void)
{
    return all_caches;
}

void
gd_frame_cache_clear(gd_FrameCache *c)
{
    gd_ExtraState *extra = gd_extra_get(c->code);
    c->skip = extra != NULL && (extra->flags & GD_CODE_SKIP);
    c->warned = 0;
    c->passes = 0;
    c->idle = 0;
    c->hits = c->misses = 0;
    Py_CLEAR(c->failures);
    Py_CLEAR(c->varied);
    drop_entries(c, 1);
}

void
gd_frame_cache_failed(gd_FrameCache *c, PyObject *text)
{
    if (c->failures == NULL) {
        c->failures = PyList_New(0);
    }
    if (c->failures == NULL || PyList_Append(c->failures, text) < 0) {
        PyErr_Clear(); /* out of memory: the reason is lost, which changes no behaviour */
        return;
    }
    Py_ssize_t n = PyList_GET_SIZE(c->failures);
    if (n > GD_MAX_FAILURES && PyList_SetSlice(c->failures, 0, n - GD_MAX_FAILURES, NULL) < 0) {
        PyErr_Clear();
    }
}

static PyObject *
cache_entries(gd_FrameCache *c, PyObject *Py_UNUSED(ignored))
{
    Py_INCREF(c);
    gd_frame_cache_sweep(c);
    PyObject *list = PyList_New(0); /* a finalizer that this call runs may change the entries */
    for (uint32_t i = 0; list != NULL && i < c->nentries; i++) {
        if (PyList_Append(list, (PyObject *)c->entries[i]) < 0) {
            Py_CLEAR(list);
        }
    }
    Py_DECREF(c);
    return list;
}

static PyObject *
cache_clear(gd_FrameCache *c, PyObject *Py_UNUSED(ignored))
{
    gd_frame_cache_clear(c);
    Py_RETURN_NONE;
}

static PyObject *
cache_stats(gd_FrameCache *c, PyObject *Py_UNUSED(ignored))
{
    uint32_t valid = 0;
    for (uint32_t i = 0; i < c->nentries; i++) {
        valid += c->entries[i]->valid != 0;
    }
    return Py_BuildValue("{s:K,s:K,s:k,s:O,s:O}", "hits", (unsigned long long)c->hits, "misses",
                         (unsigned long long)c->misses, "entries", (unsigned long)valid, "skip",
                         c->skip ? Py_True : Py_False, "warned", c->warned ? Py_True : Py_False);
}

static PyObject *
cache_failures(gd_FrameCache *c, void *Py_UNUSED(closure))
{
    return c->failures != NULL ? PyList_GetSlice(c->failures, 0, GD_MAX_FAILURES) : PyList_New(0);
}

static PyObject *
cache_varied(gd_FrameCache *c, void *Py_UNUSED(closure))
{
    return c->varied != NULL ? PySequence_Tuple(c->varied) : PyTuple_New(0);
}

static PyObject *
cache_vary(gd_FrameCache *c, PyObject *places)
{
    if (c->varied == NULL && (c->varied = PySet_New(NULL)) == NULL) {
        return NULL;
    }
    PyObject *set = Py_NewRef(c->varied); /* a finalizer may clear the cache */
    PyObject *name = PyUnicode_InternFromString("update");
    PyObject *result = name != NULL ? PyObject_CallMethodOneArg(set, name, places) : NULL;
    Py_XDECREF(name);
    Py_DECREF(set);
    return result;
}

static PyObject *
cache_in_progress(gd_FrameCache *c, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(c->in_progress == gd_runtime.fork_generation + 1);
}

static PyObject *
cache_repr(gd_FrameCache *c)
{
    return PyUnicode_FromFormat("<FrameCache of %U, %u entries at %p>", c->code->co_qualname, (unsigned)c->nentries, c);
}

static PyMethodDef cache_methods[] = {
    {"entries", (PyCFunction)cache_entries, METH_NOARGS, "The entries that may still serve, most recently used first."},
    {"clear", (PyCFunction)cache_clear, METH_NOARGS, "Drops all entries, reasons and counts; they never serve again."},
    {"stats", (PyCFunction)cache_stats, METH_NOARGS, "hits, misses, entries, skip, warned as a dict."},
    {"vary", (PyCFunction)cache_vary, METH_O, "vary(places): adds to `varied`."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef cache_members[] = {
    {"code", T_OBJECT_EX, offsetof(gd_FrameCache, code), READONLY, "the code object"},
    {"globals", T_OBJECT_EX, offsetof(gd_FrameCache, globals), READONLY, "the globals dict of its frames"},
    {"skip", T_BOOL, offsetof(gd_FrameCache, skip), READONLY, "never translated"},
    {"warned", T_BOOL, offsetof(gd_FrameCache, warned), READONLY, "the cache limit was reported"},
    {"hits", T_ULONGLONG, offsetof(gd_FrameCache, hits), READONLY, "calls an entry served"},
    {"misses", T_ULONGLONG, offsetof(gd_FrameCache, misses), READONLY, "calls none served"},
    {"nslots", T_UINT, offsetof(gd_FrameCache, nslots), READONLY, "argument slots and closure cells"},
    {"nargs", T_UINT, offsetof(gd_FrameCache, nargs), READONLY, "argument slots"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef cache_getset[] = {
    {"failures", (getter)cache_failures, NULL, "the last reasons why entries did not serve, oldest first", NULL},
    {"varied", (getter)cache_varied, NULL,
     "the places of ints and floats whose values have differed between calls, and (place, dimension) of tensors", NULL},
    {"in_progress", (getter)cache_in_progress, NULL, "a thread is translating this code", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject gd_FrameCache_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.FrameCache",
    .tp_doc = "The translations of one code object for one owner.",
    .tp_basicsize = sizeof(gd_FrameCache),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)cache_traverse,
    .tp_clear = (inquiry)cache_tp_clear,
    .tp_dealloc = (destructor)cache_dealloc,
    .tp_repr = (reprfunc)cache_repr,
    .tp_methods = cache_methods,
    .tp_members = cache_members,
    .tp_getset = cache_getset,
    .tp_weaklistoffset = offsetof(gd_FrameCache, weakreflist),
};

/* ---- Root ---- */

gd_Root *
gd_root_new(PyObject *options)
{
    int limit = -1;
    PyObject *own = options != Py_None ? PyObject_GetAttrString(options, "cache_size_limit") : NULL;
    if (own != NULL && PyLong_Check(own)) {
        int overflow; /* a value above INT_MAX means no limit */
        long n = PyLong_AsLongAndOverflow(own, &overflow);
        limit = overflow > 0 || n > INT_MAX ? INT_MAX : overflow < 0 || n < 0 ? -1 : (int)n;
    }
    else if (own == NULL && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return NULL;
        }
        PyErr_Clear();
    }
    Py_XDECREF(own);
    PyObject *inner = PyList_New(0);
    gd_Root *root = inner != NULL ? PyObject_GC_New(gd_Root, &gd_Root_Type) : NULL;
    if (root == NULL) {
        Py_XDECREF(inner);
        return NULL;
    }
    root->options = Py_NewRef(options);
    root->inner = inner;
    root->resumes = root->size_places = NULL;
    root->weakreflist = NULL;
    root->cache_size_limit = limit < 0 ? -1 : limit;
    root->hot_calls = root->hot_tensor_calls = 0;
    PyObject_GC_Track(root);
    return root;
}

gd_FrameCache *
gd_root_inner(gd_Root *root, gd_ExtraState *extra, PyCodeObject *code, PyObject *globals)
{
    for (uint32_t i = 0; extra != NULL && i < extra->count; i++) {
        gd_FrameCache *c = extra->caches[i];
        if (c->owner == root && c->globals == globals) {
            return c;
        }
    }
    if (root->inner == NULL || !PyDict_CheckExact(globals) || PyList_GET_SIZE(root->inner) >= gd_runtime.inner_limit) {
        return NULL;
    }
    gd_FrameCache *c = gd_frame_cache_new(code, code->co_nfreevars, globals, root);
    if (c == NULL) {
        return NULL;
    }
    int failed = PyList_Append(root->inner, (PyObject *)c);
    Py_DECREF(c);
    return failed ? NULL : c;
}

static PyObject *
root_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"options", NULL};
    PyObject *options = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Root", keywords, &options)) {
        return NULL;
    }
    return (PyObject *)gd_root_new(options);
}

static int
root_traverse(gd_Root *root, visitproc visit, void *arg)
{
    Py_VISIT(root->options);
    Py_VISIT(root->inner);
    Py_VISIT(root->resumes);
    Py_VISIT(root->size_places);
    return 0;
}

static int
root_tp_clear(gd_Root *root)
{
    /* A cache identifies its owner by address. If another object still holds the cache, a later Root at
     * the same address must not find it. */
    for (Py_ssize_t i = 0; root->inner != NULL && i < PyList_GET_SIZE(root->inner); i++) {
        ((gd_FrameCache *)PyList_GET_ITEM(root->inner, i))->owner = NULL;
    }
    Py_CLEAR(root->inner);
    Py_CLEAR(root->resumes);
    Py_CLEAR(root->size_places);
    Py_CLEAR(root->options);
    return 0;
}

static void
root_dealloc(gd_Root *root)
{
    PyObject_GC_UnTrack(root);
    if (root->weakreflist != NULL) {
        PyObject_ClearWeakRefs((PyObject *)root);
    }
    root_tp_clear(root);
    PyObject_GC_Del(root);
}

static PyObject *
root_inner(gd_Root *root, void *Py_UNUSED(closure))
{
    return root->inner != NULL ? PyList_GetSlice(root->inner, 0, PY_SSIZE_T_MAX) : PyList_New(0);
}

static PyObject *
root_clear(gd_Root *root, PyObject *Py_UNUSED(ignored))
{
    PyObject *old = root->inner;
    PyObject *fresh = PyList_New(0);
    if (fresh == NULL) {
        return NULL;
    }
    root->inner = fresh;
    for (Py_ssize_t i = 0; old != NULL && i < PyList_GET_SIZE(old); i++) {
        gd_FrameCache *c = (gd_FrameCache *)PyList_GET_ITEM(old, i);
        c->owner = NULL; /* another object may still hold the cache, but this Root must not find it again */
        gd_frame_cache_clear(c);
    }
    Py_XDECREF(old);
    Py_CLEAR(root->resumes);
    Py_CLEAR(root->size_places);
    Py_RETURN_NONE;
}

static PyMethodDef root_methods[] = {
    {"clear", (PyCFunction)root_clear, METH_NOARGS, "Drops what the hook translated for this family."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef root_members[] = {
    {"options", T_OBJECT, offsetof(gd_Root, options), READONLY, "the options of the family"},
    {"cache_size_limit", T_INT, offsetof(gd_Root, cache_size_limit), 0,
     "entries per code; negative: the process's setting"},
    {"hot_calls", T_INT, offsetof(gd_Root, hot_calls), 0,
     "frames the hook serves are translated after so many calls of their code; 0: at once"},
    {"hot_tensor_calls", T_INT, offsetof(gd_Root, hot_tensor_calls), 0,
     "the same of code that meets tensors: in its arguments, or because it names torch"},
    {NULL, 0, 0, 0, NULL},
};

/* Returns the dict of the family's resume callables as a new reference; creates it on first use. All
 * graph breaks of a frame at one instruction share a resume callable, even in a loop. */
static PyObject *
root_resumes(gd_Root *root, void *Py_UNUSED(closure))
{
    if (root->resumes == NULL && (root->resumes = PyDict_New()) == NULL) {
        return NULL;
    }
    return Py_NewRef(root->resumes);
}

/* Returns a new reference to root->size_places; creates it on first use. */
static PyObject *
root_size_places(gd_Root *root, void *Py_UNUSED(closure))
{
    if (root->size_places == NULL && (root->size_places = PyDict_New()) == NULL) {
        return NULL;
    }
    return Py_NewRef(root->size_places);
}

static PyGetSetDef root_getset[] = {
    {"size_places", (getter)root_size_places, NULL,
     "by code object, the places of ints computed from sizes, for the translator", NULL},
    {"resumes", (getter)root_resumes, NULL, "resume callables by code and place, for the translator", NULL},
    {"inner", (getter)root_inner, NULL, "FrameCaches of the frames the hook serves, as a new list", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject gd_Root_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "godynamo._C.Root",
    .tp_doc = "Root(options=None): what a callable shares with its resume functions and with the frames the hook "
              "serves for it.",
    .tp_basicsize = sizeof(gd_Root),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = root_new,
    .tp_traverse = (traverseproc)root_traverse,
    .tp_clear = (inquiry)root_tp_clear,
    .tp_dealloc = (destructor)root_dealloc,
    .tp_methods = root_methods,
    .tp_members = root_members,
    .tp_getset = root_getset,
    .tp_weaklistoffset = offsetof(gd_Root, weakreflist),
};

/* ---- the process ---- */

/* Clears every cache of the process. Clearing a cache that has entries may free other caches, so the list
 * is then walked from its start again. */
static PyObject *
reset_caches(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (gd_FrameCache *c = all_caches; c != NULL;) {
        if (c->nentries == 0) {
            gd_frame_cache_clear(c); /* without entries, this releases only strings */
            c = c->next;
            continue;
        }
        Py_INCREF(c);
        gd_frame_cache_clear(c);
        Py_DECREF(c);
        c = all_caches;
    }
    Py_RETURN_NONE;
}

static PyObject *
mark_skip(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyCodeObject *code;
    int skip = 1;
    if (!PyArg_ParseTuple(args, "O!|p:mark_skip", &PyCode_Type, &code, &skip)) {
        return NULL;
    }
    gd_ExtraState *state = gd_extra_make(code);
    if (state == NULL) {
        return NULL;
    }
    /* GD_CODE_ASKED is set for either value of `skip`, so the caller's choice overrides skip_code. */
    state->flags &= ~(uint32_t)(GD_CODE_SKIP | GD_CODE_FOREIGN);
    state->flags |= GD_CODE_ASKED | (skip ? GD_CODE_SKIP : 0);
    for (uint32_t i = 0; i < state->count; i++) {
        state->caches[i]->skip = (char)skip;
    }
    Py_RETURN_NONE;
}

static PyObject *
code_caches(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (!PyCode_Check(code)) {
        return PyErr_Format(PyExc_TypeError, "a code object is needed, not %s", Py_TYPE(code)->tp_name);
    }
    gd_ExtraState *state = gd_extra_get((PyCodeObject *)code);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && state != NULL && i < state->count; i++) {
        if (PyList_Append(list, (PyObject *)state->caches[i]) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyMethodDef functions[] = {
    {"mark_skip", mark_skip, METH_VARARGS, "mark_skip(code, skip=True): leaves this code to CPython, or no longer."},
    {"code_caches", code_caches, METH_O, "The live FrameCaches made for a code object."},
    {"reset_caches", reset_caches, METH_NOARGS, "Drops every translation of the process."},
    {NULL, NULL, 0, NULL},
};

int
gd_frame_cache_init(PyObject *module)
{
    if (PyModule_AddType(module, &gd_FrameCache_Type) < 0 || PyModule_AddType(module, &gd_Root_Type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
