"""``godynamo bench``: its measurements, files, comparisons and usage errors. A process takes about three seconds."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from browser import SCREENSHOTS, dom, open_page
from cli_support import ROOT, TOOL, environment, tool

USERS = """
import os, time, torch

def work(a, b):
    '''Adds and clamps.'''
    delay = float(os.environ.get("BENCH_DELAY", "0"))
    if delay:
        end = time.perf_counter() + delay
        while time.perf_counter() < end:
            pass
    return torch.clamp(a + b, 0.0) * 2

def adding(a, b):
    return torch.clamp(a + b, 0.0) * 2

def pair():
    return torch.randn(16), torch.randn(16)

adding.example_inputs = pair

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def forward(self, x, *, scale=1.0):
        return self.layer(x) * scale

def net():
    return Net().eval(), (torch.randn(2, 8),), {"scale": 2.0}

def delayed():
    return work, pair()

def dies(a):
    os.kill(os.getpid(), 11)

dies.example_inputs = (1,)

def no_inputs(a):
    return a

import godynamo

@godynamo.register_backend
def wrong(gm, example_inputs):
    return lambda *args: tuple(x + 1 for x in gm(*args))

def raises():
    raise RuntimeError("on purpose")

def slow(a):
    time.sleep(60)

slow.example_inputs = (1,)

