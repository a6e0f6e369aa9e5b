/* The one function that go-python3 calls and that CPython 3.11 declares (cpython/pyerrors.h) without defining.
 *
 * Never called by godynamo: it is here so that the library leaves no function undefined that the host process lacks,
 * which RTLD_NOW would refuse. It is hidden, so that no other library in the process resolves to it. */
#include <Python.h>

__attribute__((visibility("hidden"))) int
PySignal_SetWakeupFd(int fd)
{
    (void)fd;
    PyErr_SetString(PyExc_NotImplementedError, "PySignal_SetWakeupFd: not in CPython 3.11, use signal.set_wakeup_fd");
    return -1;
}
