/* torch's observers: profilers, and other callbacks of at::RecordFunction, which see the operators of a thread. */
#ifndef GD_TORCH_OBSERVERS_H
#define GD_TORCH_OBSERVERS_H

#include "pycompat.h"

/* Reports whether a profiler or another observer sees this thread's operators, or this torch does not tell. */
int gd_torch_observed(void);

/* Hides this thread's operators from observers, since a translation runs operators that are not the program's. Returns
 * what gd_torch_show takes. Calls nest. */
int gd_torch_hide(void);
void gd_torch_show(int hidden);

/* Adds show_operators() to the module. Returns 0, or -1 with an exception set. */
int gd_torch_observers_init(PyObject *module);

#endif
