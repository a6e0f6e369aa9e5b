/* Defines the one function that go-python3 calls and that CPython 3.11 and 3.12 declare (cpython/pyerrors.h) but
 * do not define.
 *
 * godynamo never calls this function. Without the definition the library would have an undefined function that
 * the host process lacks, and RTLD_NOW would reject the library. The symbol is hidden, so that no other
 * library in the process resolves to it. */
#include <Python.h>

#if PY_VERSION_HEX < 0x030D0000
__attribute__((visibility("hidden"))) int
PySignal_SetWakeupFd(int fd)
{
    (void)fd;
    PyErr_SetString(PyExc_NotImplementedError, "PySignal_SetWakeupFd: not in this CPython, use signal.set_wakeup_fd");
    return -1;
}
#endif
