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

#if PY_VERSION_HEX >= 0x030D0000
/* CPython's bound for the versions of one class (MAX_VERSIONS_PER_CLASS in Objects/typeobject.c). From SPECIAL on, the
 * count is a mark that the class must not have versions. */
enum { MOST_VERSIONS = 1000, SPECIAL = 30000 };

/* How many more times a class gets a new count. A version has 32 bits, and all classes share them; 10,000 counts are
 * a four-hundredth of them. */
static int counts_left = 10000;

int
gd_py_type_gets_version(PyTypeObject *type)
{
    PyObject *mro = type->tp_mro;
    if (gd_py_type_has_version(type) || mro == NULL || counts_left <= 0) {
        return gd_py_type_has_version(type);
    }
    int renewed = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (base->tp_versions_used >= MOST_VERSIONS && base->tp_versions_used < SPECIAL) {
            base->tp_versions_used = 0;
            renewed++;
        }
    }
    counts_left -= renewed;
    return renewed && PyUnstable_Type_AssignVersionTag(type);
}
#else
int
gd_py_type_gets_version(PyTypeObject *type)
{
    return gd_py_type_has_version(type);
}
#endif
