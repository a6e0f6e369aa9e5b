/* Reading and creating code objects, each in one call. */
#ifndef GD_CODE_H
#define GD_CODE_H

#include "pycompat.h"
#include "golib.h"

/* Fills *out from a code object and keeps that alive until gd_code_view_release. 0, or -1 with an
 * exception (then there is nothing to release). */
int gd_code_view_open(PyObject *code, gd_code_view *out);
void gd_code_view_release(gd_code_view *view);

/* Returns a new code object from flat parts, marked as ours; NULL with an exception. -> gd_core_api.code_new */
PyObject *gd_code_new(const gd_code_spec *spec);

/* Adds code_roundtrip, mark_ours and function_made to the module. 0 or -1 */
int gd_code_init(PyObject *module);

#endif
