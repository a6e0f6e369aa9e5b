/* The one function that go-python3 calls and that CPython 3.11 declares (cpython/pyerrors.h) but does not
 * define.
 *
 * godynamo never calls it. It is here so that the library has no undefined function that the host process
 * lacks, which RTLD_NOW would reject. It is hidden, so that no other library in the process resolves to
 * it. */
#include <Python.h>

__attribute__((visibility("hidden"))) int
PySignal_SetWakeupFd(int fd)
{
    (void)fd;
    PyErr_SetString(PyExc_NotImplementedError, "PySignal_SetWakeupFd: not in CPython 3.11, use signal.set_wakeup_fd");
    return -1;
}
