"""The torch names of docs/api.md, beyond the page's examples: other forms of the calls, and bad input."""

import contextlib
import pickle
import warnings

import pytest
import torch

import godynamo
from godynamo import config, exc, testing, utils
from godynamo.testing import CompileCounter


@pytest.fixture
def x():
    return torch.randn(3)


@pytest.fixture(autouse=True)
def _as_before():
    yield
    godynamo.set_default_backend(None)
    config.reset_config()


# ---- compile ----


def test_compile_takes_torch_compiles_arguments(x):
    counter = CompileCounter()

    @godynamo.compile(
        fullgraph=True, dynamic=False, backend=counter, name="mine", recompile_limit=2, isolate_recompiles=True
    )
    def f(x, n):
        return x + n

    for n in range(4):
        assert torch.equal(f(x, n), x + n)
    assert counter.frame_count == 2
    assert f.options.nopython
    assert f.options.name == "mine"
    plain = lambda x: x  # noqa: E731
    assert godynamo.compile(plain, disable=True) is plain


def test_compiles_signature_is_torch_compiles():
    import inspect

    ours, theirs = inspect.signature(godynamo.compile), inspect.signature(torch.compile)
    if torch.__version__.startswith("2.15"):
        assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
            (p.name, p.kind, p.default) for p in theirs.parameters.values()
        ]


def test_compiles_backend_is_inductor_unless_another_is_set():
    f = godynamo.compile(lambda x: x)
    assert f.options.backend_name == "inductor"
    godynamo.set_default_backend("aot_eager")
    assert godynamo.compile(lambda x: x).options.backend_name == "aot_eager"
    assert godynamo.optimize(lambda x: x).options.backend_name == "aot_eager"
    godynamo.set_default_backend("eager")
    assert godynamo.compile(lambda x: x).options.inline


def test_a_guard_filter_is_left_out_with_a_warning(x):
    with pytest.warns(RuntimeWarning, match="every guard is kept"):
        f = godynamo.compile(lambda x, n: x + n, backend="eager", options={"guard_filter_fn": lambda rows: []})
    f(x, 1)
    assert torch.equal(f(x, 2), x + 2)


def test_compile_module_changes_the_module_in_place(x):
    counter = CompileCounter()
    model = torch.nn.Linear(3, 2)
    expected = model(x)
    assert godynamo.compile_module(model, backend=counter) is None
    assert torch.equal(model(x), expected)
    assert counter.frame_count == 1
    assert type(model) is torch.nn.Linear
    assert list(model.state_dict()) == ["weight", "bias"]
    copy = pickle.loads(pickle.dumps(model))
    assert torch.equal(copy(x), expected)
    assert counter.frame_count == 1
    with pytest.raises(TypeError, match="is no torch.nn.Module"):
        godynamo.compile_module(lambda x: x)


def test_a_default_backend_is_used_by_optimize_alone_and_not_by_explain(x):
    counter = CompileCounter()
    godynamo.set_default_backend(counter)
    godynamo.optimize(lambda x: x + 1)(x)
    assert counter.frame_count == 1
    godynamo.explain(lambda x: x + 1)(x)
    godynamo.optimize(lambda x: x + 1, backend="eager")(x)
    assert counter.frame_count == 1
    assert godynamo.get_default_backend() is counter


# ---- marks ----


