"""Functions of torch.distributed, DTensors and tensor parallel modules in optimized functions: results, gradients,
effects, warnings and exceptions against eager mode on two ranks, and how much is captured."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

from harness import forked

HERE = Path(__file__).parent

#: case -> (graphs, codes of the breaks) of its first call on rank 0
CAPTURED = {
    "plain": (1, []),
    "functional": (1, []),
    "functional_gradients": (1, []),
    "work": (1, []),
    "work_is_returned": (1, []),
    "point_to_point": (1, []),
    "single_tensors": (1, []),
    "sizes_of_results": (1, []),
    "wrong_number_of_sizes": (1, []),
    "numbers_that_change": (1, []),
    "lists_of_the_caller": (1, []),
    "subgroup": (1, []),
    "facts_of_groups": (1, []),
    "changed_memory": (1, []),
    "effects_in_order": (1, []),
    "in_blocks": (1, []),
    "in_a_function_of_an_operation": (1, []),
    "parallel_norm_and_checkpoint": (1, []),
    "loop": (1, []),
    "equal_layers": (1, []),
    "uneven": (1, []),
    "other_branches": (1, []),
    "arithmetic": (1, []),
    "dtensor_methods": (1, []),
    "dtensor_gradients": (1, []),
    "dtensor_in_place": (1, []),
    "dtensor_data": (2, ["GD0101"]),
    "dtensor_or_tensor": (1, []),
    "partial_sums": (1, []),
    "tensor_parallel": (1, []),
    "sequence_parallel": (1, []),
    "prepared_outputs": (1, []),
    "classes_of_results": (1, []),
    "known_sizes": (1, []),
    "uneven_sizes": (1, []),
    "other_meshes": (1, []),
    "sizes_of_parallel_modules": (1, []),
    "layouts_of_parallel_modules": (1, []),
    "changed_in_place": (2, ["GD0103"]),
}

#: cases that raise, break the graph, or read metadata: only their outcome is compared
OTHERS = (
    "dtensor_metadata dtensor_to_python dtensor_pieces classes_from_functions wrong_sizes "
    "wrong_group wrong_functional_group mixed_tensors no_such_member one_rank_raises caught"
).split()

#: the same for the cases of block_cases.py
BLOCKS = {
    "handler_of_the_frame": (1, []),
    "no_handler_that_matches": (1, []),
    "handlers_of_callers": (1, []),
    "callers_go_on": (1, []),
    "exception_passes_through": (1, []),
    "variables_change": (1, []),
    "objects_of_the_program": (1, []),
    "objects_of_the_caller": (2, ["GD0304"]),
    "managers": (2, ["GD0302", "GD0203", "GD0203", "GD0203", "GD0602"]),
    "modes": (1, []),
    "constructors_and_properties": (1, []),
    "modules": (1, []),
    "what_is_handled": (1, []),
    "in_a_handler": (1, ["GD0401", "GD0304"]),
    "generators": (1, ["GD0304"]),
    "deep": (1, []),
    "groups_and_sizes": (1, []),
    "operations_after_it": (1, []),
}

#: the same for the cases of checkpoint_cases.py
CHECKPOINTED = {
    "parallel_blocks": (1, []),
    "reentrant": (1, []),
    "with_dropout": (1, []),
    "several_results": (1, []),
    "collectives": (1, []),
    "collectives_in_place": (1, ["GD0201"]),
    "dtensors": (1, []),
    "handlers_outside": (1, []),
    "handlers_inside": (2, ["GD0304"]),
    "checkpoints_in_checkpoints": (1, ["GD0201"]),
    "without_gradients": (1, []),
}

PROGRAMS = {"block_cases.py": BLOCKS, "checkpoint_cases.py": CHECKPOINTED}

#: the same for the cases of training_cases.py
TRAINED = {
    "fsdp": (1, []),
    "fsdp_root_only": (1, []),
    "fsdp_blocks_only": (1, []),
    "fsdp_keeps_parameters": (1, []),
    "fsdp_half": (1, []),
    "fsdp_output_dtype": (1, []),
    "fsdp_arguments_keep_their_dtype": (1, []),
    "fsdp_frozen": (1, []),
    "fsdp_thaws": (1, []),
    "fsdp_tied": (1, []),
    "fsdp_checkpoint": (1, []),
    "fsdp_checkpoint_wrapper": (1, []),
    "fsdp_called_twice": (1, []),
    "fsdp_arguments": (1, []),
    "fsdp_results": (1, []),
    "fsdp_view": (1, []),
    "fsdp_prefetch_and_accumulation": (1, []),
    "fsdp_other_hooks": (1, []),
    "fsdp_sizes": (1, []),
    "fsdp_module_replaced": (1, []),
    "fsdp_raises": (1, []),
    "fsdp_caught": (1, []),
    "fsdp_and_tensor_parallel": (1, []),
    "ddp": (1, []),
    "ddp_buffers": (1, []),
    "ddp_unused": (1, []),
    "ddp_static": (1, []),
    "ddp_accumulation": (1, []),
    "ddp_results": (1, []),
    "ddp_without_gradients": (1, []),
}

#: cases of training_cases.py that break the graph elsewhere, or that explain cannot call
TRAINED_OTHERS = (
    "fsdp_without_gradients fsdp_identity fsdp_reads_parameters fsdp_checkpoint_half fsdp_each_block_optimized "
    "fsdp_group fsdp_root_optimized_late"
).split()


def start(program, *arguments, second=(), **variables):
    """Run a program as two ranks with these environment variables; return the exit statuses and outputs by rank.

    ``second`` has other variables for the second rank.
    """
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {**os.environ, **variables, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    children = [
        subprocess.Popen(
            [forked.python(), str(HERE / program), *arguments],
            env={**env, "OMP_NUM_THREADS": "1", "RANK": str(rank), **dict(second if rank else ())},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    out = [child.communicate(timeout=240) for child in children]
    return [child.returncode for child in children], out


@pytest.fixture(scope="session")
def ran(tmp_path_factory):
    """Return a function that gives the records of all cases of a program by rank.

    Each program runs once with each backend. Workers of pytest-xdist share the records in files.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    @functools.cache
    def records(backend, program="rank_cases.py"):
        file = folder / f"{program}-{backend}.json"
        with FileLock(f"{file}.lock"):
            if not file.exists():
                codes, out = start(program, backend)
                assert codes == [0, 0], out
                lines = [[json.loads(line) for line in text.splitlines() if line.startswith("{")] for text, _ in out]
                file.write_text(json.dumps([{record["case"]: record for record in rank} for rank in lines]))
        return json.loads(file.read_text())

    return records


