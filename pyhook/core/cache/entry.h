/* Creating a GuardedCode. */
#ifndef GD_ENTRY_H
#define GD_ENTRY_H

#include "guards/guarded_code.h"

/* Returns a new entry, or NULL with an exception set. Go calls this as gd_core_api.entry_new. */
PyObject *gd_entry_new(const gd_entry_spec *spec);

#endif
