/* Restricts torch.compile's own hook, which would otherwise see the Python code that our translation runs. */
#ifndef GD_OTHER_HOOK_H
#define GD_OTHER_HOOK_H

#include "pycompat.h"

/* If torch.compile is active on this thread, restricts it to running code that it has already compiled. Otherwise
 * it would pass our own Python code to the user's backend. Returns a new reference for gd_torch_resume, or NULL if
 * there is nothing to restore. Raises nothing; call it with no exception set. */
PyObject *gd_torch_quiet(void);

/* Restores the callback that gd_torch_quiet replaced. Steals callback, which may be NULL. Keeps the pending
 * exception. */
void gd_torch_resume(PyObject *callback);

#endif