def test_forbid_in_graph_is_an_error_under_nopython(x):
    @godynamo.forbid_in_graph
    def never(x):
        return x * 2

    with pytest.raises(exc.Unsupported, match="forbid_in_graph"):
        godynamo.optimize(lambda x: never(x) + 1, nopython=True)(x)
    assert torch.equal(godynamo.optimize(lambda x: never(x) + 1)(x), x * 2 + 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_nonstrict_trace_is_one_node_and_leaves_its_function_alone(x, backend):
    weight = torch.randn(3)

    def scaled(pair, n):
        if pair[0].sum() > -1e9:  # would break the graph
            return {"out": pair[0] * weight + n}
        return None

    traced = godynamo.nonstrict_trace(scaled)
    f = godynamo.optimize(lambda x: traced((x, x + 1), 2)["out"] - 1, backend=backend, nopython=True)
    assert torch.equal(f(x), x * weight + 2 - 1)
    assert traced.__name__ == "scaled"


def test_marks_on_dimensions_are_torchs_own(x):
    t = torch.zeros(2, 3, 4)
    godynamo.mark_dynamic(t, [0, -1], min=1, max=9)
    godynamo.maybe_mark_dynamic(t, 1)
    godynamo.mark_static(t)
    godynamo.mark_unbacked(t, 1)
    assert t._dynamo_dynamic_indices == {0, 2}
    assert t._dynamo_weak_dynamic_indices == {1}
    assert t._dynamo_static_indices == {0, 1, 2}
    assert t._dynamo_unbacked_indices == {1}
    godynamo.mark_static_address(t, guard=True)
    assert t._dynamo_static_input_type == "guarded"


# ---- backends ----


def test_tags_leave_backends_out_of_the_list():
    @godynamo.register_backend(name="tagged_one", tags=("debug", "slow"))
    def backend(gm, example_inputs):
        return gm.forward

    assert "tagged_one" not in godynamo.list_backends()
    assert "tagged_one" in godynamo.list_backends(exclude_tags=None)
    assert "tagged_one" in godynamo.list_backends(exclude_tags=["experimental"])
    assert "tagged_one" not in godynamo.list_backends(exclude_tags=["slow"])
    assert godynamo.lookup_backend("tagged_one") is backend


# ---- caches, times ----


def test_remove_from_cache_drops_one_callables_entries_and_those_of_its_resume_functions(x):
    f = godynamo.optimize(lambda x: (x + 1, godynamo.graph_break(), x * 2)[2])
    g = godynamo.optimize(lambda x: x - 1)
    f(x)
    g(x)
    assert (godynamo.cache_size(f), godynamo.cache_size(g)) == (2, 1)
    godynamo.remove_from_cache(f)
    assert (godynamo.cache_size(f), godynamo.cache_size(g)) == (0, 1)
    assert torch.equal(f(x), x * 2)
    assert godynamo.cache_size(f) == 2


def test_decompile_shows_each_entry(x):
    def double(x, n):
        return (x + n).sin()

    f = godynamo.optimize(double)
    f(x, 1)
    f(x, 2)
    text = godynamo.decompile(f)
    assert text.count("def ") == 2
    assert "# double, " in text
    assert "2 of 2, 1 hits" in text
    assert ".sin()" in text


def test_decompile_without_depyf_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "depyf", None)
    with pytest.raises(ImportError, match="pip install depyf"):
        godynamo.decompile(godynamo.optimize(lambda x: x))


def test_compile_times_in_its_forms(x):
    godynamo.optimize(lambda x: x + 1, backend=lambda gm, example_inputs: gm.forward)(x)
    phases, values = utils.compile_times("csv")
    assert phases == ["backend", "graph_module", "translate"]
    assert all(v.startswith("1;") and len(v.split(";")) == 3 for v in values)
    assert len(utils.compile_times("csv", aggregate=True)[1][0].split(";")) == 1
    table = utils.compile_times().splitlines()
    assert [line.split()[:2] for line in table] == [["phase", "calls"], *([p, "1"] for p in phases)]
    assert utils.compile_times(aggregate=True).splitlines()[0].split() == ["phase", "sum", "s"]


def test_compilation_metrics_tell_of_each_translation(x):
    def f(x, n):
        return x + n

    g = godynamo.optimize(f)
    g(x, 1)
    g(x, 2)
    first, second = utils.get_compilation_metrics()
    assert (first.co_name, first.co_filename, first.cache_size, first.recompile_reason) == ("f", __file__, 0, None)
    assert (second.cache_size, second.graph_op_count, second.graph_count, second.fail_reason) == (1, 1, 1, None)
    assert "n == 1" in second.recompile_reason
    assert second.entire_frame_compile_time_s > 0
    utils.set_compilation_metrics_limit(1)
    assert utils.get_compilation_metrics() == [second]
    utils.set_compilation_metrics_limit(64)
    utils.clear_compilation_metrics()
    assert utils.get_compilation_metrics() == []


def test_compile_profiler_reports_breaks_and_recompiles_since_it_was_made(x):
    godynamo.optimize(lambda x: (x + 1, godynamo.graph_break("before")))(x)
    with utils.CompileProfiler() as prof:

        @godynamo.optimize(backend=prof)
        def f(x, n):
            y = x + n
            godynamo.graph_break("during")
            return y * 2

        f(x, 1)
        f(x, 2)
    report = prof.report()
    assert "graphs: 4, operations: 4" in report or "graphs: 3, operations: 3" in report
    assert "during" in report
    assert "before" not in report
    assert "recompiled: " in report
    assert "n == 1" in report


# ---- settings ----


def test_error_on_recompile_allows_the_first_translation_alone(x):
    f = godynamo.optimize(lambda x, n: x + n)
    with config.patch(error_on_recompile=True):
        assert torch.equal(f(x, 1), x + 1)
        with pytest.raises(exc.RecompileError, match=r"error_on_recompile:(.|\n)*n: expected 1, seen 2"):
            f(x, 2)
    assert torch.equal(f(x, 2), x + 2)


def test_fail_on_recompile_limit_hit(x):
    f = godynamo.optimize(lambda x, n: x + n, dynamic=False)
    with config.patch(fail_on_recompile_limit_hit=True, recompile_limit=2):
        f(x, 1)
        f(x, 2)
        with pytest.raises(exc.FailOnRecompileLimitHit, match="reached config.cache_size_limit = 2"):
            f(x, 3)
        assert torch.equal(f(x, 1), x + 1)
    with config.patch(recompile_limit=2):
        assert torch.equal(f(x, 3), x + 3)


