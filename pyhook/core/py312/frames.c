/* CPython 3.12: takes a frame off the data stack. CPython's own function, _PyThreadState_PopFrame in Python/pystate.c,
 * is not exported; this follows it. */
#include "pycompat.h"

/* If the frame is the only one of its chunk, the chunk is freed; the first chunk of a thread always has a frame before
 * ours. */
void
gd_py_pop_frame(PyThreadState *tstate, _PyInterpreterFrame *frame)
{
    PyObject **base = (PyObject **)frame;
    _PyStackChunk *chunk = tstate->datastack_chunk;
    if (base != &chunk->data[0]) {
        tstate->datastack_top = base;
        return;
    }
    _PyStackChunk *previous = chunk->previous;
    tstate->datastack_top = &previous->data[previous->top];
    tstate->datastack_limit = (PyObject **)((char *)previous + previous->size);
    tstate->datastack_chunk = previous;
    PyObjectArenaAllocator allocator; /* chunks come from it */
    PyObject_GetArenaAllocator(&allocator);
    allocator.free(allocator.ctx, chunk, chunk->size);
}
