/* CPython 3.12: ends a frame that the eval loop has not run. CPython's own functions for this are not exported. This
 * follows clear_thread_frame in Python/ceval.c and _PyThreadState_PopFrame in Python/pystate.c. */
#include "pycompat.h"

/* Takes the frame off the data stack. If it is the only one of its chunk, the chunk is freed; the first chunk of a
 * thread always has a frame before ours. base (borrowed): where the frame begins. */
static void
pop(PyThreadState *tstate, PyObject **base)
{
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

void
gd_py_end_frame(PyThreadState *tstate, _PyInterpreterFrame *frame)
{
    /* Finalizers that run here push their own frames after this one, so it stays on the stack until the end. */
    tstate->c_recursion_remaining--;
    for (int i = 0; i < frame->stacktop; i++) {
        Py_XDECREF(frame->localsplus[i]);
    }
    Py_XDECREF(frame->f_locals);
    Py_DECREF(frame->f_funcobj);
    Py_DECREF(frame->f_code);
    tstate->c_recursion_remaining++;
    pop(tstate, (PyObject **)frame);
}
