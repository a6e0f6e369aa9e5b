/* Torch's global state, read without libtorch's headers. Functions and variables are found by their
 * mangled names. */
#ifndef GD_TORCH_STATE_H
#define GD_TORCH_STATE_H

#include "pycompat.h"

/* Finds the functions and variables to read; imports torch. Cheap after the first call.
 * gd_torch_state_snapshot, gd_torch_mode_active, gd_torch_symbol and gd_torch_state_describe call it.
 * Returns 0, or -1 with an exception set. */
int gd_torch_state_ensure(void);

/* Takes a snapshot of this thread's present state, to be compared later; the caller frees it with
 * PyMem_Free. Returns NULL with an exception set on failure. */
void *gd_torch_state_snapshot(void);

/* Reports whether the state equals the snapshot. Runs no user code; takes about 20 ns. */
int gd_torch_state_equal(const void *snapshot);

/* Describes the first difference ("torch's grad mode: off, was on") as a new str; *found and *was are set
 * to new str as well. Returns NULL with no exception set if nothing differs. */
PyObject *gd_torch_state_difference(const void *snapshot, PyObject **found, PyObject **was);

/* Returns torch.is_grad_enabled(), or -1 if it cannot be read. gd_torch_state_ensure must have succeeded. */
int gd_torch_grad_enabled(void);

/* Reports whether something records or transforms the operators of this thread: a TorchFunctionMode, a
 * TorchDispatchMode, a torch.func transform, torch.jit.trace, make_fx, torch.export, or torch.fx's
 * symbolic tracing (on any thread). Leaves no exception set. */
int gd_torch_mode_active(void);

/* Removes all dispatch modes from torch's stack without calling their __exit__ and without allocating.
 * Leaves no exception set. */
void gd_torch_pop_dispatch_modes(void);

/* Returns the address of a symbol in torch's libraries, or NULL with no exception set if there is none. */
void *gd_torch_symbol(const char *name);

/* Returns a new dict of name → (present value, how it is read: "symbol" or "python"), or NULL with an
 * exception set. */
PyObject *gd_torch_state_describe(void);

#endif
