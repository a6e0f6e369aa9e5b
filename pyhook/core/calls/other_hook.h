/* torch.compile's own hook, which would see the Python code that our translation runs. */
#ifndef GD_OTHER_HOOK_H
#define GD_OTHER_HOOK_H

#include "pycompat.h"

/* If torch.compile is active on this thread, restricts it to serving what it has compiled: it would otherwise
 * pass our own Python code to the user's backend. Returns a new reference for gd_torch_resume, or NULL when
 * there is nothing to restore. Raises nothing; call it with no exception set. */
PyObject *gd_torch_quiet(void);

/* Restores what gd_torch_quiet replaced. callback: stolen, or NULL. Keeps the current exception. */
void gd_torch_resume(PyObject *callback);

#endif
