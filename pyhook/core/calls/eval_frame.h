/* The PEP 523 eval-frame function. */
#ifndef GD_EVAL_FRAME_H
#define GD_EVAL_FRAME_H

#include "pycompat.h"

/* Hands the function to calls/extent.c; adds enter_extent, exit_extent, hook_installed, ... to the module. 0 or -1 */
int gd_eval_frame_init(PyObject *module);

#endif
