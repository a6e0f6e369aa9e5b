/* The function table passed to the Go library (golib.h), and its capsule for embedding tests. */
#include "cache/code.h"
#include "cache/entry.h"
#include "calls/callable.h"
#include "golib_load.h"
#include "guards/access.h"
#include "guards/eval.h"
#include "guards/guarded_code.h"
#include "interrupt.h"
#include "torch/tensor_layout.h"
#include "torch/torch_modes.h"

/* Implements gd_core_api.entry_check. */
static int
entry_check(PyObject *entry, PyObject *const *slots, uint32_t nslots, PyObject *globals, PyObject *builtins,
            int32_t *failed_node)
{
    if (!Py_IS_TYPE(entry, &gd_GuardedCode_Type)) {
        PyErr_Format(PyExc_TypeError, "a GuardedCode is needed, not %s", Py_TYPE(entry)->tp_name);
        return -1;
    }
    gd_GuardedCode *e = (gd_GuardedCode *)entry;
    if (nslots != e->nslots || !PyDict_Check(globals)) {
        PyErr_Format(PyExc_SystemError, "entry for %d slots checked with %u", (int)e->nslots, (unsigned)nslots);
        return -1;
    }
    PyObject **regs = PyMem_Calloc(Py_MAX((size_t)e->nregs, (size_t)nslots + 2), sizeof(PyObject *));
    if (regs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(regs, slots, nslots * sizeof(PyObject *));
    regs[nslots] = globals;
    regs[nslots + 1] = builtins;
    int failed = gd_guard_eval(e, regs);
    PyMem_Free(regs);
    if (failed_node != NULL) {
        *failed_node = failed;
    }
    return failed < 0;
}

const gd_core_api gd_core = {
    .abi = GD_ABI_VERSION,
    .size = sizeof(gd_core_api),
    .code_view = gd_code_view_open,
    .code_view_release = gd_code_view_release,
    .code_new = gd_code_new,
    .entry_new = gd_entry_new,
    .entry_check = entry_check,
    .resume_new = gd_resume_new,
    .tensor_view = gd_tensor_view_read,
    .callable_function = gd_callable_function,
    .python_returned = gd_python_returned,
    .check_signals = gd_check_signals,
    .interrupted = gd_interrupted,
    .mode_active = gd_torch_mode_active,
    .runs_its_code = gd_runs_its_code,
};

int
gd_core_api_init(PyObject *module)
{
    PyObject *capsule = PyCapsule_New((void *)&gd_core, "godynamo._C._core_api", NULL);
    if (capsule == NULL) {
        return -1;
    }
    int failed = PyModule_AddObjectRef(module, "_core_api", capsule);
    Py_DECREF(capsule);
    return failed;
}
