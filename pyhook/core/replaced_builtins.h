/* While the program has replaced a builtin, nothing is translated.
 *
 * The translator is written in Python, too, and so is what it imports. Their calls of len() would call a len() of the
 * program's, which may print, count, or refuse the argument.
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
