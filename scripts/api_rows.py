"""The rows of docs/api.md: name, torch's name, difference, example. test_api_table.py runs every example.

An example is an expression whose value is true. It can use ``torch``, ``godynamo``, ``x`` (a tensor of three ones),
``f`` (``lambda x: x + 1``, optimized), ``plain`` (the same, not optimized) and ``model`` (torch.nn.Linear(3, 3)).
"""

from __future__ import annotations

from dataclasses import dataclass

COMPILER, DYNAMO = "torch.compiler.", "torch._dynamo."


@dataclass(frozen=True)
class Row:
    """A row. ``name`` is a name in godynamo, and ``torch`` is torch's full name for it, or ""."""

    name: str
    torch: str
    example: str
    difference: str = "none"


_OURS = "godynamo's own"
_FOR_COMPILERS = "; hint_override and specialize_on are for torch's compilers"

#: (heading, rows)
GROUPS: list[tuple[str, list[Row]]] = [
    (
        "Translating",
        [
            Row(
                "optimize",
                "torch._dynamo.optimize",
                "godynamo.optimize(plain)(x).equal(x + 1)",
                "a function, method, module or backend; also a context manager; the default backend writes graphs "
                "inline",
            ),
            Row(
                "optimize_assert",
                "torch._dynamo.optimize_assert",
                "godynamo.optimize_assert('eager')(plain)(x).equal(x + 1)",
            ),
            Row(
                "compile",
                "torch.compile",
                "godynamo.compile(plain, backend='eager', fullgraph=True)(x).equal(x + 1)",
                "torch.compiler.compile as well; no derived sizes and assumptions in dynamic_shapes; "
                "options={'guard_filter_fn': ...} is ignored with a warning",
            ),
            Row(
                "compile_module",
                "torch.nn.Module.compile",
                "godynamo.compile_module(model, backend='eager') is None and model(x).equal(model._call_impl(x))",
                "a function",
            ),
            Row(
                "OptimizedModule",
                "torch._dynamo.OptimizedModule",
                "isinstance(o := godynamo.optimize(model), godynamo.OptimizedModule) and o._orig_mod is model",
                "for isinstance() only: optimize() returns an instance of the module's own class, whose state_dict keys have "
                "no prefix",
            ),
            Row(
                "export",
                "torch._dynamo.export",
                "godynamo.export(plain)(x).graph_module(x).equal(x + 1) and "
                "godynamo.export(plain, (x,), dynamic_shapes=({0: torch.export.Dim('n')},)).module()(x).equal(x + 1)",
                "with arguments or dynamic_shapes, torch.export.export: functions as well, errors name the user's "
                "lines, no preserve_module_call_signature; without, no constraints, constant sizes, .guards holds texts",
            ),
            Row(
                "run",
                "torch._dynamo.run",
                "godynamo.run(f)(x).equal(x + 1) and godynamo.cache_size(f) == 0",
                "also `with run():`",
            ),
            Row(
                "disable",
                "torch.compiler.disable",
                "godynamo.disable(plain, reason='slow')(x).equal(x + 1)",
                "also `with disable():`; recursive=False is skip, which returns the function itself; no wrapping=",
            ),
            Row("skip", "torch._dynamo.decorators.skip", "godynamo.skip(plain) is plain"),
            Row(
                "error_on_graph_break",
                "torch._dynamo.error_on_graph_break",
                "godynamo.error_on_graph_break(True)(plain)(x).equal(x + 1)",
                "after an allowed break inside a block where breaks are errors, the rest of the function is outside that "
                "block",
            ),
            Row(
                "skip_frame",
                "torch._dynamo.skip_frame",
                "godynamo.skip_frame('why') is None",
                "skips this call only",
            ),
            Row("graph_break", "torch._dynamo.graph_break", "godynamo.graph_break('why') is None"),
            Row(
                "set_stance",
                "torch.compiler.set_stance",
                "godynamo.set_stance('force_eager')(f)(x).equal(x + 1) and godynamo.cache_size(f) == 0",
                "no force_backend; skip_guard_eval_unsafe skips nothing; aot_eager_then_compile is eager_then_compile; "
                "in captured code it breaks the graph, where torch raises; torch's own stance has no effect",
            ),
            Row("get_stance", "", "godynamo.get_stance() == 'default'", _OURS),
            Row("reset", "torch.compiler.reset", "(f(x), godynamo.reset(), godynamo.cache_size(f))[2] == 0"),
            Row(
                "reset_code_caches",
                "torch._dynamo.reset_code_caches",
                "(f(x), godynamo.reset_code_caches(), godynamo.utils.counters['frames']['ok'])[2] == 1",
            ),
            Row(
                "precompile",
                "torch.compiler.precompile",
                "godynamo.precompile(f, [x])[1].translations == 1",
                "a function that returns translations as bytes, where torch's module captures calls as source",
            ),
            Row(
                "warm_up",
                "",
                "godynamo.warm_up(f, [x]).settled",
                _OURS,
            ),
            Row(
                "wait_for_compilation",
                "",
                "godynamo.wait_for_compilation()",
                _OURS,
            ),
            Row(
                "save_cache_artifacts",
                "torch.compiler.save_cache_artifacts",
                "len(godynamo.save_cache_artifacts() or (b'', 0)) == 2",
                "returns translations of config.cache_dir, and the number of them; call torch's for its compilers",
            ),
            Row(
                "load_cache_artifacts",
                "torch.compiler.load_cache_artifacts",
                "[*godynamo.load_cache_artifacts.__annotations__] == ['serialized_artifacts', 'return']",
                "stores translations in config.cache_dir; ValueError if there is no folder or the bytes are damaged",
            ),
            Row(
                "remove_from_cache",
                "torch._dynamo.eval_frame.remove_from_cache",
                "(f(x), godynamo.remove_from_cache(f), godynamo.cache_size(f))[2] == 0",
                "takes the result of optimize()",
            ),
            Row(
                "nested_compile_region",
                "torch.compiler.nested_compile_region",
                "godynamo.nested_compile_region(plain) is plain",
                "has no effect: equal layers are captured once without a mark",
            ),
            Row(
                "disable_nested_graph_breaks",
                "torch._dynamo.disable_nested_graph_breaks",
                "godynamo.disable_nested_graph_breaks(plain) is plain",
                "has no effect: there are no nested graph breaks",
            ),
        ],
    ),
    (
        "How functions are translated",
        [
            Row(
                "allow_in_graph",
                "torch.compiler.allow_in_graph",
                "(a := godynamo.allow_in_graph(lambda x: x + 1)) and godynamo.explain(lambda x: a(x))(x).op_count == 1",
                "torch's own mark has the same effect",
            ),
            Row(
                "disallow_in_graph",
                "torch._dynamo.disallow_in_graph",
                "(d := godynamo.disallow_in_graph(lambda x: x * 2)) and godynamo.explain(lambda x: d(x + "
                "1))(x).graph_break_count == 1",
                "for any callable; torch's own mark has the same effect",
            ),
            Row(
                "forbid_in_graph",
                "torch._dynamo.forbid_in_graph",
                "(d := godynamo.forbid_in_graph(lambda x: x * 2)) and godynamo.explain(lambda x: d(x + "
                "1))(x).graph_break_count == 1",
            ),
            Row(
                "nonstrict_trace",
                "torch.compiler.nonstrict_trace",
                "(n := godynamo.nonstrict_trace(lambda d: d['x'] + 1)) and godynamo.explain(lambda x: n({'x': "
                "x}))(x).op_count == 1",
                "one node for every backend; arguments are tensors, plain values and containers of them",
            ),
            Row(
                "substitute_in_graph",
                "torch.compiler.substitute_in_graph",
                "callable(godynamo.substitute_in_graph(lambda x: x, skip_signature_check=True))",
                "no is_embedded_type=",
            ),
            Row(
                "assume_constant_result",
                "torch.compiler.assume_constant_result",
                "(c := godynamo.assume_constant_result(lambda: 7)) and godynamo.optimize(lambda x: x * c())(x).equal(x "
                "* 7)",
                "torch's own mark has the same effect",
            ),
            Row(
                "is_dynamo_disable_recursive",
                "torch._dynamo.is_dynamo_disable_recursive",
                "godynamo.is_dynamo_disable_recursive(godynamo.disable(plain)) is True",
            ),
            Row("innermost_fn", "torch._dynamo.eval_frame.innermost_fn", "godynamo.innermost_fn(f)(x).equal(x + 1)"),
            Row(
                "wrap_numpy",
                "torch.compiler.wrap_numpy",
                "godynamo.wrap_numpy(lambda a: a + 1)(x).equal(x + 1)",
                "torch's own; calls break the graph",
            ),
        ],
    ),
    (
        "Where code runs",
        [
            Row(
                "is_compiling",
                "torch.compiler.is_compiling",
                "godynamo.optimize(lambda x: x + godynamo.is_compiling())(x).equal(x + 1)",
                "torch.compiler.is_compiling is True in captured code as well",
            ),
            Row("is_dynamo_compiling", "torch.compiler.is_dynamo_compiling", "godynamo.is_dynamo_compiling() is False"),
            Row("is_exporting", "torch.compiler.is_exporting", "godynamo.is_exporting() is False", "never True"),
            Row(
                "is_dynamo_supported",
                "torch._dynamo.eval_frame.is_dynamo_supported",
                "godynamo.is_dynamo_supported() is True",
            ),
            Row(
                "cudagraph_mark_step_begin",
                "torch.compiler.cudagraph_mark_step_begin",
                "callable(godynamo.cudagraph_mark_step_begin)",
                "torch's own",
            ),
        ],
    ),
    (
        "Sizes",
        [
            Row(
                name,
                torch,
                f"godynamo.{name}(x, 0) is None",
                "the mark is stored on the tensor, and torch.compile sees it" + difference,
            )
            for name, torch, difference in (
                ("mark_dynamic", "torch._dynamo.mark_dynamic", _FOR_COMPILERS),
                ("maybe_mark_dynamic", "torch._dynamo.maybe_mark_dynamic", ""),
                ("mark_unbacked", "torch._dynamo.decorators.mark_unbacked", _FOR_COMPILERS),
                ("mark_static", "torch._dynamo.mark_static", "; on a class of modules it has no effect here"),
            )
        ]
        + [
            Row(
                "mark_static_address",
                "torch._dynamo.mark_static_address",
                "godynamo.mark_static_address(x) is None",
                "inductor uses the tensor where it is in CUDA graphs, and need not copy it",
            ),
        ],
    ),
    (
        "Backends",
        [
            Row(
                "list_backends",
                "torch.compiler.list_backends",
                "'inductor' in godynamo.list_backends()",
                "includes godynamo's own and those of entry points",
            ),
            Row("lookup_backend", "torch._dynamo.lookup_backend", "callable(godynamo.lookup_backend('aot_eager'))"),
            Row(
                "register_backend",
                "torch._dynamo.register_backend",
                "callable(godynamo.register_backend(lambda gm, i: gm.forward, name='mine', tags=['debug']))",
                "torch.compile does not see the backend; `supports_dynamic_shapes=True`, or an attribute of this name, "
                "declares that the backend takes symbols",
            ),
            Row(
                "register_debug_backend",
                "torch._dynamo.backends.registry.register_debug_backend",
                "godynamo.register_debug_backend(lambda gm, i: gm.forward, name='d') and 'd' not in "
                "godynamo.list_backends()",
            ),
            Row(
                "register_experimental_backend",
                "torch._dynamo.backends.registry.register_experimental_backend",
                "godynamo.register_experimental_backend(lambda gm, i: gm.forward, name='e') and 'e' in "
                "godynamo.list_backends(None)",
            ),
            Row(
                "set_default_backend",
                "torch.compiler.set_default_backend",
                "godynamo.set_default_backend(None) is None",
            ),
            Row(
                "get_default_backend",
                "torch.compiler.get_default_backend",
                "godynamo.get_default_backend() == 'eager'",
                'of optimize(); that of compile() is "inductor" unless one is set',
            ),
        ],
    ),
    (
        "Inspection",
        [
            Row(
                "set_logs",
                "torch._logging.set_logs",
                "(godynamo.set_logs(graph_breaks=True), godynamo.set_logs())[0] is None",
                "the artefacts of docs/logs.md; TORCH_LOGS controls those of torch's compilers",
            ),
            Row(
                "explain",
                "torch._dynamo.explain",
                "godynamo.explain(plain)(x).graph_count == 1",
                "of one call; also lists what was not captured",
            ),
            Row("guards", "", "(f(x), 'x' in str(godynamo.guards(f)[0]))[1]", _OURS),
            Row("cache_entries", "", "(f(x), godynamo.cache_entries(f)[0].valid)[1]", _OURS),
            Row("cache_stats", "", "(f(x), f(x), godynamo.cache_stats(f)['hits'])[2] == 1", _OURS),
            Row("cache_size", "", "(f(x), godynamo.cache_size(f))[1] == 1", _OURS),
            Row("decompile", "", "(f(x), 'def ' in godynamo.decompile(f))[1]", "godynamo's own; needs depyf"),
        ],
    ),
    (
        "comptime",
        [
            Row(
                "comptime", "torch._dynamo.comptime", "godynamo.comptime.comptime is not None", "a module, like torch's"
            ),
            Row(
                "comptime.comptime",
                "torch._dynamo.comptime.comptime",
                "(seen := []) == [] and (godynamo.optimize(lambda x: (x + 1, godynamo.comptime.comptime(lambda ctx: "
                "seen.append(ctx.get_local('x').size()))))(x), seen)[1] == [(3,)]",
                "closures return known values; also sleep; an exception in the function becomes exc.ComptimeError",
            ),
            Row(
                "comptime.ComptimeContext",
                "torch._dynamo.comptime.ComptimeContext",
                "hasattr(godynamo.comptime.ComptimeContext, 'print_locals')",
                "graph() is a copy; guards are shown by kind and place",
            ),
            Row(
                "comptime.ComptimeVar",
                "torch._dynamo.comptime.ComptimeVar",
                "hasattr(godynamo.comptime.ComptimeVar, 'as_fake')",
                "as_proxy() returns a node of a copy of the graph; questions add no guards",
            ),
        ],
    ),
    (
        "callback",
        [
            Row(
                "callback",
                "torch._dynamo.callback",
                "godynamo.callback.callback_handler is not None",
                "a module, like torch's",
            ),
            Row(
                "callback.on_compile_start",
                "torch._dynamo.callback.on_compile_start",
                "(told := []) == [] and godynamo.callback.on_compile_start(told.append) and (f(x), len(told))[1] == 1",
                "called for every translation; an exception in a callback is reported, not raised",
            ),
            Row(
                "callback.on_compile_end",
                "torch._dynamo.callback.on_compile_end",
                "(told := []) == [] and godynamo.callback.on_compile_end(told.append) and (f(x), len(told))[1] == 1",
            ),
            Row(
                "callback.callback_handler",
                "torch._dynamo.callback.callback_handler",
                "godynamo.callback.callback_handler.clear() is None",
            ),
            Row(
                "callback.CompilationCallbackHandler",
                "torch._dynamo.callback.CompilationCallbackHandler",
                "isinstance(godynamo.callback.callback_handler, godynamo.callback.CompilationCallbackHandler)",
                "no install_callbacks",
            ),
            Row(
                "callback.CallbackArgs",
                "torch._dynamo.callback.CallbackArgs",
                "godynamo.callback.CallbackArgs(godynamo.callback.CallbackTrigger.DYNAMO, '0/0').compile_id == '0/0'",
                "also `code`; compile_id is code object/entries",
            ),
            Row(
                "callback.CallbackTrigger",
                "torch._dynamo.callback.CallbackTrigger",
                "godynamo.callback.CallbackTrigger.DYNAMO.value == 1",
                "always DYNAMO",
            ),
        ],
    ),
    (
        "config",
        [
            Row(
                "config",
                "torch._dynamo.config",
                "godynamo.config.cache_size_limit == 8",
                "a separate module with its own settings",
            ),
            Row(
                "config.patch",
                "torch._dynamo.config.patch",
                "(godynamo.config.patch(recompile_limit=2)(lambda: godynamo.config.cache_size_limit))() == 2",
            ),
            Row(
                "patch_dynamo_config",
                "torch._dynamo.patch_dynamo_config",
                "godynamo.patch_dynamo_config is godynamo.config.patch",
                "in captured code it breaks the graph; every setting can be changed",
            ),
            Row("config.get_config", "", "'suppress_errors' in godynamo.config.get_config()", _OURS),
            Row(
                "config.get_config_copy",
                "torch._dynamo.config.get_config_copy",
                "'suppress_errors' in godynamo.config.get_config_copy()",
            ),
            Row("config.reset_config", "", "godynamo.config.reset_config() is None", _OURS),
            Row(
                "config.save_config", "torch._dynamo.config.save_config", "type(godynamo.config.save_config()) is bytes"
            ),
            Row(
                "config.load_config",
                "torch._dynamo.config.load_config",
                "godynamo.config.load_config(godynamo.config.save_config()) is None",
            ),
            Row(
                "config.codegen_config", "torch._dynamo.config.codegen_config", "godynamo.config.codegen_config() == ''"
            ),
            Row(
                "config.cache_size_limit",
                "torch._dynamo.config.cache_size_limit",
                "godynamo.config.cache_size_limit == 8",
                "per callable and code object",
            ),
            Row(
                "config.recompile_limit",
                "torch._dynamo.config.recompile_limit",
                "godynamo.config.recompile_limit == 8",
                "another name of cache_size_limit",
            ),
            Row(
                "config.error_on_recompile",
                "torch._dynamo.config.error_on_recompile",
                "godynamo.config.error_on_recompile is False",
            ),
            Row(
                "config.fail_on_recompile_limit_hit",
                "torch._dynamo.config.fail_on_recompile_limit_hit",
                "godynamo.config.fail_on_recompile_limit_hit is False",
            ),
            Row(
                "config.suppress_errors",
                "torch._dynamo.config.suppress_errors",
                "godynamo.config.suppress_errors is False",
                "for errors of backends; internal errors of godynamo never reach the user",
            ),
            Row(
                "config.verify_correctness",
                "torch._dynamo.config.verify_correctness",
                "godynamo.config.verify_correctness is False",
            ),
            Row(
                "config.guard_nn_modules",
                "torch._dynamo.config.guard_nn_modules",
                "godynamo.config.guard_nn_modules is True",
            ),
            Row(
                "config.raise_on_ctx_manager_usage",
                "torch._dynamo.config.raise_on_ctx_manager_usage",
                "godynamo.config.raise_on_ctx_manager_usage is False",
                "torch's default is True",
            ),
            Row("config.disable", "torch._dynamo.config.disable", "godynamo.config.disable is False"),
            Row(
                "config.traceable_tensor_subclasses",
                "torch._dynamo.config.traceable_tensor_subclasses",
                "godynamo.config.traceable_tensor_subclasses == frozenset()",
            ),
        ]
        + [
            Row(
                f"config.{name}",
                f"torch._dynamo.config.{name}",
                f"godynamo.config.{name} is {value}",
                "True is the default" if name == "capture_scalar_outputs" else "",
            )
            for name, value in (
                ("capture_scalar_outputs", True),
                ("specialize_int", False),
                ("specialize_float", False),
                ("dynamic_shapes", True),
            )
        ]
        + [
            Row(f"config.{name}", f"torch.compiler.config.{name}", f"godynamo.config.{name} == ''", difference)
            for name, difference in (
                ("dynamic_sources", "also without L[...]; not read from the environment"),
                ("unbacked_sources", "as dynamic_sources"),
                ("static_sources", "as dynamic_sources; a size that is never read is not compared"),
                ("dynamic_values", "not read from the environment"),
            )
        ]
        + [
            Row(f"config.{name}", f"torch._dynamo.config.{name}", f"godynamo.config.{name} is {value}", difference)
            for name, value, difference in (
                ("assume_static_by_default", True, "of ints and floats; sizes are symbols anyway"),
                ("automatic_dynamic_shapes", True, "False: only what is marked or listed is a symbol"),
                ("force_parameter_static_shapes", True, "none"),
                ("force_nn_module_property_static_shapes", True, "none"),
                ("allow_ignore_mark_dynamic", False, "none"),
            )
        ]
        + [
            Row(
                "config.cache_dir",
                "",
                "type(godynamo.config.cache_dir) is str",
                "godynamo's own: folder of stored translations; GODYNAMO_CACHE_DIR, else in the user's cache",
            )
        ]
        + [
            Row(f"config.{name}", "", f"godynamo.config.{name} == {value}", f"godynamo's own: {what}")
            for name, value, what in (
                ("cache_evict", False, "at the limit, the least recently used entry is evicted"),
                ("queue_effects", True, "effects run after the graph instead of breaking it"),
                ("tensor_guards", "'used'", 'guard only the metadata that was read, or "full": all of it'),
                ("reuse_layers", True, "equal layers are captured once"),
                ("fork_reload", True, "a forked child may translate"),
                ("inner_limit", 4096, "code objects that the frame hook serves for one optimize()"),
                ("max_internal_errors", 0, "after so many, translation stops; 0: no limit"),
                ("max_translated_instructions", 200_000, "limit of instructions in one translation"),
                ("inline_depth_limit", 100, "of nested inlined calls"),
                ("translate_everything", False, "also frames without tensors; for tests"),
                ("python_ops", False, "calls of unknown Python functions become graph nodes"),
                ("cache_mib", 1024, "its largest size"),
                ("cache_min_ms", 2, "the least time in ms of a stored translation of a frame of the hook"),
                ("memory_mib", 0, "bound of the translations in memory; 0: none"),
                ("compile_aside", False, "inductor compiles in another process"),
                ("trace_dir", "''", "where a trace is written (GODYNAMO_TRACE)"),
                ("trace_file_mib", 64, "size of one trace file"),
                ("trace_files", 8, "number of trace files kept by one process"),
            )
        ],
    ),
    (
        "utils",
        [
            Row("utils", "torch._dynamo.utils", "godynamo.utils.counters is not None", "what users read of it"),
            Row(
                "utils.counters",
                "torch._dynamo.utils.counters",
                "(f(x), godynamo.utils.counters['stats']['unique_graphs'])[1] == 1",
                "frames, stats, graph_break and recompiles by reason",
            ),
            Row(
                "utils.orig_code_map",
                "torch._dynamo.utils.orig_code_map",
                "(f(x), f.__code__ in godynamo.utils.orig_code_map.values())[1]",
                "transformed code → the user's",
            ),
            Row(
                "utils.guard_failures",
                "torch._dynamo.utils.guard_failures",
                "(f(x), f(1), len(godynamo.utils.guard_failures[f.__code__]))[2] == 1",
                "texts; removed from torch",
            ),
            Row(
                "utils.compile_times",
                "torch._dynamo.utils.compile_times",
                "(f(x), 'translate' in godynamo.utils.compile_times('csv', aggregate=True)[0])[1]",
                "phases are godynamo's",
            ),
            Row(
                "utils.phase_seconds",
                "",
                "(f(x), godynamo.utils.phase_seconds('translate'))[1] > 0",
                "godynamo's own: one of compile_times' sums",
            ),
            Row(
                "utils.CompilationMetrics",
                "torch._dynamo.utils.CompilationMetrics",
                "(f(x), type(godynamo.utils.get_compilation_metrics()[0]) is godynamo.utils.CompilationMetrics)[1]",
                "nine fields, most under torch's names",
            ),
            Row(
                "utils.get_compilation_metrics",
                "torch._dynamo.utils.get_compilation_metrics",
                "(f(x), godynamo.utils.get_compilation_metrics()[-1].graph_op_count)[1] == 1",
            ),
            Row(
                "utils.clear_compilation_metrics",
                "torch._dynamo.utils.clear_compilation_metrics",
                "godynamo.utils.clear_compilation_metrics() is None",
            ),
            Row(
                "utils.set_compilation_metrics_limit",
                "torch._dynamo.utils.set_compilation_metrics_limit",
                "godynamo.utils.set_compilation_metrics_limit(64) is None",
            ),
            Row(
                "utils.disable_cache_limit",
                "torch._dynamo.utils.disable_cache_limit",
                "godynamo.utils.disable_cache_limit()(lambda: godynamo.config.cache_size_limit)() > 1000",
            ),
            Row(
                "utils.CompileProfiler",
                "torch._dynamo.utils.CompileProfiler",
                "(p := godynamo.utils.CompileProfiler()) and (godynamo.optimize(plain, backend=p)(x), 'graphs: 1' in "
                "p.report())[1]",
                "removed from torch",
            ),
            Row(
                "utils.CodeMap",
                "torch._dynamo.utils.ExactWeakKeyDictionary",
                "len(godynamo.utils.CodeMap()) == 0",
                "keyed by code object",
            ),
            Row(
                "utils.record_time",
                "",
                "godynamo.utils.record_time('mine', 0.1) is None",
                "godynamo's own: adds to compile_times",
            ),
            Row(
                "utils.record_compilation",
                "",
                "callable(godynamo.utils.record_compilation)",
                "godynamo's own: for the translator",
            ),
            Row(
                "utils.clear", "", "godynamo.utils.clear() is None", "godynamo's own: what reset() does to this module"
            ),
            Row(
                "utils.same",
                "torch._dynamo.utils.same",
                "godynamo.utils.same(x, x)",
                "same as testing.same: only tol and equal_nan, which is True",
            ),
        ],
    ),
    (
        "testing",
        [
            Row(
                "testing",
                "torch._dynamo.testing",
                "godynamo.testing.same is not None",
                "the parts that users' tests need",
            ),
            Row(
                "testing.CompileCounter",
                "torch._dynamo.testing.CompileCounter",
                "(c := godynamo.testing.CompileCounter()) and (godynamo.optimize(plain, backend=c)(x), c.frame_count, "
                "c.op_count)[1:] == (1, 1)",
            ),
            Row(
                "testing.CompileCounterWithBackend",
                "torch._dynamo.testing.CompileCounterWithBackend",
                "(c := godynamo.testing.CompileCounterWithBackend('eager')) and (godynamo.optimize(plain, "
                "backend=c)(x), len(c.graphs))[1] == 1",
            ),
            Row(
                "testing.EagerAndRecordGraphs",
                "torch._dynamo.testing.EagerAndRecordGraphs",
                "(c := godynamo.testing.EagerAndRecordGraphs()) and (godynamo.optimize(plain, backend=c)(x), "
                "len(c.graphs))[1] == 1",
            ),
            Row(
                "testing.AotEagerAndRecordGraphs",
                "torch._dynamo.testing.AotEagerAndRecordGraphs",
                "(c := godynamo.testing.AotEagerAndRecordGraphs()) and (godynamo.optimize(plain, backend=c)(x), "
                "len(c.fw_graphs))[1] == 1",
            ),
            Row(
                "testing.normalize_gm",
                "torch._dynamo.testing.normalize_gm",
                "godynamo.testing.normalize_gm('a = 1  # one') == 'a = 1\\n'",
            ),
            Row(
                "testing.reset_rng_state",
                "torch._dynamo.testing.reset_rng_state",
                "(godynamo.testing.reset_rng_state(), torch.initial_seed())[1] == 1337",
                "also numpy's; no XLA",
            ),
            Row(
                "testing.same",
                "torch._dynamo.testing.same",
                "godynamo.testing.same([x], [x.clone()])",
                "also compares types and structure; tol=0 compares bit by bit",
            ),
        ],
    ),
    (
        "exc",
        [
            Row("exc", "torch._dynamo.exc", "godynamo.exc.Unsupported is not None", "what users catch of it"),
            *(
                Row(
                    f"exc.{name}",
                    f"torch._dynamo.exc.{name}",
                    f"issubclass(godynamo.exc.{name}, godynamo.exc.TorchDynamoException)",
                    difference,
                )
                for name, difference in (
                    ("TorchDynamoException", "none"),
                    ("Unsupported", "code, reason, hint and stack of the break"),
                    ("TorchRuntimeError", "none"),
                    ("BackendCompilerFailed", "none"),
                    ("InternalTorchDynamoError", "logged, never raised"),
                    ("RecompileError", "raised by the stance and by config.error_on_recompile"),
                    ("FailOnRecompileLimitHit", "none"),
                    ("InvalidBackend", "also a ValueError"),
                )
            ),
            Row("exc.InvalidBackendResult", "", "issubclass(godynamo.exc.InvalidBackendResult, TypeError)", _OURS),
            Row(
                "exc.ComptimeError",
                "",
                "issubclass(godynamo.exc.ComptimeError, godynamo.exc.TorchDynamoException)",
                _OURS,
            ),
        ],
    ),
    (
        "overrides",
        [
            Row(
                "overrides",
                "torch.overrides",
                "godynamo.overrides.get_overloaded_types_and_args is not None",
                "Python implementation of the __torch_function__ helpers",
            ),
        ],
    ),
]

#: another name in torch → the name in godynamo
ELSEWHERE = {
    "torch.compiler.compile": "compile",
    "torch.compiler.config": "config",
    "torch._dynamo.list_backends": "list_backends",
    "torch._dynamo.allow_in_graph": "allow_in_graph",
    "torch._dynamo.assume_constant_result": "assume_constant_result",
    "torch._dynamo.disable": "disable",
    "torch._dynamo.is_compiling": "is_compiling",
    "torch._dynamo.nonstrict_trace": "nonstrict_trace",
    "torch._dynamo.reset": "reset",
    "torch._dynamo.set_stance": "set_stance",
    "torch._dynamo.substitute_in_graph": "substitute_in_graph",
}
