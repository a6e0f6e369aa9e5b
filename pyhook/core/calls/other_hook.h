/* torch.compile's own hook, which sees the Python that a translation of ours runs. */
#ifndef GD_OTHER_HOOK_H
#define GD_OTHER_HOOK_H

#include "pycompat.h"

/* While torch.compile is in force on this thread: has it serve what it has translated and translate nothing more.
 * Without this it would hand our own Python to the user's backend. new reference for gd_torch_resume; NULL when there
 * is nothing to put back. Raises nothing; call it with no exception set. */
PyObject *gd_torch_quiet(void);

/* Puts back what gd_torch_quiet took. callback: stolen, or NULL. Keeps the current exception. */
void gd_torch_resume(PyObject *callback);

#endif
