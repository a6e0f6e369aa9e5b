"""``godynamo doctor``: describes this installation, checks each of its parts, and gives advice for those that fail.

A check is a function that returns a Finding; an exception in it also becomes a Finding. Checks leave no state. They use
the real parts: they run the layout probe on tensors and the hook on a call, translate in a forked child, time a hit.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.metadata
import importlib.util
import json
import os
import platform
import shlex
import shutil
import signal
import sys
import timeit
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OK, NOTE, WRONG = "ok", "note", "wrong"
#: A finding and its advice are printed in one line if it is not wider than this.
WIDTH = 100


@dataclass(frozen=True)
class Finding:
    """The result of a check. ``state`` is "ok", "note" (worth knowing) or "wrong"; ``advice`` is the remedy."""

    name: str
    state: str
    text: str
    advice: str = ""


def _finding(name: str, text: str, problem: str = "", advice: str = "", state: str = WRONG) -> Finding:
    return (
        Finding(name, state, f"{text}: {problem}" if text and problem else text or problem, advice)
        if problem
        else Finding(name, OK, text)
    )


def python() -> Finding:
    """Check the interpreter and its platform."""
    where = f"{sys.executable}, {platform.system()} {platform.machine()}"
    text = f"{platform.python_implementation()} {platform.python_version()} at {where}"
    from godynamo import _core

    problem = "" if _core.available else f"{_core.refusal}; everything runs eagerly"
    return _finding("python", text, problem, _core.remedy or f"install godynamo with {served()} on Linux, x86-64")


def served() -> str:
    """Return the Pythons that this version of godynamo supports: "CPython 3.11 or 3.12"."""
    prefix = "Programming Language :: Python :: "
    try:
        named = importlib.metadata.metadata("godynamo").get_all("Classifier") or []
    except importlib.metadata.PackageNotFoundError:  # neither installed nor built
        named = []
    versions = [row.removeprefix(prefix) for row in named if row.startswith(prefix)]
    if not versions:
        return "a CPython that its README names"
    *most, last = versions
    return f"CPython {', '.join(most)} or {last}" if most else f"CPython {last}"


def versions() -> Finding:
    """Check the package, torch and the packages that backends need."""
    import torch

    import godynamo

    found = [f"godynamo {godynamo.__version__}", f"torch {torch.__version__}"]
    for name in ("numpy", "triton", "transformers", "timm", "torchvision", "depyf"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    old = tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 6)
    return _finding(
        "versions", ", ".join(found), "torch is older than 2.6" if old else "", "pip install --upgrade torch"
    )


def settings() -> Finding:
    """Report the environment's settings."""
    import godynamo

    ours = {k: v for k, v in sorted(os.environ.items()) if k.startswith("GODYNAMO_") and k != "GODYNAMO_PYTHON"}
    text = " ".join(f"{k}={v}" for k, v in ours.items()) or "no GODYNAMO_ variable is set"
    off = "godynamo is switched off" if godynamo.config.disable else ""
    return _finding("settings", text, off, "unset GODYNAMO_DISABLE")


def stored() -> Finding:
    """Check the folder of translations for other processes."""
    import godynamo

    folder = Path(godynamo.config.cache_dir)
    if not godynamo.config.cache_dir:
        return _finding("stored", "translations are not stored for other processes")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    status, problem = there.stat(), ""
    if there == folder and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        problem = "it is not used, since other users own or may write it"
    elif not there.is_dir() or not os.access(there, os.W_OK):
        problem = "it cannot be written"
    if problem:
        return Finding(
            "stored", NOTE, f"{folder}: {problem}", "set GODYNAMO_CACHE_DIR to a folder of your own, or to 0"
        )
    sizes = [path.stat().st_size for path in folder.rglob("*.gdt")] if there == folder else []
    return _finding("stored", f"{len(sizes)} translations, {sum(sizes) / 2**20:.1f} MiB, in {folder}")


def layout() -> Finding:
    """Probe the offsets of a tensor's fields in memory, and compare the fields with Python's attributes."""
    from godynamo import _C
    from godynamo._called import guard_env

    found = _C.tensor_layout()
    advice = "calls with tensors are some µs slower than need be; please report this torch version"
    if not found["known"]:
        return _finding("tensor layout", "", "could not be made out: tensors are guarded through Python", advice)
    samples = (guard_env.layout_samples() or {}).get("random", [])
    wrong = sum(_C.tensor_view(tensor) != view for tensor, view in samples)
    text = (
        f"sizes at {found['sizes']}, dtype at {found['dtype']}, keys at {found['keyset']}; {len(samples)} tensors read"
    )
    return _finding(
        "tensor layout", text, f"{wrong} read wrongly" if wrong else "", "do not use this build; please report it"
    )


