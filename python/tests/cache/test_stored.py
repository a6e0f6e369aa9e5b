"""Translations in files: another process loads them, and only where they fit."""

from __future__ import annotations

import importlib.metadata
import linecache
import os
import random
import shutil
import stat
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo._stored.prints import version_of
from stored_support import Programs

PYTHON = Path(__file__).resolve().parents[2]

MODEL = """
import torch, godynamo
import helper

class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear, self.norm, self.k = torch.nn.Linear(n, n), torch.nn.LayerNorm(n), 3

    def forward(self, x, *, flag=True):
        y = torch.nn.functional.relu(self.linear(x))
        if flag:
            y = helper.scaled(y, self.k)
        return self.norm(y) + x

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        print(end="")
        seen.append(float(x.sum()))
        return {"x": x * 2}

seen = []

def main(size=2):
    torch.manual_seed(0)
    model, x = Net(), torch.ones(size, 4)
    with godynamo.config.patch(disable=True):
        want = model(x)["x"].tolist()
    got = godynamo.optimize(model)(x)["x"].tolist()
    return got == want and seen[0] == seen[1], got
"""

HELPER = """
def scaled(y, k):
    return y * k
"""


def model(programs: Programs) -> None:
    programs.write("model", MODEL)
    programs.write("helper", HELPER)


def test_a_second_process_translates_nothing(programs: Programs) -> None:
    model(programs)
    first, second = programs.run("model"), programs.run("model")
    assert first.translated > 0 and first.loaded == 0
    assert second.translated == 0 and second.loaded == first.translated
    assert second.result == first.result and first.result[0]


def test_other_sizes_are_translated_once(programs: Programs) -> None:
    model(programs)
    programs.run("model", 2)
    assert programs.run("model", 3).result[0]
    third = programs.run("model", 3)
    assert third.translated == 0 and third.result[0]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("helper", "y * k", "y * k * 2"),
        ("helper", "y * k", "y + k"),
        ("model", "flag=True", "flag=False"),
        ("model", "x * 2", "x * 3"),
        ("model", "self.norm(y) + x", "self.norm(y) - x"),
        ("model", ", 3\n", ", 4\n"),
    ],
)
def test_a_changed_line_is_seen(programs: Programs, name: str, old: str, new: str) -> None:
    model(programs)
    first = programs.run("model")
    text = (MODEL if name == "model" else HELPER).replace(old, new)
    assert text not in (MODEL, HELPER)
    programs.write(name, text)
    changed = programs.run("model")
    assert changed.result[0] and changed.result != first.result
    assert changed.translated > 0


def test_moved_sources_are_the_same_program(programs: Programs, tmp_path: Path) -> None:
    model(programs)
    programs.run("model")
    moved = Programs(tmp_path / "other" if (tmp_path / "other").mkdir() is None else tmp_path)
    model(moved)
    shutil.rmtree(moved.files, ignore_errors=True)
    shutil.copytree(programs.files, moved.files)
    ran = moved.run("model")
    assert ran.translated == 0 and ran.loaded > 0 and ran.result[0]


@pytest.mark.parametrize("settings", [{"guard_nn_modules": False}, {"tensor_guards": "full"}, {"reuse_layers": False}])
def test_settings_belong_to_the_key(programs: Programs, settings: dict[str, object]) -> None:
    model(programs)
    programs.run("model")
    ran = programs.run("model", **settings)
    assert ran.translated > 0 and ran.result[0]


def test_damaged_files_are_misses(programs: Programs) -> None:
    model(programs)
    first = programs.run("model")
    rng, kept = random.Random(1), {path: path.read_bytes() for path in programs.stored()}
    for trial in range(12):
        for path, data in kept.items():
            at = rng.randrange(len(data))
            bad = data[:at] if trial % 2 else data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bad)
        ran = programs.run("model")
        assert ran.result == first.result and ran.loaded == 0


def test_a_folder_that_cannot_be_written_is_no_error(programs: Programs) -> None:
    model(programs)
    programs.files.write_text("a file in place of the folder")
    ran = programs.run("model")
    assert ran.result[0] and ran.translated > 0


HEAVY = pytest.mark.skipif(not os.environ.get("GODYNAMO_HEAVY_TESTS"), reason="make test-heavy")


@pytest.mark.parametrize("count", [6, pytest.param(64, id="many_more", marks=HEAVY)])
def test_processes_that_start_at_once_translate_once(programs: Programs, count: int) -> None:
    model(programs)
    children = [programs.start("model") for _ in range(count)]
    ran = [programs.ended(*child) for child in children]
    assert all(r.result == ran[0].result and r.result[0] for r in ran)
    alone = programs.run("model")
    assert sum(r.translated for r in ran) == alone.loaded


