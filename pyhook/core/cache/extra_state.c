/* The data attached to a code object: see cache/extra_state.h. */
#include "cache/extra_state.h"

#include "code_data.h"

/* Frees the data of a code object. Runs when the code object dies, possibly at interpreter exit or in a
 * forked child, so it calls no Go and uses no Python object. The index of FrameCaches is empty by then,
 * since a FrameCache holds its code object. */
static void
extra_free(void *p)
{
    gd_ExtraState *state = p;
    if (state != NULL) {
        PyMem_RawFree(state->caches);
        PyMem_RawFree(state);
    }
}

gd_ExtraState *
gd_extra_get(PyCodeObject *code)
{
    return gd_code_data_get(code);
}

gd_ExtraState *
gd_extra_make(PyCodeObject *code)
{
    gd_ExtraState *state = gd_extra_get(code);
    if (state != NULL) {
        return state;
    }
    state = PyMem_RawCalloc(1, sizeof(*state));
    if (state == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (gd_code_data_set(code, state) < 0) {
        PyMem_RawFree(state);
        return NULL;
    }
    return state;
}

int
gd_extra_link(PyCodeObject *code, struct gd_FrameCache *cache)
{
    gd_ExtraState *state = gd_extra_make(code);
    if (state == NULL) {
        return -1;
    }
    if (state->count == state->capacity) {
        uint32_t capacity = state->capacity ? state->capacity * 2 : 2;
        struct gd_FrameCache **grown = PyMem_RawRealloc(state->caches, capacity * sizeof(*grown));
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        state->caches = grown;
        state->capacity = capacity;
    }
    state->caches[state->count++] = cache;
    return 0;
}

void
gd_extra_unlink(PyCodeObject *code, struct gd_FrameCache *cache)
{
    gd_ExtraState *state = gd_extra_get(code);
    for (uint32_t i = 0; state != NULL && i < state->count; i++) {
        if (state->caches[i] == cache) {
            state->caches[i] = state->caches[--state->count];
            return;
        }
    }
}

int
gd_code_mark(PyCodeObject *code, uint32_t flags)
{
    gd_ExtraState *state = gd_extra_make(code);
    if (state == NULL) {
        return -1;
    }
    state->flags |= flags;
    return 0;
}

/* ---- for Python: these functions return new references, or NULL with an exception set ---- */

static PyObject *
code_flags(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (!PyCode_Check(code)) {
        return PyErr_Format(PyExc_TypeError, "a code object is needed, not %s", Py_TYPE(code)->tp_name);
    }
    gd_ExtraState *state = gd_extra_get((PyCodeObject *)code);
    return PyLong_FromUnsignedLong(state != NULL ? state->flags : 0);
}

static PyMethodDef functions[] = {
    {"code_flags", code_flags, METH_O,
     "Frame action of a code object: CODE_SKIP, CODE_OURS, CODE_ASKED, CODE_FOREIGN or'ed together."},
    {NULL, NULL, 0, NULL},
};

int
gd_extra_state_init(PyObject *module)
{
    if (gd_code_data_init(extra_free) < 0 || PyModule_AddFunctions(module, functions) < 0
        || PyModule_AddIntConstant(module, "CODE_SKIP", GD_CODE_SKIP) < 0
        || PyModule_AddIntConstant(module, "CODE_OURS", GD_CODE_OURS) < 0
        || PyModule_AddIntConstant(module, "CODE_FOREIGN", GD_CODE_FOREIGN) < 0
        || PyModule_AddIntConstant(module, "CODE_ASKED", GD_CODE_ASKED) < 0) {
        return -1;
    }
    return 0;
}
