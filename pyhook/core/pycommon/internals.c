/* CPython 3.11 to 3.13: functions too long for internals.h. */
#include "pycompat.h"

#if PY_VERSION_HEX < 0x030D0000 /* later versions do not export _PyCode_New; see code.c */
PyObject *
gd_py_code_new(const gd_py_code_parts *parts)
{
    struct _PyCodeConstructor con = {
        .filename = parts->filename,
        .name = parts->name,
        .qualname = parts->qualname,
        .flags = parts->flags,
        .code = parts->code,
        .firstlineno = parts->firstlineno,
        .linetable = parts->linetable,
        .consts = parts->consts,
        .names = parts->names,
        .localsplusnames = parts->localsplusnames,
        .localspluskinds = parts->localspluskinds,
        .argcount = parts->argcount,
        .posonlyargcount = parts->posonlyargcount,
        .kwonlyargcount = parts->kwonlyargcount,
        .stacksize = parts->stacksize,
        .exceptiontable = parts->exceptiontable,
    };
    if (_PyCode_Validate(&con) < 0) {
        return NULL;
    }
    return (PyObject *)_PyCode_New(&con);
}
#endif

void
gd_py_code_tables(PyCodeObject *code, PyObject **linetable, PyObject **exceptiontable, PyObject **localsplusnames,
                  PyObject **localspluskinds)
{
    *linetable = code->co_linetable;
    *exceptiontable = code->co_exceptiontable;
    *localsplusnames = code->co_localsplusnames;
    *localspluskinds = code->co_localspluskinds;
}