def test_every_case_is_listed(ran):
    assert sorted(ran("inline")[0]) == sorted([*CAPTURED, *OTHERS])


@pytest.mark.parametrize("name", [*CAPTURED, *OTHERS])
@pytest.mark.parametrize("backend", ["inline", "aot_eager"])
def test_outcomes_are_eagers(ran, backend, name):
    for rank in ran(backend):
        assert rank[name]["differs"] == []


@pytest.mark.parametrize("name", CAPTURED)
def test_first_call(ran, name):
    record = ran("inline")[0][name]
    assert (record["graphs"], record["breaks"]) == CAPTURED[name]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_case_of_a_program_is_listed(ran, program):
    assert sorted(ran("inline", program)[0]) == sorted(PROGRAMS[program])


PROGRAM_CASES = [(program, name) for program, cases in PROGRAMS.items() for name in cases]


@pytest.mark.parametrize(("program", "name"), PROGRAM_CASES)
@pytest.mark.parametrize("backend", ["inline", "aot_eager"])
def test_a_programs_outcomes_are_eagers(ran, backend, program, name):
    for rank in ran(backend, program):
        assert rank[name]["differs"] == []


@pytest.mark.parametrize(("program", "name"), PROGRAM_CASES)
def test_what_a_program_captures(ran, program, name):
    record = ran("inline", program)[0][name]
    assert (record["graphs"], record["breaks"]) == PROGRAMS[program][name]


