/* While the program has replaced a builtin, nothing is translated.
 *
 * Parts of the translator, and the modules that they import, are written in Python. If they call len(), they call the
 * program's replacement, which may print something or raise.
 */
#ifndef GD_REPLACED_BUILTINS_H
#define GD_REPLACED_BUILTINS_H

#include "pycompat.h"

/* Reports whether a builtin is another object than when the core was loaded, or missing. It ignores those that programs
 * replace for good and the translator does not need (print, open, ...). Calls no Python. */
int gd_builtins_replaced(void);

/* Notes the builtins. Returns 0, or -1 with an exception set. */
int gd_replaced_builtins_init(PyObject *module);

#endif
