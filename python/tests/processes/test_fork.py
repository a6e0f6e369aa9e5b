"""Forked processes use optimized functions, with hits and misses, and never hang. fork_program.py has the scenarios."""

from __future__ import annotations

import pytest

from fork_program import SCENARIOS
from processes_support import run_program


@pytest.mark.parametrize("scenario", [scenario.__name__ for scenario in SCENARIOS])
def test_no_forked_process_hangs(scenario):
    assert run_program("fork_program.py", scenario, timeout=150).endswith("done\n")


@pytest.mark.parametrize("scenario", [name.__name__ for name in SCENARIOS if "backend" in name.__name__])
def test_no_process_forked_inside_a_backend_hangs_in_gos_collector(scenario):
    """The collector runs all the time: a child that returned into Go would hang in most runs."""
    assert run_program("fork_program.py", scenario, timeout=150, env={"GOGC": "1"}).endswith("done\n")