def test_signals_at_side_exits():
    """Handlers run whatever arrives, and nothing is left behind. Each rank has a group of its own."""
    codes, out = start("exit_signals.py", "2000")
    assert codes == [0, 0], out
    for stdout, _ in out:
        found = json.loads(stdout.splitlines()[-1])
        assert found["ended"] > 100
        assert (found["wrong"], found["unbalanced"]) == (0, 0)
        assert found["left"] < 100


def test_every_training_case_is_listed(ran):
    assert sorted(ran("inline", "training_cases.py")[0]) == sorted([*TRAINED, *TRAINED_OTHERS])


@pytest.mark.parametrize("name", [*TRAINED, *TRAINED_OTHERS])
@pytest.mark.parametrize("backend", ["inline", "aot_eager"])
def test_training_is_eagers(ran, backend, name):
    for rank in ran(backend, "training_cases.py"):
        differs = rank[name]["differs"]
        if (backend, name) == ("aot_eager", "fsdp_view"):  # AOTAutograd's results are no views, of which torch warns
            differs = [(eager, got) for eager, got in differs if eager[:-1] != got[:-1]]
        assert differs == []


@pytest.mark.parametrize("name", TRAINED)
def test_captured_training(ran, name):
    record = ran("inline", "training_cases.py")[0][name]
    assert (record["graphs"], record["breaks"]) == TRAINED[name]


#: program -> cases of which a second process translates nothing
STORED = {
    "training_cases.py": "fsdp ddp",
    "block_cases.py": "handlers_of_callers callers_go_on modes modules",
    "rank_cases.py": "plain functional_gradients subgroup tensor_parallel other_meshes",
    "checkpoint_cases.py": "parallel_blocks several_results collectives dtensors handlers_outside",
}


@pytest.mark.parametrize("program", STORED)
def test_ranks_share_translations(program, tmp_path):
    """What one process has stored, both ranks of the next one load."""
    for again in (False, True):
        codes, out = start(program, "inline", *STORED[program].split(), GODYNAMO_CACHE_DIR=str(tmp_path / "folder"))
        assert codes == [0, 0], out
        for stdout, _ in out:
            records = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
            assert [r["case"] for r in records] == STORED[program].split()
            assert [r["differs"] for r in records] == [[]] * len(records)
            assert not again or [r["case"] for r in records if r["made"] or not r["loaded"]] == []


def test_one_rank_has_translations(tmp_path):
    """A rank that loads its translations and a rank that translates run the same collectives."""
    folder = {"GODYNAMO_CACHE_DIR": str(tmp_path / "folder")}
    for again in (False, True):
        second = {"GODYNAMO_CACHE_DIR": "0"} if again else {}
        codes, out = start("rank_cases.py", "inline", "tensor_parallel", "functional", second=second, **folder)
        assert codes == [0, 0], out
        made = []
        for stdout, _ in out:
            records = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
            assert [r["differs"] for r in records] == [[], []]
            made.append(sum(r["made"] for r in records))
    assert made[0] == 0 < made[1]


def test_profiler_blocks():
    """Each block ends once, where it ends in eager mode, also after a handler, a graph break or a return inside it."""
    codes, out = start("profiled_blocks.py")
    assert codes == [0, 0], out
    lines = [json.loads(line) for line in out[0][0].splitlines() if line.startswith("[")]
    assert [line for line in lines if len(line) > 3 and not (line[1] and line[4] == [])] == []
    captured = {name: tuple(counts) for name, *counts in lines if len(counts) == 2}
    assert captured == {"caught": (1, 0), "passes": (1, 0), "breaks": (2, 2), "stays_open": (1, 1)}


def test_a_rank_dies():
    """The rank that stays gets the same exception, at the same line, as in eager mode."""
    for how in ("eager", "optimized"):
        codes, out = start("dying_rank.py", how)
        assert codes == [0, 3], out
        assert out[0][0] == "RuntimeError at line 22\n", out