CLASSES = """
import abc, torch, godynamo

class Shape(abc.ABC):
    pass

class Square:
    pass

def f(x, obj):
    return x + 1 if isinstance(obj, Shape) else x - 1

def main(register):
    if register:
        Shape.register(Square)
    g = godynamo.optimize(f)
    return g(torch.zeros(2), Square()).tolist()
"""


def test_a_class_that_is_registered_elsewhere(programs: Programs) -> None:
    programs.write("classes", CLASSES)
    assert programs.run("classes", False).result == [-1.0, -1.0]
    assert programs.run("classes", True).result == [1.0, 1.0]
    assert programs.run("classes", False).result == [-1.0, -1.0]


HIDDEN = """
import functools, operator, torch, godynamo

def add(x, y):
    return x + y

def main(n):
    scale, part = operator.itemgetter(n), functools.partial(add, y=n)
    table = [10.0, 20.0, 30.0]

    @godynamo.optimize
    def f(x):
        return part(x) * scale(table)

    return f(torch.ones(1)).tolist()
"""


def test_contents_that_no_guard_sees(programs: Programs) -> None:
    programs.write("hidden", HIDDEN)
    for n in (1, 2, 1):
        assert programs.run("hidden", n).result == [(1 + n) * (10.0, 20.0, 30.0)[n]]


OF_C = """
import collections, operator, re, struct, torch, godynamo

def main(n):
    pattern, size = re.compile("ab" if n == 1 else "b"), struct.Struct("i" if n == 1 else "d")
    changed, last = operator.methodcaller("replace", "a", "c" * n), operator.attrgetter("real" if n == 1 else "imag")
    Pair = collections.namedtuple("Pair", "left right" if n == 1 else "right left")

    def f(x, pair, word):
        return x + pair.left, pattern.search(word), size.size, changed(word), last(2 + 3j), pair.right

    def text(found):
        return [x.tolist() if isinstance(x, torch.Tensor) else str(x) for x in found]

    arguments = torch.ones(1), Pair(1, 2), "ab"
    want, got = text(f(*arguments)), text(godynamo.optimize(f)(*arguments))
    return got == want, got
"""


def test_contents_of_objects_of_c(programs: Programs) -> None:
    programs.write("of_c", OF_C)
    first, second, third = (programs.run("of_c", n).result for n in (1, 2, 1))
    assert first[0] and second[0] and third == first
    assert first != second


SAME = """
import torch, godynamo

def one(x):
    return x + 1

def two(x):
    return x + 1

def f(x, a, b):
    return a(x) if a is b else b(x) * 100

def main(same):
    return godynamo.optimize(f)(torch.ones(1), one, one if same else two).tolist()
"""


def test_two_objects_that_become_one(programs: Programs) -> None:
    programs.write("same", SAME)
    for same in (False, True, False, True):
        assert programs.run("same", same).result == ([2.0] if same else [200.0])


STATES = """
import torch, godynamo

def f(x):
    return x * 2 if torch.is_grad_enabled() else x * 3

def main(grad):
    with torch.set_grad_enabled(grad):
        return godynamo.optimize(f)(torch.ones(1)).tolist()
"""


def test_the_global_state_of_the_first_call_counts(programs: Programs) -> None:
    programs.write("states", STATES)
    for grad in (True, False, True, False):
        assert programs.run("states", grad).result == ([2.0] if grad else [3.0])


MARKS = """
import torch, godynamo

def f(x):
    return x * int(x.shape[0] == 3)

def main(mark):
    x = torch.ones(3)
    if mark:
        godynamo.mark_dynamic(x, 0)
    return godynamo.optimize(f)(x).tolist()
"""


def test_marks_of_tensors_count(programs: Programs) -> None:
    programs.write("marks", MARKS)
    assert programs.run("marks", False) == ([1, 1, 1], 1, 0, 0)
    with pytest.raises(AssertionError, match="ConstraintViolationError"):
        programs.run("marks", True)
    assert programs.run("marks", False) == ([1, 1, 1], 0, 1, 0)


ASKS = """
import enum, torch, godynamo

asked = []

class Color(enum.Enum):
    RED = 2

    def __getattribute__(self, name):
        asked.append(name)
        return super().__getattribute__(name)

def f(x, color):
    return x * (2 if color is Color.RED else 3)

def main():
    asked.clear()
    return godynamo.optimize(f)(torch.ones(1), Color.RED).item(), list(asked)
"""


