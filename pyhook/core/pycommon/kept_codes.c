/* CPython 3.12 and 3.13 drop a reference that they do not own if MAKE_FUNCTION finds no memory for the function: the
 * code object dies, and the next such instruction reads freed memory. The translator and torch's compilers make many
 * functions (closures, generator expressions) in calls where the program alone would get a MemoryError. So their code
 * objects are immortal, as far as they are loaded after this module. Code of modules is never freed anyway. 3.11 and
 * 3.14 do not have the fault. */
#include "kept_codes.h"

#include <string.h>

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000

/* Returns whether a path names a file of torch or of our package: .../godynamo/x.py or .../godynamo/_folder/... It may
 * be relative, since importlib corrects it only after the code object is made. */
static int
of_library(PyObject *path)
{
    static const char ours[] = "godynamo/";
    if (!PyUnicode_Check(path) || !PyUnicode_IS_COMPACT_ASCII(path)) {
        return 0;
    }
    const char *text = (const char *)PyUnicode_DATA(path), *inside = NULL;
    if (strstr(text, "/torch/") != NULL) {
        return 1;
    }
    for (const char *at = text; (at = strstr(at, ours)) != NULL;) {
        inside = at += sizeof(ours) - 1;
    }
    return inside != NULL && (*inside == '_' || strchr(inside, '/') == NULL);
}

static int
on_code(PyCodeEvent event, PyCodeObject *code)
{
    if (event == PY_CODE_EVENT_CREATE && (code->co_flags & CO_NESTED) && of_library(code->co_filename)) {
        ((PyObject *)code)->ob_refcnt = _Py_IMMORTAL_REFCNT;
    }
    return 0;
}

int
gd_kept_codes_init(PyObject *Py_UNUSED(module))
{
    if (PyCode_AddWatcher(on_code) < 0) {
        PyErr_Clear(); /* all numbers are taken; CPython's fault stays */
    }
    return 0;
}

#else

int
gd_kept_codes_init(PyObject *Py_UNUSED(module))
{
    return 0;
}

#endif
