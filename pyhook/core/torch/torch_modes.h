/* What records or transforms the operators of a thread: torch's modes, and tracing. */
#ifndef GD_TORCH_MODES_H
#define GD_TORCH_MODES_H

#include "pycompat.h"

/* Reports whether something records or transforms the operators of this thread: a TorchFunctionMode, a
 * TorchDispatchMode, a torch.func transform, torch.jit.trace, make_fx, torch.export, or torch.fx's symbolic tracing
 * (on any thread). Leaves no exception set. */
int gd_torch_mode_active(void);

/* Reports whether no mode is active, as gd_torch_mode_active does, but calls no function of Python: also false if some
 * function mode is active, or if this torch does not tell. */
int gd_torch_unseen(void);

/* Adds operators_unseen() to the module. Returns 0, or -1 with an exception set. */
int gd_torch_modes_init(PyObject *module);

/* Removes all dispatch modes from torch's stack without calling their __exit__ and without allocating. Leaves no
 * exception set. */
void gd_torch_pop_dispatch_modes(void);

#endif
