/* Functions that call through the core's function table. cgo needs them because it cannot call function
 * pointers. */
#ifndef GD_BRIDGE_H
#define GD_BRIDGE_H

#include <Python.h>
#include "core/golib.h"

extern const gd_core_api *gd_core; /* set once by gdInit */

/* Each gdb_ function below calls the function of gd_core_api with the same name; returned objects are new
 * references. */
int gdb_code_view(PyObject *code, gd_code_view *out);
void gdb_code_view_release(gd_code_view *view);
PyObject *gdb_code_new(const gd_code_spec *spec);
PyObject *gdb_entry_new(const gd_entry_spec *spec);
int gdb_entry_check(PyObject *entry, PyObject *const *slots, uint32_t nslots, PyObject *globals, PyObject *builtins,
                    int32_t *failed);
PyObject *gdb_resume_new(PyObject *owner, PyObject *function);
int gdb_tensor_view(PyObject *tensor, gd_tensor_view *out);
int gdb_interrupted(void);
int gdb_mode_active(void);
void gdb_set_core(const gd_core_api *core);
void gdb_fill_golib(gd_golib_api *out);

#endif