def test_no_code_of_the_program_runs(programs: Programs) -> None:
    programs.write("asks", ASKS)
    first, second = programs.run("asks"), programs.run("asks")
    assert first == ((2, []), 1, 0, 0) and second == ((2, []), 0, 1, 0)


MEMBERS = """
import enum, torch, godynamo

class Format(str, enum.Enum):
    NCHW = "NCHW"
    NHWC = "NHWC"

class Holder:
    kinds = {"a": int | None, "b": str | int}

def f(x, format, kinds):
    y = x + 1 if format is Format.NHWC else x - 1
    return y * len(kinds), Holder.kinds["a"] == (int | None)

def main(format):
    return godynamo.optimize(f)(torch.ones(1), Format(format), Holder.kinds)[0].item()
"""


def test_members_of_enums_with_a_mixin_and_unions(programs: Programs) -> None:
    programs.write("members", MEMBERS)
    assert programs.run("members", "NHWC") == (4, 1, 0, 0)
    assert programs.run("members", "NHWC") == (4, 0, 1, 0)
    assert programs.run("members", "NCHW") == (0, 1, 0, 0)


HOOKED = """
import torch, godynamo

def f(x):
    return x + 1

def main():
    with godynamo.optimize():
        return f(torch.ones(1)).tolist()
"""


@pytest.mark.parametrize(("least", "loaded"), [(0, 1), (60_000, 0)])
def test_small_functions_of_the_hook(programs: Programs, least: int, loaded: int) -> None:
    programs.write("hooked", HOOKED)
    assert programs.run("hooked", cache_min_ms=least).translated == 1
    assert programs.run("hooked", cache_min_ms=least).loaded == loaded


MANY = """
import torch, godynamo

def make(name):
    def f(x):
        return x + len(name), name
    return f

def main():
    return sum(godynamo.optimize(make("n" * i))(torch.ones(1))[0].item() for i in range(80))
"""


def test_many_functions_of_one_code_object(programs: Programs) -> None:
    """Each needs a translation of its own, of which the folder keeps 32."""
    programs.write("many", MANY)
    first = programs.run("many")
    assert first == (80 + 79 * 40, 80, 0, 0) and len(programs.stored()) == 32
    second = programs.run("many")
    assert second.result == first.result and second.translated + second.loaded == 80 and 0 < second.loaded <= 32


WHERE = """
import torch, godynamo, sys
from godynamo import utils

def f(x):
    return x + 1

assert godynamo.optimize(f)(torch.ones(1)).item() == 2
print(godynamo.config.cache_dir, utils.counters["stats"]["translations_loaded"])
"""


