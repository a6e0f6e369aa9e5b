/* The module godynamo._C. Each file of the core adds its own part. */
#include "cache/code.h"
#include "cache/entry.h"
#include "cache/extra_state.h"
#include "cache/frame_cache.h"
#include "callbacks.h"
#include "calls/ahead_call.h"
#include "calls/callable.h"
#include "calls/census.h"
#include "calls/eval_frame.h"
#include "calls/load_method.h"
#include "calls/module_handle.h"
#include "calls/group.h"
#include "calls/epilogue.h"
#include "calls/quiet_call.h"
#include "calls/outer_frames.h"
#include "calls/tail_call.h"
#include "calls/traceback.h"
#include "golib_load.h"
#include "guard_env.h"
#include "guards/access.h"
#include "guards/iterators.h"
#include "guards/memo.h"
#include "interrupt.h"
#include "kept_codes.h"
#include "patience.h"
#include "random_words.h"
#include "replaced_builtins.h"
#include "runtime.h"
#include "set_layout.h"
#include "torch/shared_memory.h"
#include "torch/gradient_hooks.h"
#include "torch/kernels.h"
#include "torch/tensor_grad.h"
#include "torch/tensor_layout.h"
#include "torch/torch_modes.h"
#include "torch/torch_observers.h"

/* In the order of their dependencies. */
static int (*const parts[])(PyObject *) = {
    gd_extra_state_init,     gd_runtime_init,        gd_callbacks_init,
    gd_guard_env_init,       gd_guard_memo_init,     gd_tensor_layout_init,
    gd_shared_memory_init,   gd_frame_cache_init,    gd_callable_init,
    gd_module_handle_init,   gd_tail_call_init,      gd_outer_frames_init,
    gd_eval_frame_init,      gd_code_init,           gd_set_layout_init,
    gd_random_words_init,    gd_fork_init,           gd_golib_init,
    gd_core_api_init,        gd_census_init,         gd_quiet_call_init,
    gd_interrupt_init,       gd_patience_init,       gd_traceback_init,
    gd_load_method_init,     gd_kept_codes_init,     gd_access_init,
    gd_tensor_grad_init,     gd_gradient_hooks_init, gd_group_init,
    gd_epilogue_init,        gd_iterators_init,      gd_ahead_call_init,
    gd_kernels_init,         gd_torch_modes_init,    gd_replaced_builtins_init,
    gd_torch_observers_init,
};

static int
exec_module(PyObject *module)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "godynamo: subinterpreters are not supported");
        return -1;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i](module) < 0) {
            return -1;
        }
    }
    if (gd_code_mark(gd_look_code(), GD_CODE_OURS) < 0) {
        return -1;
    }
    return PyModule_AddIntConstant(module, "ABI_VERSION", GD_ABI_VERSION);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "godynamo._C",
    .m_doc = "The core of godynamo: optimized callables, guards, the eval-frame hook.",
    .m_size = 0,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__C(void)
{
    return PyModuleDef_Init(&definition);
}