number = 3
"""


@pytest.fixture
def users(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(USERS)
    return file


def bench(*arguments, **more):
    return tool("bench", *arguments, **more)


def few(processes=1, rounds=2):
    return "--quick", "--processes", processes, "--rounds", rounds


def row(result, workload, engine="godynamo"):
    (found,) = [w for w in result["workloads"] if w["name"] == workload]
    return found["engines"][engine]


def test_the_micro_set_is_measured_and_written_in_every_form(tmp_path):
    files = {name: tmp_path / name for name in ("r.json", "r.csv", "r.txt", "r.html")}
    run = bench(
        *few(2, 3), "--only", "relu", "--only", "toy_*", "--json", files["r.json"], "--csv", files["r.csv"],
        "--bench", files["r.txt"], "--html", files["r.html"], "--png", tmp_path / "png",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "\x1b" not in run.stderr, "no terminal: no progress bar"
    assert "bench: relu:  eager" in run.stderr
    assert " relu " in run.stdout
    assert " toy_example " in run.stdout

    result = json.loads(files["r.json"].read_text())
    assert [w["name"] for w in result["workloads"]] == ["relu", "toy_example"]
    ours, theirs = row(result, "relu"), row(result, "relu", "torch.compile")
    assert (ours["correct"], ours["graphs"], ours["breaks"], ours["ops"]) == ("yes", 1, 0, 3)
    assert (theirs["graphs"], theirs["ops"]) == (1, 3)
    assert row(result, "toy_example")["breaks"] == 1
    assert ours["cold"]["seconds"] == pytest.approx(ours["cold"]["capture"] + ours["cold"]["backend"])
    assert ours["guards"] > 0
    assert 1 < ours["guards_ns"] < 10_000
    assert ours["peak_bytes"] > 0
    assert [len(samples) for samples in ours["samples_us"]] == [3, 3]
    best = sorted(min(samples) for samples in ours["samples_us"])
    assert ours["warm_us"]["value"] == pytest.approx(sum(best) / 2)
    assert best[0] == pytest.approx(ours["warm_us"]["low"])

    rows = list(csv.DictReader(files["r.csv"].open()))
    assert len(rows) == 6
    assert float(rows[2]["warm_us"]) == pytest.approx(ours["warm_us"]["value"], rel=1e-6)
    lines = [line for line in files["r.txt"].read_text().splitlines() if line.startswith("Benchmark")]
    assert len(lines) == 2 * 3 * 2 * 3
    assert all(line.split()[3] == "ns/op" for line in lines)
    for name in ("ratio.png", "warm.png", "cold.png"):
        assert (tmp_path / "png" / name).read_bytes().startswith(b"\x89PNG")

    assert open_page(files["r.html"], SCREENSHOTS / "bench.png", size=(1300, 1700)) == []
    assert open_page(files["r.html"], SCREENSHOTS / "bench_dark.png", size=(1300, 1700), dark=True) == []
    assert dom(files["r.html"]).count("<canvas") >= 3  # every chart was drawn


def test_json_goes_to_stdout_in_place_of_the_table():
    run = bench(*few(), "--only", "identity", "--engine", "godynamo", "--json")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["settings"]["engines"] == ["eager", "godynamo"]
    assert row(result, "identity")["warm_us"]["confidence"] == 0  # a single process yields no interval


def test_workloads_of_the_users_own(users):
    names = [f"{users}:{name}" for name in ("adding", "net", "Net")]
    users.write_text(USERS + "\nexample_inputs = {'x': torch.ones(3, 8)}\n")
    run = bench(*few(), *[f"--module={name}" for name in names], "--engine", "godynamo=aot_eager", "--json")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert [w["name"] for w in result["workloads"]] == ["adding", "net", "Net"]
    for workload in result["workloads"]:
        found = workload["engines"]["godynamo=aot_eager"]
        assert found["correct"] in ("yes", "close")
        assert found["graphs"] == 1
        assert found["backend"] == "aot_eager"
        assert found["cold"]["backend"] > 0


def test_the_documents_example_runs(tmp_path):
    text = (ROOT / "docs" / "bench.md").read_text()
    (tmp_path / "model.py").write_text(text.partition("```python\n")[2].partition("```")[0])
    specs = ["--module", "model.py:attention", "--module", "model.py:scaled"]
    run = bench(*few(), *specs, "--engine", "godynamo", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert row(result, "scaled")["ops"] == 2
    assert row(result, "attention")["graphs"] >= 1


def test_a_wrong_result_has_no_figures_and_a_death_ends_no_other(users):
    specs = [f"--module={users}:{name}" for name in ("dies", "adding")]
    run = bench(*few(), *specs, "--engine=godynamo", "--engine=godynamo=wrong", "--json")
    assert run.returncode == 1
    result = json.loads(run.stdout)
    assert result["workloads"][0]["error"].startswith("its process died: signal: segmentation fault")
    assert result["workloads"][0]["engines"] == {}
    wrong = row(result, "adding", "godynamo=wrong")
    assert "another result than eager's in call 1" in wrong["error"]
    assert wrong["correct"] == "no"
    assert not wrong.get("warm_us")
    assert not wrong["samples_us"]
    assert row(result, "adding")["warm_us"]["value"] > 0


@pytest.mark.serial  # compares times
def test_a_slowed_workload_shows_and_two_runs_of_the_same_do_not(users, tmp_path):
    spec = f"--module={users}:delayed"
    # The slow run adds 30 µs to about 5 µs: other processes on this machine disturb less than that.
    runs = {"old": "0", "same": "0", "slow": "0.00003"}
    for name, delay in runs.items():
        run = bench(
            "--quick", "--processes", 5, "--rounds", 8, spec, "--engine", "godynamo", f"--json={tmp_path / name}.json",
            BENCH_DELAY=delay,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr

    def compare(new, *more):
        return bench("--load", tmp_path / f"{new}.json", "--compare", tmp_path / "old.json", *more)

    same = compare("same", "--fail-on", "20%")
    assert same.returncode == 0, same.stdout + same.stderr
    slow = compare("slow", "--fail-on", "5%", "--html", tmp_path / "c.html")
    assert slow.returncode == 1, slow.stdout
    assert "delayed with godynamo got" in slow.stderr
    assert slow.stdout.count("slower") == 2  # eager runs the slow code as well
    assert compare("slow").returncode == 0, "without --fail-on a comparison only tells"
    assert compare("slow", "--fail-on", "1000000%").returncode == 0
    assert open_page(tmp_path / "c.html", SCREENSHOTS / "bench_compare.png") == []


BAD_USE = {
    "a suite": (["--suite", "micr"], "no suite is called 'micr'; did you mean micro?"),
    "a workload": (["--only", "rel"], "no workload is called 'rel'; did you mean relu?"),
    "an engine": (["--engine", "gdynamo"], "no engine is called 'gdynamo'; did you mean godynamo?"),
    "a backend": (["--engine", "godynamo=inductr"], "no backend is named 'inductr'; near it: 'inductor'"),
    "no backend": (["--engine", "godynamo="], "engine 'godynamo=' names no backend"),
    "eager with a backend": (["--engine", "eager=inductor"], "the engine eager takes no backend"),
    "an argument": (["relu"], "bench takes no arguments, only flags: --only relu"),
    "a flag": (["--quik"], "unknown flag: --quik; did you mean --quick?"),
    "a missing file": (["--module", "none.py:f"], "no such file: none.py"),
    "a missing module": (["--module", "no_such_module:f"], "no such file: no_such_module"),
    "half a module": (["--module", "none.py"], "--module none.py: FILE:NAME is wanted"),
    "no old result": (["--compare", "old.json"], "there is no file old.json"),
    "a threshold": (["--fail-on", "5%"], "--fail-on needs --compare OLD.json"),
    "a directory that is not": (["--json", "none/r.json"], "none/r.json: there is no directory none"),
    "too few": (["--rounds", "-1"], "--processes and --rounds are at least 1"),
}


@pytest.mark.parametrize("name", BAD_USE)
def test_bad_use_is_one_line(name, tmp_path):
    arguments, text = BAD_USE[name]
    run = bench(*arguments, cwd=tmp_path)
    assert run.returncode == 2, run.stdout + run.stderr
    assert text in run.stderr
    assert run.stderr.count("\n") == 1
    assert run.stderr.startswith("godynamo: ")
    assert run.stdout == ""


USERS_BAD = {
    "addng": "has no 'addng'; did you mean adding?",
    "no_inputs": "has no inputs: give it or its file example_inputs",
    "number": "is int, nothing that can be called",
    "raises": "raises: line 49 of mine.py: RuntimeError: on purpose",
}


@pytest.mark.parametrize("name", USERS_BAD)
def test_bad_use_of_a_module_is_one_line(name, users):
    run = bench("--module", f"{users}:{name}")
    assert run.returncode == 2, run.stdout + run.stderr
    assert USERS_BAD[name] in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_file_that_raises_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("import torch\nnone = torch.no_such_thing\n")
    run = bench("--module", "broken.py:f", cwd=tmp_path)
    assert run.returncode == 2
    assert "broken.py cannot be loaded: line" in run.stderr
    assert "AttributeError" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_model_library_that_is_missing_is_named(tmp_path):
    names = [name for name in ("timm", "transformers", "torchvision") if not has(name)]
    if not names:
        pytest.skip("every model library is installed")
    run = bench("--suite", names[0], cwd=tmp_path)
    assert run.returncode == 2
    assert f"suite {names[0]} needs the package {names[0]}" in run.stderr
    assert run.stderr.count("\n") == 1


def has(name):
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def test_a_torn_result_is_named(tmp_path):
    (tmp_path / "torn.json").write_text('{"kind": "godynamo bench", "version": 1,\n "workloads": [{"name"')
    for flag in ("--compare", "--load"):
        run = bench(flag, "torn.json", cwd=tmp_path)
        assert run.returncode == 2
        assert "torn.json is torn or no JSON: line 2" in run.stderr
        assert run.stderr.count("\n") == 1


def test_ctrl_c_writes_what_was_measured_and_ends_the_children(users, tmp_path):
    out = tmp_path / "r.json"
    command = [
        TOOL, "bench", "--quick", "--engine=godynamo", f"--module={users}:adding", f"--module={users}:slow",
        f"--json={out}",
    ]  # fmt: skip
    users.write_text(USERS + f"\nwith open({str(tmp_path / 'pids')!r}, 'a') as pids: print(os.getpid(), file=pids)\n")
    run = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for line in run.stderr:
        if line.startswith("bench: adding:"):
            break
    time.sleep(0.5)  # now the next workload's process is starting
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130, errors
    assert "interrupted; what was measured so far is written" in errors
    result = json.loads(out.read_text())
    assert result["interrupted"] is True
    assert [w["name"] for w in result["workloads"]] == ["adding"]
    assert row(result, "adding")["warm_us"]["value"] > 0
    for pid in (tmp_path / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_the_tools_micro_set_is_make_benchs():
    """`godynamo bench` and `make bench` use one engine: the same function runs the same workloads."""
    sys.path.insert(0, str(ROOT / "python"))
    import godynamo_workloads as workloads
    from godynamo._tools.bench import groups, suites

    assert suites.load(["micro"]) == workloads.WORKLOADS
    assert groups.SIDES == ("eager", "torch.compile", "godynamo")
