/* CPython 3.12 and 3.13 drop a reference that they do not own if MAKE_FUNCTION finds no memory for the function: the
 * code object dies, and the next such instruction reads freed memory. The translator makes many functions (closures,
 * generator expressions) in calls where the program alone would get a MemoryError. So their code objects are immortal;
 * code of modules is never freed anyway. torch's are not: the translations of its nested functions, which have its file
 * names, would live on with all their constants. 3.11 and 3.14 do not have the fault. */
#include "kept_codes.h"

#include <string.h>

#define GD_FREES_CODES (PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000)

#if GD_FREES_CODES

/* Returns whether a path names a file in a folder of our package, such as godynamo/_translator/vague.py. It may be
 * relative, since importlib corrects it only after the code object is made. */
static int
of_our_package(PyObject *path)
{
    return PyUnicode_Check(path) && PyUnicode_IS_COMPACT_ASCII(path)
           && strstr((const char *)PyUnicode_DATA(path), "godynamo/_") != NULL;
}

static int
on_code(PyCodeEvent event, PyCodeObject *code)
{
    if (event == PY_CODE_EVENT_CREATE && (code->co_flags & CO_NESTED) && of_our_package(code->co_filename)) {
        ((PyObject *)code)->ob_refcnt = _Py_IMMORTAL_REFCNT;
    }
    return 0;
}

#endif

int
gd_kept_codes_init(PyObject *Py_UNUSED(module))
{
#if GD_FREES_CODES
    if (PyCode_AddWatcher(on_code) < 0) {
        PyErr_Clear(); /* all numbers are taken; CPython's fault stays */
    }
#endif
    return 0;
}