def torch_state() -> Finding:
    """Check that torch's global state can be read through libtorch's symbols."""
    from godynamo import _C

    found = _C.torch_state()
    slow = [name for name, (_, how) in found.items() if how == "python"]
    text = f"{len(found) - len(slow)} of {len(found)} settings read from libtorch"
    return _finding(
        "torch state", text, f"not {', '.join(slow)}" if slow else "", "those are asked through Python", NOTE
    )


def translation() -> Finding:
    """Translate a function, a data-dependent branch and a module, and compare with eager."""
    import torch

    import godynamo
    from godynamo import _C

    def function(x: Any, flag: bool) -> Any:
        y = (x + 1).relu()
        if y.sum() > 3:
            y = y * 2
        return y.sin() if flag else y

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    problem = ""
    compiled, whole = godynamo.optimize(function), godynamo.optimize(model)
    for x in (torch.linspace(-1, 1, 4), torch.linspace(0, 9, 4)):
        for flag in (True, False):
            if not torch.equal(compiled(x, flag), function(x, flag)):
                problem = "another result than eager's"
    x = torch.linspace(-1, 1, 4)
    if not torch.equal(whole(x), model(x)):
        problem = "another result than eager's"
    grads = []
    for m in (model, whole):
        model.zero_grad()
        m(x).sum().backward()
        grads.append([p.grad for p in model.parameters()])
    if not all(torch.equal(a, b) for a, b in zip(*grads, strict=True) if a is not None and b is not None):
        problem = "other gradients than eager's"
    stats = godynamo.cache_stats(compiled)
    if not stats["translations"] or not _C.golib_loaded():
        return _finding(
            "translation", "", f"nothing was translated; the library is {_C.golib_path()}", "install godynamo again"
        )
    errors = _C.counters()["internal_errors"]
    if errors and not problem:
        problem = f"{errors} internal errors"
    text = f"{stats['translations']} translations of a branch, a module with gradients; results are eager's"
    return _finding("translation", text, problem, "please report it with GODYNAMO_LOGS=+dynamo")


def hook() -> Finding:
    """Check that the eval-frame hook serves calls inside a ``with`` block and is removed afterwards."""
    import torch

    import godynamo
    from godynamo import _C

    namespace: dict[str, Any] = {}
    # The code has another file name than this file, since the hook skips godynamo's own files.
    exec(compile("def inner(x):\n    return x * 2 + 1\n", "<doctor>", "exec"), namespace)
    before = _C.counters()["hook_served"]
    with godynamo.optimize():
        for _ in range(2):
            namespace["inner"](torch.ones(2))
    served = _C.counters()["hook_served"] - before
    if served < 2:
        return _finding(
            "hook", "", f"served {served} of 2 frames", "another tool owns the eval-frame hook or a tracer is set"
        )
    left = _C.hook_installed()
    return _finding("hook", "serves frames below `with`", "it stays installed" if left else "", "please report it")


def surroundings() -> Finding:
    """Look for tools that prevent godynamo from capturing: tracers, profilers, debuggers."""
    found = [name for name, asked in (("sys.settrace", sys.gettrace()), ("sys.setprofile", sys.getprofile())) if asked]
    found += [f"the module {m} is loaded" for m in ("coverage", "pydevd", "debugpy") if m in sys.modules]
    return _finding(
        "surroundings",
        "no tracer, profiler or debugger",
        ", ".join(found),
        "where one is at work everything runs in CPython",
        NOTE,
    )


