"""Stored translations of frames whose graph breaks: resume functions, the places of breaks, breaks to come."""

from __future__ import annotations

import shutil
from pathlib import Path

from stored_support import Programs

BREAKS = """
import torch, godynamo

def f(x, n):
    y = x + n
    print(end="")
    try:
        z = y * int(y.sum())
        raise ValueError(n)
    except ValueError as e:
        z = z + e.args[0]
    return [z[i] for i in range(n)]

def main():
    g = godynamo.optimize(f)
    return [t.tolist() for t in g(torch.ones(3), 2)], [t.tolist() for t in g(torch.ones(4), 3)]
"""


def test_resume_functions_are_loaded(programs: Programs) -> None:
    programs.write("breaks", BREAKS)
    first, second = programs.run("breaks"), programs.run("breaks")
    assert first.result == second.result and first.translated > 1
    assert second.translated == 0


LOOPS = """
import torch, godynamo

def f(xs, d):
    out = []
    for i, (x, y) in enumerate(zip(xs, tuple(xs))):
        godynamo.graph_break()
        out.append(x * i + y)
    for k, v in d.items():
        godynamo.graph_break()
        out.append(v * 2)
    for v in reversed(xs):
        godynamo.graph_break()
        out.append(v + 1)
    negated = map(torch.neg, reversed(xs))
    godynamo.graph_break()
    return out + list(negated)

def main():
    g = godynamo.optimize(f)
    xs = [torch.ones(2) * k for k in range(4)]
    return [t.tolist() for n in (3, 4, 3) for t in g(xs[:n], dict(enumerate(xs[:n])))]
"""


def test_resumed_iterators_are_loaded(programs: Programs) -> None:
    programs.write("loops", LOOPS)
    first, second = programs.run("loops"), programs.run("loops")
    assert first.result == second.result and first.translated > 1
    assert second.translated == 0


PLACES = """
import re, torch, godynamo

def f(x, n):
    y = x + 1
    if y.sum() > n:
        return y

def main():
    g = godynamo.optimize(f)
    g(torch.ones(1), 1)
    entry = godynamo.cache_entries(g)[0]
    kinds = {line.split("\\t")[-1] for line in entry.info["guard_kinds"].splitlines() if line.endswith(".py")}
    return __file__, entry.info["breaks"][0][3][0][1], kinds
"""


def test_places_are_those_of_this_process(programs: Programs, tmp_path: Path) -> None:
    programs.write("places", PLACES)
    file, place, kinds = programs.run("places").result
    assert place == file and kinds == {file}
    shutil.move(programs.sources, tmp_path / "elsewhere")
    programs.sources = tmp_path / "elsewhere"
    ran = programs.run("places")
    assert ran.loaded == 2 and ran.result == (str(tmp_path / "elsewhere" / "places.py"),) * 2 + ({ran.result[0]},)


ELSEWHERE = """
import torch, godynamo
from godynamo import utils

def split(x):
    godynamo.graph_break()
    return x * 4

def whole(x):
    return x * 3

def f(x, g):
    return g(x + 1) + 1

def main(name):
    result = godynamo.optimize(f)(torch.ones(2), globals()[name])
    return result.tolist(), dict(utils.counters["graph_break"])
"""


def test_a_break_that_would_not_be_made_again(programs: Programs) -> None:
    """The translation that breaks at g(x + 1) is valid for each g."""
    programs.write("elsewhere", ELSEWHERE)
    assert programs.run("elsewhere", "split").translated == 4
    assert programs.run("elsewhere", "split").translated == 0
    whole = programs.run("elsewhere", "whole")
    assert whole.result == ([7, 7], {}) and whole.translated == 1
    assert programs.run("elsewhere", "whole") == whole._replace(translated=0, loaded=1)
    assert programs.run("elsewhere", "split").translated == 0


LOGS = """
import logging, torch, godynamo
from godynamo import utils

log = logging.getLogger("program")
log.setLevel(logging.INFO)
log.propagate = False

class Counts(logging.Handler):
    def emit(self, record):
        pass

def f(x):
    log.info("called")
    return x + 1

def main(handled):
    log.addHandler(Counts() if handled else logging.NullHandler())
    godynamo.optimize(f)(torch.ones(1))
    return dict(utils.counters["graph_break"])
"""


def test_a_translation_without_a_break_comes_first(programs: Programs) -> None:
    """No guard compares a logger's handlers where they break the graph."""
    programs.write("logs", LOGS)
    assert programs.run("logs", False).result == {}
    assert len(programs.run("logs", True).result) == 1
    assert programs.run("logs", False) == ({}, 0, 1, 0)


