"""Lists names of torch.compiler and torch._dynamo that godynamo does not have, with the reasons.

Of torch's settings (``config.name``), only those about sizes are listed.
"""

from __future__ import annotations

_DISK = "config.cache_dir stores translations (docs/cache.md)"
_ALL_GUARDS = "every guard is kept: leaving some out may give wrong results, and a hit costs less than a microsecond"

#: name -> reason
NOT_BUILT = {
    "load_compiled_function": _DISK,
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
    "override_optimization_hint": "no code of godynamo depends on a hint for a number known at run time only",
    "allow_c_slot": "the translator knows a C type, or breaks the graph",
    "bytecode_debugger": "godynamo.comptime has breakpoint()",
    "dont_skip_tracing": "only torch internals and marked functions are skipped",
    "leaf_function": "allow_in_graph and nonstrict_trace put a call into the graph as one node",
    "replay": "translations are not recorded",
    "reset_recompile_user_contexts": "recompile reasons have no user context",
    "set_recursion_limit": "sys.setrecursionlimit is the limit",
    "config.allow_unspec_int_on_nn_module": "an int of a module is a symbol once it has changed",
    "config.automatic_dynamic_exclusion_guard": "entries for constant sizes stay, and are tried first",
    "config.automatic_dynamic_local_pgo": "which sizes vary is not written to disk",
    "config.automatic_dynamic_remote_pgo": "which sizes vary is not written to disk",
    "config.automatic_dynamic_shapes_mark_as": "a size that varies decides branches; unbacked_sources lists others",
    "config.capture_dynamic_output_shape_ops": "operations whose result's sizes depend on data are always captured",
    "config.do_not_emit_runtime_asserts": "a graph has only the assertions of the program",
    "config.enable_cpp_symbolic_shape_guards": "conditions on sizes are always checked in C",
    "config.force_unspec_int_unbacked_size_like_on_torchrec_kjt": "classes of torchrec are treated as all others",
    "config.prefer_deferred_runtime_asserts_over_guards": "export() has a parameter of this name; optimize() guards",
    "step_unsupported": "skip_frame leaves the whole frame to CPython; graph_break breaks the graph",
}
