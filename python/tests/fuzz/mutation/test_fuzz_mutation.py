"""The short form of make fuzz-mutation, and what its comparison detects."""

from __future__ import annotations

import pytest

import harness.fuzz_children as children
import mutation_judge as judging
from mutation_program import PRELUDE
from mutation_run import MUTATION


@pytest.mark.parametrize("first", range(0, 500, 125))
def test_random_programs_are_cpythons(first):
    found = [(s, str(m)) for s, m in children.mismatches(MUTATION, list(range(first, first + 125))) if m is not None]
    assert not found, "\n".join(f"mutation_run.py --count 1 --seed {seed}: {text}" for seed, text in found)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_a_seed_is_one_program_that_compiles():
    for seed in range(500):
        compile(MUTATION.text(seed), "p", "exec")
    assert MUTATION.text(7) == MUTATION.text(7) != MUTATION.text(8)


def test_the_programs_have_every_kind_of_class_and_change():
    text = "\n".join(MUTATION.text(seed)[len(PRELUDE) :] for seed in range(3000))
    words = (
        "metaclass=M __slots__ property( Data( NonData( __getattr__ __getattribute__ __setattr__ __new__ "
        "__init__ __call__ __bool__ "
        "__len__ __eq__ __hash__ __iter__ __contains__ __instancecheck__ __subclasscheck__ __index__ __radd__ "
        "__format__ "
        "(abc.ABC) enum.Enum dataclasses.dataclass namedtuple (int) (str) (float) (tuple) (list) (dict) (set) "
        "__bases__ __class__ .register( _value_ _name_ torch.backends. __builtins__ builtins.abs __code__ __defaults__ "
        "__kwdefaults__ cell_contents __doc__ __module__ __qualname__ __name__ del .append( .clear()"
    )
    for word in words.split():
        assert word in text, word


PROGRAM = """
class C0:
    k = 1
def make():
    return C0(), C0(), [1]
def change_0(o, p, q):
    {change}
def fn(x, o, p, q):
    r = [o.k, len(q)]
    return x + o.k, r
"""


@pytest.mark.parametrize("change", ["C0.k = 2", "o.k = 2", "q.append(o)", "C0.k = property(lambda self: 5)"])
def test_a_call_that_misses_a_change_is_seen(monkeypatch, change):
    text = PRELUDE + PROGRAM.format(change=change)
    assert judging.judge(text) is None
    stale = {}

    def frozen(fn):
        return lambda *args: stale.setdefault("first", fn(*args))

    monkeypatch.setattr("harness.fuzz_compare.godynamo.optimize", lambda backend: frozen)
    assert judging.judge(text).kind == "value"


def test_a_result_that_differs_between_runs_of_cpython_is_not_judged(monkeypatch):
    text = PRELUDE + PROGRAM.format(change="pass").replace("x + o.k, r", "x + o.k, RESULT")
    monkeypatch.setattr("harness.fuzz_compare.godynamo.optimize", lambda backend: lambda fn: lambda *args: None)
    found = judging.Mismatch("value", 0)
    assert judging.judge(text.replace("RESULT", "r")).kind == "value"
    assert judging.settled(text.replace("RESULT", "r"), found)
    assert not judging.settled(text.replace("RESULT", "r + [object.__hash__(C0)]"), found)


def test_addresses_are_not_compared():
    text = PRELUDE + PROGRAM.format(change="pass").replace("len(q)", "{id(o): id(q)}, [id(o)]")
    assert judging.judge(text) is None
    assert judging.MutationPlain()(id(text)) == judging.MutationPlain()(id([])) != judging.MutationPlain()(1 << 60)
