"""A short `make fuzz-sizes`, and the differences that its comparison detects."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "language"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "torch"))

import pytest
import torch

import harness.fuzz_children as children
import harness.fuzz_compare as comparing
import sizes_conditions as dropping
import sizes_export as exporting
import sizes_judge as judging
from fuzz_sizes_run import CAPTURES, CONDITIONS, SIZES
from sizes_program import CALLS, HEADER, SIZES_PRELUDE, cases


def text_of(body, seed=0):
    return "\n".join([SIZES_PRELUDE, *cases(seed), "", HEADER, f"    {body}"]) + "\n"


def table(seed):
    ns = {}
    exec("\n".join(cases(seed)), ns)
    return ns["CASES"]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_are_eagers(first):
    found = [(seed, str(m)) for seed, m in children.mismatches(SIZES, list(range(first, first + 20))) if m is not None]
    assert not found, "\n".join(f"fuzz_sizes_run.py --count 1 --seed {seed}: {text}" for seed, text in found)


@pytest.mark.parametrize("first", (1000, 1300, 1600))
def test_exported_programs_are_eagers(first):
    counts, wrong = Counter(), {}
    for seed in range(first, first + 80, 2):
        text = SIZES.text(seed)
        if "'grad': True" not in text:
            count, calls = exporting.exported(text)
            counts += count
            wrong |= {seed: calls} if calls else {}
    assert not wrong
    assert counts["programs"] > 5 and counts["equal"] > 12, counts


def test_two_seeds_are_one_program_for_both_backends():
    for seed in range(0, 600, 2):
        compile(SIZES.text(seed), "p", "exec")
    assert SIZES.text(6) == SIZES.text(7) != SIZES.text(8)
    assert not SIZES.whole(6)
    assert SIZES.whole(7)


def test_the_programs_read_and_compute_with_sizes():
    text = "\n".join(SIZES.text(seed).split("\ndef fn(", 1)[1] for seed in range(0, 800, 2))
    words = (
        ".shape[0] .shape[-1] .size(0) len(x) .numel() .dim() // % min( max( math.prod( sum( .view( .reshape( "
        ".expand( .repeat( torch.cat( .split( .chunk( torch.arange( torch.zeros( torch.ones( torch.full( .permute( "
        ".t() @ F.pad( F.interpolate( F.conv1d( F.max_pool2d( F.layer_norm( m( m.counted( m.remembers( .tolist() "
        ".item() .nonzero() .stride( .shape== .shape!= torch.Size( f' if while for match print( godynamo.graph_break() "
        "def try: raise assert return o.sizes.append( o.table[ o.size"
    )
    for word in words.split():
        assert word in text, word


def test_the_first_call_meets_conditions_that_later_calls_do_not():
    tables = [table(seed) for seed in range(0, 400, 2)]
    assert all(len(rows) == CALLS + 2 and rows[-2:] == rows[:2] for rows in tables)
    later = [(rows[0], row) for rows in tables for row in rows[1:]]
    sizes = [(a["x"], b["x"]) for a, b in later]
    for holds in (
        lambda x: x[0] == x[1],
        lambda x: x[1] == 4,
        lambda x: x[0] == 0,
        lambda x: x[0] == 1,
        lambda x: x[0] > 1,
        lambda x: x[0] % 2 == 0,
        lambda x: x[0] > x[1],
    ):
        assert any(holds(a) and not holds(b) for a, b in sizes)
        assert any(not holds(a) and holds(b) for a, b in sizes)
    assert any(a["n"] == a["x"][0] and b["n"] != b["x"][0] for a, b in later)


def first_again(effect):
    """Return a wrapper for a function that behaves as if a value of the first call were a constant."""

    def wrap(fn):
        seen = []

        def call(*args):
            value = fn(*args)
            seen.append(value)
            return effect(value, seen[0], args)

        return call

    return wrap


@pytest.mark.parametrize(
    ("effect", "kind"),
    [
        (lambda value, first, args: (value[0], first[1], value[2]), "value"),
        (lambda value, first, args: (value[0], value[1], first[2]), "value"),
        (lambda value, first, args: (value[0].clone(), *value[1:]), "value"),  # no longer a view of the argument
        (lambda value, first, args: args[8].sizes.append(first[1]) or value, "effects"),
        (lambda value, first, args: print(first[1]) or value, "output"),
        (lambda value, first, args: value if value[1] == first[1] else args[0].view(-1, 17), "exception"),
    ],
)
def test_a_size_of_another_call_is_seen(monkeypatch, effect, kind):
    text = text_of("return x[:1], x.shape[0], f'{y.shape}'", seed=2 * 11)
    assert len({case["x"] for case in table(2 * 11)}) > 2
    assert judging.judge(text) is None
    monkeypatch.setattr(comparing.godynamo, "optimize", lambda backend, **options: first_again(effect))
    assert judging.judge(text).kind == kind


def test_captures_are_counted():
    torch.set_num_threads(1)
    counted = judging.captures(text_of("return x.relu()"))
    assert counted.kind == "captures"
    assert 1 <= counted.call <= counted.expected == len({str(case) for case in table(0)})
    found = list(children.mismatches(CAPTURES, [0, 1]))
    assert [m.kind for _, m in found] == ["captures", "captures"]


# ---- conditions that are dropped -------------------------------------------------------------------------------------


def verdicts(body, seed=2):
    found = dropping.judge(dropping.of_program(text_of(body, seed), False), seed)
    return {outcome.condition.text: outcome.verdict for outcome in found}


def test_conditions_of_random_programs_are_needed():
    needed, others = 0, []
    for seed, found in children.mismatches(CONDITIONS, list(range(30))):
        assert found.kind == "conditions", f"fuzz_sizes_run.py --conditions --count 1 --seed {seed}: {found}"
        needed += found.call
        others += [(seed, *other) for other in json.loads(found.expected)]
    assert needed > 20
    assert sum(verdict == "superfluous" for _, verdict, *_ in others) < needed / 2, others


#: programs for the seed 2 (x and y: 4x4, z: 4x4x7, v: 7, n and k: ints), each condition of which is needed
NEEDED = """
    return x * 2 if x.shape[0] > 3 else x
    return x.reshape(-1) if x.shape == y.shape[::-1] else y.shape
    return [q * 2 for q in range(x.shape[0])]
    return torch.zeros(n).sum() + n
    return x[: k + 1], x[: k + 1].shape, k
    return len(x.chunk(3)), x.shape
    return [t.shape for t in x.split(3)]
    return F.pad(x, (0, x.shape[0] % 3)).shape, "wide" if x.shape[0] % 3 else "even"
    return "a" if min(x.shape) > 3 else "b"
    return max(x.shape[0], y.shape[0], 3) == x.shape[0]
    return {x.shape[0]: 1}.get(4, 0)
    return v[v.shape[0] // 2 :].numel() > 3
    while n > 2: n = n // 2; return n
    return sorted(x.shape), x.shape[0] // max(k, 1) > 1
    return (x + y.t()).shape if x.shape == y.t().shape else (x.sum() + y).shape
    return [i for i in range(x.shape[0]) if i % 2], (x.shape[0] * x.shape[1]) % 8 == 0
""".strip().splitlines()


@pytest.mark.parametrize("body", NEEDED, ids=str.strip)
def test_without_a_condition_a_result_is_wrong(body):
    found = verdicts(body.strip())
    assert found and set(found.values()) == {"needed"}, found


def test_each_kind_of_condition_is_dropped():
    found = verdicts("return (x * 2 if x.shape[0] > 3 else x), [q for q in range(y.shape[1])], n + 1")
    assert any("x.size()[0]" in text for text in found)  # SHAPE_ENV
    assert any(text.startswith("size 1 of register 1") for text in found)  # a size of TENSOR_MATCH
    assert any(text.startswith("n == ") for text in found)  # EQUALS_MATCH


def test_conditions_that_are_not_needed():
    assert verdicts("q = 1 if x.shape[0] > 3 else 2; return x + 1") == {"x.size()[0] >= 4": "superfluous"}
    assert verdicts("return x[3], x[3].shape") == {"x.size()[0] >= 4": "raising"}


def test_a_condition_for_which_no_call_is_found_is_unreached(monkeypatch):
    monkeypatch.setattr(dropping, "near", lambda rng, first: {**first, "x": (8, 5)})
    assert verdicts("return x * 2 if x.shape[0] > 3 else x") == {"x.size()[0] >= 4": "unreached"}
