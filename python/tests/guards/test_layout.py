"""The probe of the tensor layout: its offsets, its self-check, and its failure."""

from __future__ import annotations

import platform
import subprocess
import sys
import textwrap

import pytest
import torch

from godynamo import _C
from godynamo._called import guard_env


def test_the_layout_is_known_for_this_torch():
    layout = _C.tensor_layout()
    assert layout["known"] == 1
    assert layout["strides"] == layout["sizes"] + 40


def test_every_sample_and_pair_is_read_right():
    samples = guard_env.layout_samples()
    assert len(samples["random"]) == 160
    assert len({view for _, view in samples["random"]}) > 100
    for tensor, view in samples["random"]:
        assert _C.tensor_view(tensor) == view
    pairs = 0
    for a, view_a in samples["random"]:
        for b, view_b in samples["random"]:
            assert (_C.tensor_view(a) == _C.tensor_view(b)) is (view_a == view_b)
            pairs += 1
    assert pairs == 25_600


def test_what_is_not_plain_is_not_read():
    class Sub(torch.Tensor):
        pass

    assert _C.tensor_view(torch.ones(2).as_subclass(Sub)) is not None  # the same C++ object
    for other in (torch.ones(2, 2).to_sparse(), torch.ones(1, 1, 1, 1, 1, 1), 3, None, torch.Tensor):
        assert _C.tensor_view(other) is None
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert _C.tensor_view(torch.empty(2)) is None


# Samples that contradict the probe's assumptions, by the step that must detect it.
SPOILED = {
    "sizes": lambda s: s.update(odd=[torch.empty(3)]),
    "dtype": lambda s: s["dtypes"].__setitem__(0, (s["dtypes"][1][0], 0)),
    "device": lambda s: s["devices"].__setitem__(0, (s["devices"][1][0], 0)),
    "key set": lambda s: s["keysets"].__setitem__(0, (s["keysets"][0][0], 1)),
    "autograd metadata": lambda s: s["plain"].__setitem__(0, s["leaf"][0]),
    "requires_grad": lambda s: s["switched_off"].__setitem__(0, s["leaf"][0]),
    "self-check": lambda s: s["random"].__setitem__(5, (s["random"][5][0], s["random"][6][1])),
    "odd": lambda s: s.pop("odd"),
    "base": lambda s: s.pop("base"),
}


@pytest.mark.parametrize("step", SPOILED)
def test_each_step_of_the_probe_notices_what_does_not_fit(step):
    samples = guard_env.layout_samples()
    assert _C._tensor_layout_probe(samples) is None
    SPOILED[step](samples)
    assert _C._tensor_layout_probe(samples) == step
    assert _C.tensor_layout()["known"] == 1
    assert _C.tensor_view(torch.ones(2)) is not None


def run(code: str) -> str:
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    return out.stdout


PREAMBLE = """
import sys, warnings
sys.path[:0] = {path!r}
import torch
from godynamo import _C
from godynamo._called import guard_env as _guard_env
from guard_programs import Program
def f(x): return x
def entry_for(t):
    p = Program(f)
    p.tensor(p.slot("x"), t)
    return p.entry()
"""


@pytest.fixture
def preamble():
    return PREAMBLE.format(path=[p for p in sys.path if p])


def test_an_unknown_layout_means_one_warning_and_right_verdicts(preamble):
    out = run(
        preamble
        + """
samples = _guard_env.layout_samples
def spoiled():
    s = samples()
    s["random"][5] = s["random"][6][0], s["random"][5][1]
    return s
_guard_env.layout_samples = spoiled
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    e = entry_for(torch.ones(2, 3))
    entry_for(torch.ones(2))
print(len(caught), caught[0].category.__name__, "self-check" in str(caught[0].message))
print(_C.tensor_layout()["known"], _C.tensor_view(torch.ones(2)))
variants = [torch.zeros(2, 3), torch.ones(3, 2), torch.ones(3, 2).t(), torch.ones(2, 3, dtype=torch.int64),
            torch.ones(2, 3, requires_grad=True), torch.empty(2, 3, device="meta"), 3, torch.nn.Parameter(torch.ones(2,
            3))]
print([e.check(v) for v in variants])
"""
    )
    assert out.splitlines() == ["1 RuntimeWarning True", "0 None", str([True] + [False] * 7)]


def test_a_warning_turned_error_stays_out_of_the_users_way(preamble):
    out = run(
        preamble
        + """
_guard_env.layout_samples = lambda: {}
warnings.simplefilter("error")
print(entry_for(torch.ones(2)).check(torch.ones(2)))
"""
    )
    assert out.strip() == "True"


@pytest.mark.parametrize("mode", ["torch.no_grad()", "torch.inference_mode()", "torch.device('meta')", "Mode()"])
def test_the_probe_works_inside_modes_and_draws_no_random_number(preamble, mode):
    out = run(
        preamble
        + f"""
class Mode(torch.overrides.TorchFunctionMode):
    seen = []
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {{}}))
torch.manual_seed(1)
state = torch.get_rng_state()
t = torch.ones(2, 3)
with {mode}:
    before = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    e = entry_for(t)
    assert before == (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    print(_C.tensor_layout()["known"], e.check(t))
print(torch.equal(state, torch.get_rng_state()))
"""
    )
    assert out.split() == ["1", "True", "True"]


def test_a_dispatch_mode_postpones_the_probe(preamble):
    out = run(
        preamble
        + """
from torch._subclasses.fake_tensor import FakeTensorMode
t = torch.ones(2)
with FakeTensorMode():
    e = entry_for(t)
    print(_C.tensor_layout()["known"], e.check(t))
entry_for(t)
print(_C.tensor_layout()["known"])
"""
    )
    assert out.split() == ["0", "True", "1"]


def test_importing_the_core_does_not_import_torch():
    out = run(
        f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("godynamo._C", {_C.__file__!r})
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print("torch" in sys.modules)
"""
    )
    assert out.split() == ["False"]


def test_state_is_read_without_python():
    ways = {name: how for name, (_, how) in _C.torch_state().items()}
    assert "python" not in ways.values()
    if platform.machine() == "x86_64":
        called = [name for name, how in ways.items() if how == "call" and not name.startswith("autocast")]
        assert called == ["dispatch modes", "threads"]