def test_the_default_folder(tmp_path: Path) -> None:
    (tmp_path / "where.py").write_text(WHERE)

    def run(**variables: str) -> tuple[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("GODYNAMO_CACHE_DIR", "XDG_CACHE_HOME")}
        done = subprocess.run(
            [sys.executable, "where.py"], cwd=tmp_path, env={**kept, "PYTHONPATH": str(PYTHON), **variables},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip(), done.stderr

    home = tmp_path / "home"
    folder = home / ".cache" / "godynamo" / "translations"
    assert run(HOME=str(home)) == (f"{folder} 0", "")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert run(HOME=str(home)) == (f"{folder} 1", "")
    xdg = tmp_path / "xdg"
    assert run(HOME=str(home), XDG_CACHE_HOME=str(xdg)) == (f"{xdg}/godynamo/translations 0", "")
    assert run(HOME=str(home), XDG_CACHE_HOME="xdg") == (f"{folder} 1", "")
    assert run(HOME=str(home), GODYNAMO_CACHE_DIR="0") == run(HOME=str(home), GODYNAMO_CACHE_DIR="") == ("0", "")
    assert run(HOME="/dev/null") == ("/dev/null/.cache/godynamo/translations 0", "")
    assert run(HOME="") == ("0", "")
    folder.chmod(0o777)
    where, why = run(HOME=str(home))
    assert where == f"{folder} 0" and len(why.splitlines()) == 1 and "other users may write" in why


TRACEBACK = """
import traceback, torch, godynamo

def inner(x):
    return x @ x

def f(x):
    y = x + 1
    return inner(y)

def main():
    g = godynamo.optimize(f)
    g(torch.ones(2, 2))
    try:
        g(torch.ones(2, 3))
    except RuntimeError as e:
        return [(s.name, s.lineno) for s in traceback.extract_tb(e.__traceback__)], str(e)
"""


def test_tracebacks_name_the_users_lines(programs: Programs) -> None:
    programs.write("raises", TRACEBACK)
    first, second = programs.run("raises"), programs.run("raises")
    assert first.result == second.result and [name for name, _ in first.result[0]] == ["main", "f", "inner"]
    assert second.translated == 0


COMPTIME = """
import torch, godynamo
from godynamo.comptime import comptime

ran = []

def f(x):
    comptime(lambda ctx: ran.append(1))
    return x + 1

def main():
    return godynamo.optimize(f)(torch.ones(1)).tolist(), len(ran)
"""


def test_code_that_runs_while_translating_runs_in_each_process(programs: Programs) -> None:
    programs.write("at_compile_time", COMPTIME)
    for _ in range(2):
        ran = programs.run("at_compile_time")
        assert ran.result == ([2.0], 1) and ran.loaded == 0


FOLDED = """
import os, torch, godynamo
from godynamo import assume_constant_result

@assume_constant_result
def scale(n):
    return n * int(os.environ.get("SCALE", "1"))

def f(x):
    return x * scale(2)

def main(by):
    os.environ["SCALE"] = by
    return godynamo.optimize(f)(torch.ones(1)).tolist()
"""


def test_constant_results_are_computed_in_each_process(programs: Programs) -> None:
    programs.write("folded", FOLDED)
    made = []
    for by in ("1", "3", "1", "3"):
        ran = programs.run("folded", by)
        assert ran.result == [2.0 * int(by)]
        made.append(ran.translated)
    assert made == [1, 1, 0, 0]


FORKS = """
import os, threading, torch, godynamo
from godynamo import utils

def f(x):
    return x + 1

def g(x):
    return (x * 2).relu()

def main():
    first, second = godynamo.optimize(f), godynamo.optimize(g)
    first(torch.ones(2))  # the child finds the translator loaded
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        right = second(torch.ones(2)).tolist() == [2.0, 2.0]
        os.write(write, f"{right} {utils.counters['stats']['translations_loaded']}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    threads = [threading.Thread(target=second, args=(torch.ones(2),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return os.read(read, 100).decode()
"""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_children_and_threads_load(programs: Programs) -> None:
    programs.write("forks", FORKS)
    first = programs.run("forks")
    assert first.result == "True 0"
    assert first.loaded == 1, "the parent loads what its child has stored"
    second = programs.run("forks")
    assert second.result == "True 2" and second.translated == 0


SETS = """
import torch, godynamo

def f(x):
    out = ""
    for name in {"a", "b", "c", "d", "e", "f", "g"}:
        out += name
    return x + len(out), out

def main():
    return godynamo.optimize(f)(torch.ones(1))[1] == f(torch.ones(1))[1]
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_order_of_a_set_is_that_of_the_process(programs: Programs, seed: str) -> None:
    programs.write("sets", SETS)
    path = f"{PYTHON}{os.pathsep}{programs.sources}"
    for hash_seed in ("1", "2", seed):
        env = {
            **os.environ,
            "PYTHONPATH": path,
            "PYTHONHASHSEED": hash_seed,
            "GODYNAMO_CACHE_DIR": str(programs.files),
        }
        subprocess.run([sys.executable, "-c", "import sets; assert sets.main()"], env=env, check=True)
    assert len(programs.stored()) == 2


def test_nothing_is_stored_for_a_hash_seed_that_no_process_has_again(programs: Programs) -> None:
    programs.write("sets", SETS)
    env = {
        **os.environ,
        "PYTHONPATH": f"{PYTHON}{os.pathsep}{programs.sources}",
        "PYTHONHASHSEED": "random",
        "GODYNAMO_CACHE_DIR": str(programs.files),
    }
    subprocess.run([sys.executable, "-c", "import sets; assert sets.main()"], env=env, check=True)
    assert programs.stored() == []


ARCHIVED = """
import torch, godynamo

def f(x):
    return (x * 2).relu()

def save(size):
    godynamo.optimize(f)(torch.ones(size))
    data, info = godynamo.save_cache_artifacts()
    return data, info.translations

def compiled(size):
    data, report = godynamo.precompile(godynamo.optimize(f), [torch.ones(size)])
    return data, report.translations

def main(data):
    loaded = 0 if data is None else godynamo.load_cache_artifacts(data).translations
    return loaded, godynamo.optimize(f)(torch.ones(3)).tolist()
"""


@pytest.mark.parametrize("way", ["save", "compiled"])
def test_an_archive_takes_translations_to_another_folder(programs: Programs, tmp_path: Path, way: str) -> None:
    programs.write("archived", ARCHIVED)
    programs.write("made", f"from archived import {way} as main")
    programs.write("same", SAME)
    programs.run("same", True)  # another program's translation, which is not exported
    data, count = programs.run("made", 3).result
    assert count == 1 and data.startswith(b"GDEXPORT")
    (tmp_path / "there").mkdir()
    there = Programs(tmp_path / "there")
    there.write("archived", ARCHIVED)
    ran = there.run("archived", data)
    assert ran.result == (1, [2.0] * 3) and (ran.translated, ran.loaded) == (0, 1)
    with pytest.raises(AssertionError, match="ValueError: godynamo: .*ends before"):
        there.run("archived", data[:-40])
    with pytest.raises(AssertionError, match="ValueError: godynamo: .*no export"):
        there.run("archived", b"something else")


def test_the_version_of_a_package_whose_module_is_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fingerprint of operators that a package defines; transformers' module has no __version__ of its own."""

    class Lazy(types.ModuleType):
        pass

    installed = importlib.metadata.version("pluggy")
    monkeypatch.setitem(sys.modules, "pluggy", Lazy("pluggy"))
    assert version_of("pluggy.hooks") == f" {installed}"
    monkeypatch.setitem(sys.modules, "unknown_package", Lazy("unknown_package"))
    assert version_of("unknown_package") == version_of(3) == ""


def test_precompile_says_why_it_made_nothing() -> None:
    fn = godynamo.optimize(lambda x: x + 1)
    data, report = godynamo.precompile(fn, [torch.ones(2)])
    assert data.startswith(b"GDEXPORT") and report.translations == 1 and report.settled
    with pytest.raises(ValueError, match=r"translated already; godynamo\.reset\(\)"):
        godynamo.precompile(fn, [torch.ones(2)])
    sparse = torch.eye(2).to_sparse_csr()  # has no strides
    with pytest.raises(ValueError, match="nothing of them can be stored"):
        godynamo.precompile(godynamo.optimize(lambda x: x + x), [sparse])


def test_archives_need_a_folder() -> None:
    with godynamo.config.patch(cache_dir=""):
        assert godynamo.save_cache_artifacts() is None
        with pytest.raises(ValueError, match=r"config\.cache_dir"):
            godynamo.load_cache_artifacts(b"")


@godynamo.disable
def opaque(x: Any) -> Any:
    return x


def typed(annotation: str) -> Any:
    """Return a function whose variable's type is in the source only."""
    file = f"<typed {annotation}>"
    text = f"def f(t, x):\n    y: {annotation} = opaque(x)\n    return y, t + 1\n"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"__name__": "typed", "opaque": opaque}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def test_types_that_only_the_source_has_are_not_stored(tmp_path: Path) -> None:
    with godynamo.config.patch(cache_dir=str(tmp_path / "files")):
        for annotation, value in (("int", 1), ("str", "a")):
            fn = godynamo.optimize(typed(annotation), python_ops="checked")
            assert fn(torch.ones(2), value)[0] == value
            with pytest.raises(ValueError, match=f"to TorchScript type {annotation}"):
                fn(torch.ones(2), 1.5)


