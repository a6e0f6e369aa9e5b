"""Lists names of torch.compiler and torch._dynamo that godynamo does not have, with the reasons."""

from __future__ import annotations

_SYMBOLS = "sizes are constants of a translation"
_DISK = "translations are not written to disk yet"
_ALL_GUARDS = "every guard is kept: leaving some out may give wrong results, and a hit costs less than a microsecond"

#: name -> reason
NOT_BUILT = {
    "save_cache_artifacts": _DISK,
    "load_cache_artifacts": _DISK,
    "load_compiled_function": _DISK,
    "precompile": _DISK,
    "PrecompileError": _DISK,
    "keep_portable_guards_unsafe": _ALL_GUARDS,
    "keep_tensor_guards_unsafe": _ALL_GUARDS,
    "skip_all_guards_unsafe": _ALL_GUARDS,
    "skip_guard_on_all_nn_modules_unsafe": _ALL_GUARDS,
    "skip_guard_on_globals_unsafe": _ALL_GUARDS,
    "skip_guard_on_inbuilt_nn_modules_unsafe": _ALL_GUARDS,
    "set_enable_guard_collectives": "each process translates for itself",
    "cudagraph_mark_warmup_incomplete": "call the function of torch.compiler",
    "override_cudagraphs": "the backend decides: pass it options",
    "override_optimization_hint": _SYMBOLS,
    "allow_c_slot": "the translator knows a C type, or breaks the graph",
    "bytecode_debugger": "godynamo.comptime has breakpoint()",
    "dont_skip_tracing": "only torch internals and marked functions are skipped",
    "leaf_function": "allow_in_graph and nonstrict_trace put a call into the graph as one node",
    "replay": "translations are not recorded",
    "reset_recompile_user_contexts": "recompile reasons have no user context",
    "set_recursion_limit": "sys.setrecursionlimit is the limit",
    "step_unsupported": "skip_frame leaves the whole frame to CPython; graph_break breaks the graph",
}
