"""GraphModules built from node rows, and passed to backends. The rows are handwritten, so nothing is translated."""

import copy
import gc
import operator
import pickle
import weakref

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo import _C, config, exc
from godynamo._backends import named
from godynamo._backends.compiling import compile_fx
from godynamo._backends.rows import Ref
from godynamo.testing import same

ROWS = [
    ("placeholder", "x", "x", (), {}, ""),
    ("placeholder", "w", "w", (), {}, ""),
    ("placeholder", "b", "b", (), {}, ""),
    ("call_function", "linear", torch._C._nn.linear, (Ref(0), Ref(1), Ref(2)), {}, '  File "f.py", line 3, in f\n'),
    ("call_method", "sin", "sin", (Ref(3),), {}, ""),
    ("call_function", "add", operator.add, (Ref(4), 1), {}, ""),
    ("call_function", "getitem", operator.getitem, (Ref(5), (slice(None, 2, None), Ellipsis)), {}, ""),
    ("call_function", "cat", torch.cat, ([Ref(6), Ref(5)],), {"dim": 0}, ""),
    ("output", "output", "output", ((Ref(7), Ref(4)),), {}, ""),
]


def program(x, w, b):
    y = F.linear(x, w, b).sin()
    z = y + 1
    return torch.cat([z[:2], z], dim=0), y


def inputs(requires_grad=True):
    torch.manual_seed(0)
    return [torch.randn(*s, requires_grad=requires_grad) for s in ((4, 8), (16, 8), (16,))]


def gradients(fn):
    args = inputs()
    outputs = fn(*args)
    sum(o.square().sum() for o in outputs).backward()
    return [o.detach() for o in outputs], [a.grad for a in args]


def recording(gm, example_inputs):
    recording.seen = gm, example_inputs
    return gm.forward


def test_the_graph_module_is_a_real_one(capsys):
    args = inputs()
    compiled = compile_fx(ROWS, recording, "recording", args)
    gm, example_inputs = recording.seen
    assert isinstance(gm, torch.fx.GraphModule)
    assert all(a is b for a, b in zip(example_inputs, args, strict=True))
    gm.graph.lint()
    gm.graph.print_tabular()
    assert capsys.readouterr().out.count("call_function") == 4
    assert [n.name for n in gm.graph.nodes] == [row[1] for row in ROWS]
    assert next(n for n in gm.graph.nodes if n.name == "linear").stack_trace == ROWS[3][5]
    expected = program(*args)
    for call in (compiled, gm, pickle.loads(pickle.dumps(gm)), copy.deepcopy(gm)):
        result = call(*args)
        assert isinstance(result, tuple)
        assert all(torch.equal(a, b) for a, b in zip(result, expected, strict=True))
    gm.recompile()


def test_example_values_are_there_when_asked_for():
    compile_fx(ROWS, recording, "recording", inputs())
    meta = {n.name: n.meta for n in recording.seen[0].graph.nodes}
    assert not dict.__contains__(meta["linear"], "example_value"), "nothing is computed before"
    assert "example_value" in meta["linear"]
    assert meta["linear"]["example_value"].shape == (4, 16)
    assert meta["cat"].get("example_value").shape == (6, 16)
    assert meta["x"]["example_value"].requires_grad
    assert meta["x"].get("val") is None
    with pytest.raises(KeyError):
        meta["x"]["val"]


def test_a_single_output_and_odd_constants():
    weight = torch.randn(3)
    generator = torch.Generator()
    rows = [
        ("placeholder", "x", "x", (), {}, ""),
        ("call_function", "add", operator.add, (Ref(0), weight), {}, ""),
        ("call_function", "view", torch.reshape, (Ref(1), torch.Size([3, 1])), {}, ""),
        ("call_method", "bernoulli", "bernoulli", (Ref(2), 0.0), {"generator": generator}, ""),
        ("output", "output", "output", (Ref(3),), {}, ""),
    ]
    compiled = compile_fx(rows, recording, "recording", [torch.ones(3)])
    assert torch.equal(compiled(torch.ones(3))[0], torch.zeros(3, 1))
    recording.seen[0].graph.lint()


@pytest.mark.parametrize("backend", ["aot_eager", lambda gm, inputs: gm])
def test_places_whose_names_differ_only_by_an_underscore(backend):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.out, self.out_ = (
                torch.nn.ModuleList([torch.nn.Linear(3, 3)]),
                torch.nn.ModuleList([torch.nn.Linear(3, 3)]),
            )

        def forward(self, x):
            return self.out[0](x) + self.out_[0](x)

    model, x = Model(), torch.randn(2, 3)
    before = _C.counters()["internal_errors"]
    assert torch.equal(godynamo.optimize(model, backend=backend)(x), model(x))
    assert _C.counters()["internal_errors"] == before


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inductor"])
def test_named_backends_run_forward_and_backward(name):
    compiled = compile_fx(ROWS, godynamo.lookup_backend(name), name, inputs())
    results, grads = gradients(compiled)
    expected, expected_grads = gradients(program)
    tol = 0 if name != "inductor" else 1e-5
    assert same(results, expected, tol=tol)
    assert same(grads, expected_grads, tol=1e-5)
    with torch.no_grad():
        args = inputs(requires_grad=False)
        compiled = compile_fx(ROWS, godynamo.lookup_backend(name), name, args)
        assert same(list(compiled(*args)), list(program(*args)), tol=tol)