COUNTED = """
import torch, godynamo
from godynamo import utils

def f(x):
    kept = (1.5, "two words", (2, 3))
    y = x + 1
    godynamo.graph_break("why")
    return y * 2, kept

def main():
    g = godynamo.optimize(f)
    same = g(torch.ones(2))[1] is g(torch.ones(2))[1] is f(torch.ones(2))[1]
    c = utils.counters
    return same, dict(c["graph_break"]), dict(c["frames"]), c["stats"]["unique_graphs"], c["stats"]["calls_captured"]
"""


def test_counters_and_constants_are_those_of_the_first_process(programs: Programs) -> None:
    programs.write("counted", COUNTED)
    first, second = programs.run("counted"), programs.run("counted")
    assert first.loaded == 0 and second.translated == 0 and second.loaded == first.translated > 1
    assert first.result == second.result
    same, breaks, frames, graphs, operations = second.result
    assert same and list(breaks.values()) == [1] and graphs == operations == 2 and frames["total"] == frames["ok"]


IN_A_DEQUE = """
import collections, torch, godynamo

def half(x):
    return x / 2

def main(n):
    def f(x, steps):
        for step in steps:
            x = step(x)
        return x

    steps = collections.deque([torch.nn.Linear(2, 2), half, torch.nn.Linear(2, 2)], maxlen=n)
    x = torch.ones(2)
    return f(x, steps).tolist() == godynamo.optimize(f)(x, steps).tolist()
"""


def test_items_of_a_deque(programs: Programs) -> None:
    programs.write("in_a_deque", IN_A_DEQUE)
    first, second, third = (programs.run("in_a_deque", n) for n in (3, 3, 4))
    assert first.result and second.result and third.result
    assert first.translated == second.loaded > 0 == second.translated and third.translated > 0
