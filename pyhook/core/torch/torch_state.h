/* Torch's global state. */
#ifndef GD_TORCH_STATE_H
#define GD_TORCH_STATE_H

#include "pycompat.h"

/* Finds the functions and variables to read; imports torch. Cheap after the first call.
 * gd_torch_state_snapshot, gd_torch_mode_active and gd_torch_state_describe call it.
 * Returns 0, or -1 with an exception set. */
int gd_torch_state_ensure(void);

/* Takes a snapshot of this thread's present state, to be compared later; the caller frees it with
 * PyMem_Free. threads: whether the number of threads is part of it. Returns NULL with an exception set on failure. */
void *gd_torch_state_snapshot(int threads);

/* Reports whether the state equals the snapshot. Runs no user code. */
int gd_torch_state_equal(const void *snapshot);

/* Describes the first difference ("torch's grad mode: off, was on") as a new str; *found and *was are set
 * to new str as well. Returns NULL with no exception set if nothing differs. */
PyObject *gd_torch_state_difference(const void *snapshot, PyObject **found, PyObject **was);

/* Returns torch.is_grad_enabled(), or -1 if it cannot be read. gd_torch_state_ensure must have succeeded. */
int gd_torch_grad_enabled(void);

/* Returns this thread's dispatch keys {included, excluded}, or NULL if torch has no such variable. They live as long
 * as the thread. gd_torch_state_ensure must have succeeded, as for gd_torch_modes_entered. */
const uint64_t *gd_torch_thread_keys(void);

enum gd_torch_stack { GD_TORCH_FUNCTION_MODES, GD_TORCH_DISPATCH_MODES };

/* Returns how many modes of a stack this thread has entered. */
uint64_t gd_torch_modes_entered(enum gd_torch_stack stack);

/* Returns a new dict of name → (present value, how it is read), or NULL with an exception set. It is read from torch's
 * "memory", by a "call" of a C++ function, or by a call of a "python" function, which is slow. */
PyObject *gd_torch_state_describe(void);

#endif