def fork() -> Finding:
    """Check that a forked child serves cached entries and translates new functions."""
    import torch

    import godynamo

    def function(x: Any, n: int) -> Any:
        return x * n

    compiled = godynamo.optimize(function)
    compiled(torch.ones(2), 2)
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            hit, new = compiled(torch.ones(2), 2), compiled(torch.ones(2), 3)
            entries = godynamo.cache_stats(compiled)["translations"]
            os.write(write, json.dumps([hit.tolist(), new.tolist(), entries]).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    killer = signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(30)
    try:
        said = os.read(read, 1000)
        _, status = os.waitpid(child, 0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, killer)
        os.close(read)
    advice = "godynamo.config.fork_reload = False keeps children from translating; please report it"
    if status or not said:
        why = f"a child was killed by signal {status & 127}" if status & 127 else "a child ended with an error"
        return _finding("fork", "", why, advice)
    hit, new, entries = json.loads(said)
    if (hit, new) != ([2.0, 2.0], [3.0, 3.0]):
        return _finding("fork", "", "a child computed wrong values", advice)
    slow = "a child serves what is cached, and runs new cases in CPython" if entries < 2 else ""
    return _finding(
        "fork", "" if slow else "a child serves what is cached and translates what is new", slow, advice, NOTE
    )


def speed() -> Finding:
    """Measure the cost of a hit: of the guards alone, and of a whole call compared with eager."""
    import torch

    import godynamo
    from godynamo import _C

    def function(a: Any, b: Any) -> Any:
        return (a + b).relu() * 2

    compiled = godynamo.optimize(function)
    a, b = torch.ones(10), torch.ones(10)
    compiled(a, b)
    (entry,) = godynamo.cache_entries(compiled)
    guards = min(_C.guard_time(entry, (a, b), function.__globals__, 20_000)[0] for _ in range(5))
    best = [1e9, 1e9]
    gc.disable()
    try:
        for _ in range(30):
            for side, f in enumerate((function, compiled)):
                best[side] = min(best[side], timeit.Timer(lambda f=f: f(a, b)).timeit(1000) * 1000)  # type: ignore[misc]
    finally:
        gc.enable()
    over = best[1] - best[0]
    text = f"guards {guards:.0f} ns, a call {over:+.2f} µs over eager ({best[0]:.2f} µs)"
    slow = "slower than expected (0.05 to 0.4 µs)" if over > 1 or guards > 500 else ""
    return _finding("speed", text, slow, "a busy machine, or the tensor layout above; godynamo bench measures it", NOTE)


def backends() -> Finding:
    """Report the backends by name."""
    import godynamo

    return _finding("backends", ", ".join(sorted(godynamo.list_backends())))


def compiler() -> Finding:
    """Find the C++ compiler that inductor calls for the CPU: $CXX if it is set, otherwise g++."""
    asked = os.environ.get("CXX", "g++")
    found = shutil.which((shlex.split(asked) or [""])[0])
    problem = "" if found else f"no {asked}, which inductor needs on the CPU"
    advice = "unset CXX, or name a compiler that is there" if "CXX" in os.environ else "apt-get install g++ (Debian)"
    return _finding("C++ compiler", found or "", problem, advice, NOTE)


CHECKS: tuple[Callable[[], Finding], ...] = (
    python, versions, settings, stored, layout, torch_state, surroundings, translation, hook, fork, speed, backends,
    compiler,
)  # fmt: skip


def examine() -> list[Finding]:
    """Return all findings. If the core cannot be loaded, only the checks that do not need it run."""
    import godynamo

    found = []
    for check in CHECKS:
        # Checks translate, whatever is stored.
        setting = contextlib.nullcontext() if check is stored else godynamo.config.patch(cache_dir="")
        try:
            with setting:
                found.append(check())
        except Exception as error:
            name = check.__name__.replace("_", " ")
            found.append(Finding(name, WRONG, f"{type(error).__name__}: {error}", "please report it"))
        if check is settings and any(f.state == WRONG for f in found):
            break  # the following checks need the core
    return found


def main(arguments: list[str]) -> int:
    """See ``godynamo doctor --help``. Returns 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="godynamo doctor", add_help=False)
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    found = examine()
    wrong = sum(f.state == WRONG for f in found)
    if options.json:
        text = json.dumps({"version": 1, "ok": not wrong, "findings": [asdict(f) for f in found]}, indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(text)
    if options.json != "-":
        for f in found:
            line = f"{f.state:5}  {f.name:13}  {f.text}"
            if f.state != OK and f.advice:
                whole = f"{line}: {f.advice}"
                line = whole if len(whole) <= WIDTH else f"{line}\n{'':22}{f.advice}"
            print(line)
        print(f"{wrong} of {len(found)} checks found something wrong" if wrong else "all is well")
    return int(wrong > 0)
