/* Torch's global state, read without libtorch's headers: functions and variables found by their mangled names. */
#ifndef GD_TORCH_STATE_H
#define GD_TORCH_STATE_H

#include "pycompat.h"

/* Finds what there is to read; imports torch. Called by the two below; cheap when done. 0 or -1 with an exception. */
int gd_torch_state_ensure(void);

/* The state of this moment and thread, to be compared later; the caller frees it with PyMem_Free. NULL with an
 * exception. */
void *gd_torch_state_snapshot(void);

/* Whether the state is that of the snapshot. Runs no user code; some 20 ns. */
int gd_torch_state_equal(const void *snapshot);

/* The first thing that differs, as words ("torch's grad mode: 0, was 1"): new str, and the two values: new str each;
 * NULL without an exception when nothing does. */
PyObject *gd_torch_state_difference(const void *snapshot, PyObject **found, PyObject **was);

/* torch.is_grad_enabled(); gd_torch_state_ensure has succeeded. */
int gd_torch_grad_enabled(void);

/* Whether something records or transforms what this thread runs: a TorchFunctionMode, a TorchDispatchMode, a transform
 * of torch.func, torch.jit.trace, make_fx, torch.export, torch.fx's symbolic tracing (of any thread's). Keeps no
 * exception. */
int gd_torch_mode_active(void);

/* Takes all dispatch modes off their stack without their exits, and without memory. Keeps no exception. */
void gd_torch_pop_dispatch_modes(void);

/* A symbol of torch's libraries; NULL without an exception where there is none. */
void *gd_torch_symbol(const char *name);

/* dict of name → (present value, how it is read: "symbol" or "python"); new, NULL with an exception. */
PyObject *gd_torch_state_describe(void);

#endif
