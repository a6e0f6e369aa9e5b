/* Reads and sets torch.compile's callback of this thread, through torch._C._dynamo.eval_frame. The callback is None
 * (off), False (run compiled code only) or a callable (compile). The functions exist even if torch._dynamo is not
 * imported. If they are missing, nothing is done. */
#include "calls/other_hook.h"

static PyObject *get_callback, *set_callback; /* strong once found, for the life of the process */

static int
found(void)
{
    if (set_callback != NULL) {
        return 1;
    }
    PyObject *name = PyUnicode_FromString("torch._C._dynamo.eval_frame");
    PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    if (module != NULL) {
        get_callback = PyObject_GetAttrString(module, "get_eval_frame_callback");
        set_callback = get_callback != NULL ? PyObject_GetAttrString(module, "set_eval_frame") : NULL;
        Py_DECREF(module);
        if (set_callback == NULL) {
            Py_CLEAR(get_callback);
        }
    }
    PyErr_Clear();
    return set_callback != NULL;
}

PyObject *
gd_torch_quiet(void)
{
    if (!found()) {
        return NULL;
    }
    PyObject *callback = PyObject_CallNoArgs(get_callback);
    if (callback != NULL && callback != Py_None && callback != Py_False) {
        PyObject *before = PyObject_CallOneArg(set_callback, Py_False);
        if (before != NULL) {
            Py_DECREF(callback);
            return before;
        }
    }
    PyErr_Clear();
    Py_XDECREF(callback);
    return NULL;
}

void
gd_torch_resume(PyObject *callback)
{
    if (callback == NULL) {
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *ours = PyObject_CallOneArg(set_callback, callback);
    if (ours == NULL) {
        PyErr_WriteUnraisable(set_callback);
    }
    Py_XDECREF(ours);
    Py_DECREF(callback);
    PyErr_Restore(type, value, traceback);
}
