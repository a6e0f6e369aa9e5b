/* Leaving torch's dispatch modes: see torch/leave_modes.h. */
#include "torch/leave_modes.h"

#include "callbacks.h"
#include "torch/torch_modes.h"

void
gd_leave_modes(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *left = gd_torch_mode_active() ? gd_call_python("leave_dispatch_modes", Py_None) : Py_NewRef(Py_None);
    if (left == NULL) {
        gd_swallow(Py_None);
        gd_torch_pop_dispatch_modes();
    }
    Py_XDECREF(left);
    PyErr_Restore(type, value, traceback);
}
