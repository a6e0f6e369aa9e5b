"""The benchmark's measurements: the comparison of results, the user's workloads, engines and their costs."""

import math
import types
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import godynamo_workloads as workloads
from godynamo._tools.bench import costs, measure, suites, user
from godynamo._tools.bench.engines import Engine, empty_caches
from godynamo._tools.bench.same import difference
from godynamo._tools.problem import Problem


@dataclass
class Pair:
    a: object
    b: object


class Plain:
    def __init__(self, x):
        self.x = x


NAN = float("nan")
T = torch.tensor


SAME = {
    "tensors": (lambda: T([1.0, NAN])),
    "containers": (lambda: [T([1]), {"k": (T([2.0]), None, "text")}, {1, 2}]),
    "numbers": (lambda: (1, 2.5, NAN, 1j, True)),
    "objects": (lambda: Plain([T([1.0])])),
    "dataclasses": (lambda: Pair(1, "b")),
    "namespaces": (lambda: types.SimpleNamespace(x=1)),
    "ranges": (lambda: range(3)),
    "complex tensors": (lambda: T([1 + 2j])),
    "nothing": (lambda: torch.empty(0)),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_result_made_twice_is_the_same(name):
    assert difference(SAME[name](), SAME[name]()) == 0


def test_a_small_difference_beside_what_is_no_number_is_small():
    for special in (NAN, math.inf):
        assert 0 < difference(T([special, 1.0000001]), T([special, 1.0])) < 1e-6


OTHERS = {
    "a value": (T([1.0, 2.0]), T([1.0, 2.5]), 0.2),
    "a small one beside a large one": (T([1000.0, 1.0]), T([1000.0, 2.0]), 1e-3),
    "a NaN": (T([NAN]), T([1.0]), 0.0001),
    "a NaN for 0": (T([NAN, 1.0]), T([0.0, 1.0]), math.inf),
    "an infinity for the largest number": (T([math.inf]), T([torch.finfo(torch.float32).max]), math.inf),
    "a dtype": (T([1.0]), T([1.0]).double(), math.inf),
    "a shape": (T([1.0]), T([[1.0]]), math.inf),
    "whole numbers": (T([1]), T([2]), math.inf),
    "gradients": (T([1.0]), T([1.0], requires_grad=True), math.inf),
    "a type": ([1], (1,), math.inf),
    "a length": ([1, 2], [1], math.inf),
    "a key": ({"a": 1}, {"b": 1}, math.inf),
    "an order of keys": ({"a": 1, "b": 1}, {"b": 1, "a": 1}, math.inf),
    "a number and a bool": (1, True, math.inf),
    "a number": (1.0, 1.0000001, math.inf),
    "an attribute": (Plain(1), Plain(2), math.inf),
    "nothing and a tensor": (None, T([1.0]), math.inf),
    "deep inside": ({"k": [T([1.0])]}, {"k": [T([1.5])]}, 0.3),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_difference_is_found_from_either_side(name):
    a, b, at_least = OTHERS[name]
    assert difference(a, b) >= at_least
    assert difference(b, a) >= at_least


def test_an_engine_that_is_wrong_or_fails_has_no_figures():
    workload = workloads.WORKLOADS[1]
    assert workload.name == "relu"

    class Off(Engine):
        def transform(self, own):
            return lambda target: lambda *args: target(*args) + 1e-7

    class Failing(Engine):
        def transform(self, own):
            raise ValueError("two\nlines")

    engines = [Engine("eager", "eager"), Off("off", "eager"), Failing("failing", "eager")]
    found = measure.measure(workload, engines, 1)
    assert found["eager"]["correct"] is True
    assert len(found["eager"]["seconds"]) == 1
    assert set(found["off"]) == {"error"}
    assert found["off"]["error"].startswith("AssertionError: another result than eager's in call 1, by ")
    assert found["failing"] == {"error": "ValueError: two"}


def test_an_engine_that_goes_wrong_later_is_caught():
    class Later(Engine):
        def transform(self, own):
            calls = []

            def wrap(target):
                return lambda *args: target(*args) + (len(calls) > 3 if calls.append(0) is None else 0)

            return wrap

    (found,) = measure.measure(workloads.WORKLOADS[1], [Later("later", "eager")], 1).values()
    assert "in call 4" in found["error"]


def test_torch_compile_is_not_held_to_what_another_workload_left():
    """After a module without operations, torch.compile runs every later module in CPython until it is reset."""
    by_name = {w.name: w for w in workloads.WORKLOADS}
    for name, graphs in (("nn_identity", 0), ("mlp_grad", 1)):
        found = measure.measure(by_name[name], [Engine.parse("torch.compile")], 0, details=False)
        assert found["torch.compile"]["graphs"] == graphs


def test_what_calls_leave_behind_is_compared_call_by_call(tmp_path):
    file = tmp_path / "forms_counting.py"
    file.write_text(FORMS)
    engines = [Engine("eager", "eager"), Engine.parse("godynamo")]
    for name in ("counting", "in_place"):
        found = measure.measure(user.load(f"{file}:{name}"), engines, 0, details=False)
        assert {label: f.get("error") for label, f in found.items()} == {"eager": None, "godynamo": None}, name


class Methods:
    def __init__(self, by):
        self.by = by

    def scale(self, x, *more, offset=0.0, **named):
        return x * self.by + offset


def closure():
    by = T([2.0])

    def scaled(x, offset=1.0):
        return x * by + offset

    return scaled


x = torch.ones(3)

CALLS = {
    "a function of a closure": (closure(), (x,), {}),
    "a method": (Methods(2.0).scale, (x, x), {"offset": 1.0, "other": 2}),
    "a module": (nn.Linear(3, 3), (x,), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_guards_of_a_call_are_counted_and_timed(name):
    import godynamo

    target, args, kwargs = CALLS[name]
    compiled = godynamo.optimize(target)
    assert difference(compiled(*args, **kwargs), target(*args, **kwargs)) == 0
    found = costs.guards("godynamo", compiled, target, args, kwargs)
    assert found["guards"] == sum(len(e.parts) for e in godynamo.cache_entries(compiled))
    assert 0 < found["guards_ns"] < 100_000


def test_suites_are_chosen_by_pattern_and_keep_their_order():
    known = suites.load(["micro"])
    assert [w.name for w in suites.choose(known, ["*_inductor", "relu"])] == ["relu", "relu_inductor", "mlp_inductor"]
    assert suites.choose(known, []) == known
    with pytest.raises(Problem, match="no workload is called 'zzzz'; there are eight, identity, inlined_branch"):
        suites.choose(known, ["zzzz"])


def test_every_model_of_the_zoo_belongs_to_a_suite():
    from godynamo._tools.bench import zoo

    assert {name.partition(".")[0] for name in zoo.MODELS} == set(suites.LIBRARIES)


FORMS = '''
import torch

with_tensor = lambda x: x + 1
with_tensor.example_inputs = torch.ones(2)
def with_dict(x, y): return x + y
with_dict.example_inputs = {"x": torch.ones(2), "y": 1}
class Outer:
    @staticmethod
    def inner(x): return x * 2
    inner.__func__.example_inputs = (torch.ones(2),)
def plain(): return 3
class Net(torch.nn.Module):
    example_inputs = (torch.ones(2),)
    def forward(self, x): return x - 1
ready = Net()
def make(): return Net()
class Counting(torch.nn.Module):
    example_inputs = (torch.ones(2),)
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))
    def forward(self, x):
        self.count.add_(x)
        return self.count
counting = Counting()
def in_place(x): return x.add_(1)
in_place.example_inputs = (torch.ones(2),)
def random(): return (lambda x: x), (torch.randn(2),)
'''  # fmt: skip


@pytest.mark.parametrize(
    ("name", "want"),
    {
        "with_tensor": [2.0, 2.0], "with_dict": [2.0, 2.0], "Outer.inner": [2.0, 2.0], "plain": 3, "Net": [0.0, 0.0],
        "ready": [0.0, 0.0], "make": [0.0, 0.0],
    }.items(),
)  # fmt: skip
def test_forms_of_a_users_workload(name, want, tmp_path, monkeypatch):
    file = tmp_path / f"forms_{name.replace('.', '_')}.py"
    file.write_text(FORMS)
    workload = user.load(f"{file}:{name}")
    got = workload.prepare(lambda target: target).check()
    assert (got.tolist() if isinstance(got, torch.Tensor) else got) == want


def test_every_engine_gets_the_same_random_inputs_and_a_module_of_its_own(tmp_path):
    file = tmp_path / "forms_own.py"
    file.write_text(FORMS)
    random = user.load(f"{file}:random")
    a, b = (random.prepare(lambda target: target).check() for _ in range(2))
    assert torch.equal(a, b)
    ready = user.load(f"{file}:ready")
    first, second = (ready.prepare(lambda target: target).target for _ in range(2))
    assert first is not second


def test_an_engine_starts_with_empty_caches_of_inductors(monkeypatch, tmp_path):
    from torch._inductor import codecache

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "another")
    codecache.CppCodeCache.cache["kernel"] = lambda: None
    empty_caches(str(tmp_path))
    assert "kernel" not in codecache.CppCodeCache.cache
    assert codecache.cache_dir() == str(tmp_path)


def test_the_code_of_the_workloads_is_captured_like_a_users():
    """Code of the package is never captured. With the workloads in it, make bench would time eager mode twice."""
    import godynamo

    with torch.no_grad():
        explanation = godynamo.explain(workloads.Transformer(3).eval())(torch.randn(2, 5, 16))
    assert explanation.graph_count == 1
    assert explanation.op_count > 50
