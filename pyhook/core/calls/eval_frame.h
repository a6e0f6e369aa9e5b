/* The PEP 523 eval-frame function. */
#ifndef GD_EVAL_FRAME_H
#define GD_EVAL_FRAME_H

#include "pycompat.h"

/* Sets gd_hook.ours (calls/extent.h); adds enter_extent, exit_extent, hook_installed, ... to the module.
 * Returns 0 or -1. */
int gd_eval_frame_init(PyObject *module);

#endif
