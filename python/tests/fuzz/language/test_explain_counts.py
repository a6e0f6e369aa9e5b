"""explain's counts on random programs: captured and outside instructions add up to those of CPython's own run."""

import dis
import itertools
import random

import pytest
import torch

import godynamo
from fuzz_judge import observe
from fuzz_program import program, source
from godynamo._called import runtime
from godynamo._explain import captured as _captured
from godynamo._explain import census as _census
from harness.fuzz_compare import FILENAME, codes_of, limited

#: code of the frames that go on in CPython, without a translation, where a check in captured code fails
NOT_TRANSLATED = "GD0701"
SEEDS = random.Random(5).sample(range(10_000), 40)


def take(codes, call, optimize):
    """Make one call; return its description, sets of places, and whether captured code has been left.

    The sets are: captured, outside, captured calls, outside calls.
    """
    ns = {"__name__": "program"}
    for code in codes:
        exec(code, ns)
    torch.manual_seed(0)
    fn = godynamo.optimize(ns["fn"]) if optimize else ns["fn"]
    records, census = [], _census.Census()
    runtime.recorders.lists.append(records)
    try:
        with census:
            did = observe(ns, fn, call, FILENAME)
    finally:
        runtime.recorders.lists.pop()
    assert census.complete
    summary = _captured.Summary(census, records)
    left = any(row.code == NOT_TRANSLATED for row in summary.counts().kept_out)

    def named(places):
        codes = ((summary.codes[key], unit) for key, unit in places)
        own = ((c, u) for c, u in codes if c.co_filename == FILENAME and u not in last_handler(c))
        return {(c.co_qualname, c.co_firstlineno, u, opname(c, u)) for c, u in own}

    (captured, calls), (outside, calls_outside) = summary.captured, summary.outside
    return did, (named(captured), named(outside), named(calls), named(calls_outside)), left


def last_handler(code):
    """Return the units of the handler that 3.12 and later have around a generator, for StopIteration.

    The frame of an inlined generator does its work, so that its instructions are not captured.
    """
    rows = list(dis.get_instructions(code))
    return {
        row.offset // 2
        for first, second in itertools.pairwise(rows)
        if first.opname == "CALL_INTRINSIC_1" and first.argrepr == "INTRINSIC_STOPITERATION_ERROR"
        for row in (first, second)
    }


def opname(code, unit):
    return next(i.opname for i in dis.get_instructions(code) if i.offset == 2 * unit)


@pytest.mark.parametrize("seed", SEEDS)
def test_captured_and_outside_together_are_what_cpython_runs(seed):
    codes = codes_of(source(program(seed)))
    for call in range(2):
        ns = {"__name__": "program"}
        for code in codes:
            exec(code, ns)
        torch.manual_seed(0)
        with limited(30.0):  # each of these seeds finishes at once
            expected = observe(ns, ns["fn"], call, FILENAME)
        did, (_, ran, _, torch_ran), _ = take(codes, call, optimize=False)
        assert did == expected
        did, (captured, outside, calls, calls_outside), left = take(codes, call, optimize=True)
        assert did == expected
        # If a check failed, the captured instructions after it are counted, although they did not run.
        assert captured | outside == ran or (left and captured | outside > ran)
        assert calls | calls_outside == torch_ran or (left and calls | calls_outside > torch_ran)