ARRAYS = """
import numpy, torch, godynamo
from godynamo import utils

def f(x, index):
    return x[index]

def main(kind):
    index = numpy.zeros((2, 1) if kind == "rows" else 2, int)
    godynamo.optimize(f)(torch.ones(3), index)
    return len(utils.counters["graph_break"])
"""


def test_a_numpy_array_that_breaks_the_graph_is_not_stored(programs: Programs) -> None:
    programs.write("arrays", ARRAYS)
    assert programs.run("arrays", "rows").result == 1
    assert programs.run("arrays", "one") == (0, 1, 0, 0)


CACHED = """
import functools, torch, godynamo

@functools.lru_cache
def wide(n):
    return n > LIMIT

LIMIT = 2

def f(x, n):
    return x * 3 if wide(n) else x + 1

def main(first):
    if first:
        wide(3)
    return godynamo.optimize(f)(torch.ones(2), 3).tolist()
"""


def test_cached_calls_must_find_the_same(programs: Programs) -> None:
    """Whether the call is a hit, and its result, decide what is captured."""
    programs.write("cached", CACHED)
    assert programs.run("cached", True).translated == 1
    second = programs.run("cached", True)
    assert (second.translated, second.loaded, second.result) == (0, 1, [3.0, 3.0])
    missed = programs.run("cached", False)
    assert missed.result == [3.0, 3.0] and missed.translated > 0
    programs.write("cached", CACHED.replace("LIMIT = 2", "LIMIT = 5"))
    other = programs.run("cached", True)
    assert (other.loaded, other.result) == (0, [2.0, 2.0])


CACHED_METHOD = """
import functools, torch, godynamo

class Logger:
    def __init__(self):
        self.said = []

    @functools.lru_cache(None)
    def once(self, text):
        self.said.append(text)

log = Logger()

def f(x):
    log.once("seldom")
    return x * 2

def main():
    g = godynamo.optimize(f)
    return [g(torch.ones(2)).tolist() for _ in range(3)], log.said
"""


def test_cached_methods(programs: Programs) -> None:
    programs.write("method", CACHED_METHOD)
    for translated in (True, False):
        ran = programs.run("method")
        assert ran.result == ([[2.0, 2.0]] * 3, ["seldom"])
        assert (ran.translated > 0, ran.loaded > 0) == (translated, not translated)


WRAPPED = """
import functools, torch, godynamo

def decorated(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args)
    return wrapper

@decorated
@decorated
def inside(x):
    def twice(t):
        return t * 2
    return twice

def f(x):
    twice = inside(x)
    return twice(x) + 1, twice

def main():
    y, twice = godynamo.optimize(f)(torch.ones(2))
    return y.tolist(), twice(3), twice.__qualname__
"""


def test_functions_made_inside_decorated_ones(programs: Programs) -> None:
    programs.write("wrapped", WRAPPED)
    first, second = programs.run("wrapped"), programs.run("wrapped")
    assert first.result == second.result == ([3.0, 3.0], 6, "inside.<locals>.twice")
    assert (first.translated, second.translated) == (1, 0)
    programs.write("wrapped", WRAPPED.replace("t * 2", "t * 3"))
    assert programs.run("wrapped").result == ([4.0, 4.0], 9, "inside.<locals>.twice")


ENDINGS = """
import torch, godynamo
from godynamo import _C
from godynamo.testing import CompileCounter

class Number:
    value = 2

class Noisy(Number):
    def __del__(self):
        ended.append("ended")

def internal_error(info):
    ended.append(str(info["error"]))

ended = []
_C.set_callback("internal_error", internal_error)

@godynamo.disable
def pair(kind):
    return 3, kind()

def f(x, kind):
    numbers = pair(kind)
    y = x * numbers[1].value
    del numbers
    ended.append("after")
    return y + 1

def main(mode):
    out = godynamo.optimize(f)(torch.ones(1), Noisy if mode == "noisy" else Number)
    return int(out), ended
"""


def test_what_ends_here_is_found_before_a_translation_is_tried(programs: Programs) -> None:
    """The guards of the stored translation read the object, and so hold it when the frame is translated."""
    programs.write("endings", ENDINGS)
    assert programs.run("endings", "plain").result == (3, ["after"])
    for _ in range(2):
        assert programs.run("endings", "noisy").result == (3, ["ended", "after"])