def test_a_graph_that_changes_its_input_under_aot_eager():
    rows = [
        ("placeholder", "x", "x", (), {}, ""),
        ("call_method", "add_", "add_", (Ref(0), 1), {}, ""),
        ("call_function", "mul", operator.mul, (Ref(1), 2), {}, ""),
        ("output", "output", "output", ((Ref(2),),), {}, ""),
    ]
    x = torch.zeros(3)
    compiled = compile_fx(rows, godynamo.lookup_backend("aot_eager"), "aot_eager", [x])
    assert torch.equal(compiled(x)[0], torch.full((3,), 2.0))
    assert torch.equal(x, torch.ones(3))


def test_modes_and_options_reach_inductor():
    backend = named.by_name("inductor", None, {"max_autotune": False}, None)
    assert same(list(compile_fx(ROWS, backend, "inductor", inputs())(*inputs())), list(program(*inputs())), tol=1e-5)
    with pytest.raises(Exception, match="nonsense"):
        named.by_name("inductor", None, {"nonsense": 1}, None)
    assert pickle.loads(pickle.dumps(backend)).__name__ == "inductor"


def raising(gm, example_inputs):
    gm.graph.erase_node(list(gm.graph.nodes)[-1])  # a backend that fails halfway
    raise KeyError("boo")


def returning_three(gm, example_inputs):
    return 3


def test_a_backend_that_raises_is_named_and_its_error_kept():
    with pytest.raises(exc.BackendCompilerFailed, match="raising") as caught:
        compile_fx(ROWS, raising, "raising", inputs())
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.inner_exception is caught.value.__cause__
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_a_backend_that_raises_in_a_block_of_inference_mode():
    """FX prints the node that raises, and reads its example_value for this. That must not leave the mode."""

    class Fails(torch.fx.Interpreter):
        def run_node(self, n):
            if n.name.startswith("mul"):
                raise RuntimeError("not this one")
            return super().run_node(n)

    def backend(gm, inputs):
        Fails(gm).run(*inputs)
        return gm.forward

    @torch.inference_mode()
    def inside(x):
        return x * 2

    optimized = godynamo.optimize(lambda x: inside(x) + 1, backend=backend)
    for _ in range(2):
        with pytest.raises(godynamo.exc.BackendCompilerFailed, match="not this one"):
            optimized(torch.ones(3))
        assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


def test_a_backend_that_returns_no_callable_is_a_type_error():
    with pytest.raises(TypeError, match=r"'three'.*callable, not 3"):
        compile_fx(ROWS, returning_three, "three", inputs())


@pytest.mark.parametrize("backend", [raising, returning_three])
def test_suppress_errors_runs_the_graph_as_captured(backend, caplog):
    with config.patch(suppress_errors=True):
        compiled = compile_fx(ROWS, backend, "bad", inputs())
    assert same(list(compiled(*inputs())), list(program(*inputs())), tol=0)
    assert "'bad'" in caplog.text


def interrupting(gm, example_inputs):
    raise KeyboardInterrupt


def test_ctrl_c_in_a_backend_is_not_taken_for_its_failure():
    with config.patch(suppress_errors=True), pytest.raises(KeyboardInterrupt):
        compile_fx(ROWS, interrupting, "interrupting", inputs())


def wrong(gm, example_inputs):
    return lambda *args: tuple(o + 1 for o in gm.forward(*args))


def test_verify_correctness_compares_the_first_call(caplog):
    with config.patch(verify_correctness=True):
        bad = compile_fx(ROWS, wrong, "wrong", inputs())
        good = compile_fx(ROWS, recording, "recording", inputs())
    with pytest.raises(RuntimeError, match="'wrong': output 0 differs"):
        bad(*inputs())
    assert [r.levelname for r in caplog.records if "'wrong': output 0 differs" in r.getMessage()] == ["WARNING"]
    for _ in range(2):
        assert same(list(good(*inputs())), list(program(*inputs())), tol=0)


def test_what_compile_fx_makes_keeps_no_input_alive():
    args = inputs()
    refs = [weakref.ref(a) for a in args]
    compiled = compile_fx(ROWS, lambda gm, ex: gm.forward, "plain", args)
    del args
    gc.collect()
    assert [r() for r in refs] == [None] * 3
    assert compiled


def test_backends_are_listed_and_found():
    names = godynamo.list_backends()
    assert {"eager", "inductor"} <= set(names)
    assert "aot_eager" in godynamo.list_backends(exclude_tags=None)
    assert godynamo.lookup_backend(recording) is recording
    with pytest.raises(ValueError, match="aot_eager"):
        godynamo.lookup_backend("aot_eagre")
