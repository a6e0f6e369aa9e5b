/* Reading and creating code objects, each in one call. */
#ifndef GD_CODE_H
#define GD_CODE_H

#include "pycompat.h"
#include "golib.h"

/* Fills *out from a code object, and keeps the code object alive until gd_code_view_release. Returns 0, or
 * -1 with an exception set; after -1 there is nothing to release. */
int gd_code_view_open(PyObject *code, gd_code_view *out);
void gd_code_view_release(gd_code_view *view);

/* Returns a new code object from flat parts, marked as ours (see cache/extra_state.h), or NULL with an
 * exception set. Go calls this as gd_core_api.code_new. */
PyObject *gd_code_new(const gd_code_spec *spec);

/* Adds code_roundtrip, mark_ours and function_made to the module. Returns 0, or -1 with an exception set. */
int gd_code_init(PyObject *module);

#endif