def test_settings_can_be_saved_and_loaded():
    config.recompile_limit = 3
    config.tensor_guards = "full"
    assert config.codegen_config() == "godynamo.config.cache_size_limit = 3\ngodynamo.config.tensor_guards = 'full'"
    saved = config.save_config()
    config.reset_config()
    assert config.cache_size_limit == 8
    config.load_config(saved)
    assert (config.cache_size_limit, config.recompile_limit, config.tensor_guards) == (3, 3, "full")
    with pytest.raises(AttributeError, match="near it: cache_size_limit"):
        config.load_config({"tensor_guards": "used", "cache_size_limits": 3})
    assert config.tensor_guards == "full"
    config.load_config({"tensor_guards": "used"})
    assert config.tensor_guards == "used"


def test_disable_cache_limit(x):
    f = godynamo.optimize(lambda x, n: x + n, dynamic=False)
    with utils.disable_cache_limit():
        for n in range(12):
            f(x, n)
    assert godynamo.cache_size(f) == 12


# ---- testing ----


def test_recording_backends(x):
    eager, aot = testing.EagerAndRecordGraphs(), testing.AotEagerAndRecordGraphs()
    w = torch.randn(3, requires_grad=True)

    def f(x):
        return (x * w).sin()

    assert torch.equal(godynamo.optimize(f, backend=eager)(x), f(x))
    out = godynamo.optimize(f, backend=aot)(x)
    out.sum().backward()
    assert torch.allclose(out, f(x))
    assert (len(eager.graphs), len(aot.graphs), len(aot.fw_graphs), len(aot.bw_graphs)) == (1, 1, 1, 1)
    text = testing.normalize_gm(eager.graphs[0].print_readable(print_output=False))
    assert "sin" in text
    assert "#" not in text


def test_reset_rng_state():
    testing.reset_rng_state()
    a = torch.randn(2)
    testing.reset_rng_state()
    assert torch.equal(a, torch.randn(2))


def test_optimized_modules_are_known_and_show_what_is_behind_them(x):
    model = torch.nn.Linear(3, 3)
    handle = godynamo.optimize(model)
    assert handle._orig_mod is model
    assert isinstance(handle, godynamo.OptimizedModule)
    assert not isinstance(model, godynamo.OptimizedModule)
    assert not isinstance(godynamo.disable(model), godynamo.OptimizedModule)
    assert not isinstance(3, godynamo.OptimizedModule)
    assert list(handle.state_dict()) == ["weight", "bias"]

    class Wrapper(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self._orig_mod = model

        def forward(self, x):
            return self._orig_mod(x) + 1

    wrapped = godynamo.optimize(Wrapper())
    assert wrapped._orig_mod is model
    assert torch.equal(wrapped.forward(x), model(x) + 1)
    assert torch.equal(wrapped(x), model(x) + 1)


# ---- bad input ----


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: godynamo.compile(lambda x: x, backend="inductr"), exc.InvalidBackend, "near it: 'inductor'"),
        (lambda: godynamo.compile(3), TypeError, "not 3"),
        (lambda: godynamo.compile(lambda x: x, mode="reduce-overhead", options={"a": 1}), ValueError, "not both"),
        (lambda: godynamo.set_default_backend("inductr"), ValueError, "near it: 'inductor'"),
        (lambda: godynamo.set_default_backend(3), TypeError, "a name or a callable"),
        (lambda: godynamo.lookup_backend(3), TypeError, "a name or a callable"),
        (
            lambda: godynamo.mark_dynamic(torch.ones(2), 2),
            IndexError,
            "dimension 2 is out of range for a tensor of 1 dimension",
        ),
        (lambda: godynamo.mark_dynamic(torch.ones(2), 0, min=3, max=2), ValueError, "min=3 is over max=2"),
        (
            lambda: godynamo.mark_unbacked([1], 0),
            TypeError,
            r"only a tensor\'s dimensions can be marked, not those of \[1\]",
        ),
        (lambda: godynamo.mark_static_address(3), TypeError, "a tensor"),
        (lambda: godynamo.forbid_in_graph(3), TypeError, "a callable is needed, not 3"),
        (lambda: godynamo.nonstrict_trace(3), TypeError, "needs a callable, not 3"),
        (lambda: godynamo.cache_size(len), TypeError, "an optimized callable is needed"),
        (lambda: godynamo.remove_from_cache(len), TypeError, "an optimized callable is needed"),
        (lambda: godynamo.decompile(len), TypeError, "an optimized callable is needed"),
        (lambda: godynamo.OptimizedModule(None), TypeError, "makes an OptimizedModule"),
        (lambda: utils.compile_times("table"), ValueError, "'str' or 'csv', not 'table'"),
        (lambda: utils.set_compilation_metrics_limit(-1), ValueError, "not -1"),
        (lambda: config.load_config(3), TypeError, "result of save_config"),
        (lambda: config.load_config({"cache_size_limit": "x"}), TypeError, "must be of type int"),
    ],
)
def test_bad_input(make, error, text):
    with pytest.raises(error, match=text), contextlib.suppress(Warning), warnings.catch_warnings():
        make()
