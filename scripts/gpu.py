"""`make gpu`: builds where it runs, checks godynamo on a GPU, and writes figures and verdicts to one file.

    python3 scripts/gpu.py [STEP ...] [--out FILE] [--limit SECONDS]

Needs a Python with torch, pytest and, for the models, the zoo's libraries; a C compiler; no network. Where there is no
Go, it uses the library of an earlier `make build` (python/godynamo/libgodynamo-3xx.so), for which it compiles the C
core again. GODYNAMO_DEVICE chooses another device than cuda; with cpu everything but the CUDA tests runs.

Steps, all by default, each of which can be chosen:
    build     both native libraries
    tests     python/tests/device
    opinfo    torch's operator table on the device, compared with eager bit by bit
    modules   torch's modules
    fuzz      random programs on tensors of the device
    models    the model zoo: outputs, gradients, random numbers
    speed     launch-bound programs: eager, godynamo, torch.compile (bench/launches.py)

The file (build/gpu.json) has for each step its verdict, its seconds and the end of its output; build/gpu.txt has the
same as text. Exits with 1 if a step fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "build_backend"))

import native  # noqa: E402

#: lines of a step's output that are kept
KEPT = 60
JOBS = str(max(2, (os.cpu_count() or 2) // 2))


def build() -> int:
    """Build both libraries, or without Go the C core only; return the exit status."""
    native.choose_compiler()
    if shutil.which("go"):
        command = [sys.executable, "setup.py", "--quiet", "egg_info", "build_ext", "--inplace"]
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    library = native.PACKAGE / native.GO_LIBRARY
    if not library.exists():
        own = "{}.{}".format(*sys.version_info)
        print(f"no Go, and no {library}: run `make build PYTHON={own}` where Go is, and bring that file")
        return 1
    core = native.PACKAGE / f"_C{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        print(
            f"no Python.h here: {core.name} is used as it was brought" if core.exists() else f"no Python.h, no {core}"
        )
        return int(not core.exists())
    return compile_core(core)


def compile_core(output: Path) -> int:
    """Compile ``_C``, all files side by side; return the exit status."""
    objects = ROOT / "build" / "gpu"
    objects.mkdir(parents=True, exist_ok=True)
    cc = os.environ.get("CC", "cc")
    flags = [*native.C_FLAGS, "-fPIC", f"-I{sysconfig.get_path('include')}", "-Ipyhook/core"]

    def one(source: str) -> tuple[int, str]:
        made = str(objects / (source.replace("/", "-") + ".o"))
        return subprocess.run([cc, *flags, "-c", source, "-o", made], cwd=ROOT, check=False).returncode, made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(one, native.core_sources()))
    if any(status for status, _ in done):
        return 1
    command = [cc, "-shared", native.UNRESOLVED, *(made for _, made in done), "-o", str(output)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def facts() -> dict[str, str]:
    """Return what ran: versions and the device's name."""
    text = (
        "import json, sys, os, torch, godynamo; d = os.environ['GODYNAMO_DEVICE']\n"
        "name = torch.get_device_module(d).get_device_name() if d != 'cpu' else 'CPU'\n"
        "print(json.dumps({'python': sys.version.split()[0], 'torch': torch.__version__, 'device': name,"
        " 'godynamo': godynamo.__version__}))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        return {"error": done.stderr[-1000:]}
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def environment(step: str = "") -> dict[str, str]:
    """Return the environment of a step."""
    device = os.environ.get("GODYNAMO_DEVICE", "cuda")
    paths = [str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    if importlib.util.find_spec("expecttest") is None:  # torch's operator and module tables import it
        paths.append(str(ROOT / "scripts" / "stand_ins"))
    # cuBLAS's results are repeatable only with this setting, which the comparisons with eager mode need. It makes small
    # matrix products much slower, so times are measured without it.
    repeating = {} if step == "speed" else {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    return {
        **os.environ,
        **repeating,
        "GODYNAMO_DEVICE": device,
        "PYTHONPATH": os.pathsep.join(paths),
        "HF_HUB_OFFLINE": "1",
    }


LIBRARY = ("python/tests/torch_library/library_run.py", "--jobs", JOBS)

#: the steps in order: arguments of Python, or a function
STEPS: dict[str, tuple[str, ...] | Callable[[], int]] = {
    "build": build,
    "tests": ("-m", "pytest", "-q", "-rs", "python/tests/device"),
    "opinfo": (LIBRARY[0], "ops", "--samples", "2", *LIBRARY[1:], "--json", "build/gpu-opinfo.json"),
    "modules": (LIBRARY[0], "modules", "--samples", "2", *LIBRARY[1:], "--json", "build/gpu-modules.json"),
    "fuzz": ("python/tests/fuzz/torch/fuzz_torch_run.py", "--seed", "1", "--count", "500", "--most", "0"),
    "models": ("bench/models/models_run.py", "--backend", "eager", "--jobs", JOBS, "--json", "build/gpu-models.json"),
    "speed": ("bench/launches.py", "--json", "build/gpu-speed.json"),
}


def run(name: str, limit: float) -> dict[str, Any]:
    """Run one step; return its verdict."""
    print(f"==== {name}", flush=True)
    began = time.monotonic()
    step = STEPS[name]
    if callable(step):
        status, output = step(), ""
    else:
        with subprocess.Popen(
            [sys.executable, *step],
            cwd=ROOT,
            env=environment(name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as child:
            try:
                output, _ = child.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                output = child.communicate()[0] + f"\nended after {limit:.0f} s\n"
            status = child.returncode
    lines = output.splitlines()[-KEPT:]
    print("\n".join(lines[-25:]), flush=True)
    return {"step": name, "ok": status == 0, "seconds": round(time.monotonic() - began, 1), "output": lines}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu.json")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for one step")
    options = parser.parse_args()
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"no step {', '.join(unknown)}: the steps are {', '.join(STEPS)}")
    os.chdir(ROOT)
    (ROOT / "build").mkdir(exist_ok=True)
    found = [run(name, options.limit) for name in STEPS if name in (options.steps or STEPS)]
    report = {"machine": facts(), "steps": found}
    if "speed" in (options.steps or STEPS) and (figures := ROOT / "build" / "gpu-speed.json").exists():
        report["speed"] = json.loads(figures.read_text())
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1))
    text = [" ".join(f"{k} {v}" for k, v in report["machine"].items())]  # type: ignore[attr-defined]
    text += [f"{s['step']:8} {'ok' if s['ok'] else 'FAILED':6} {s['seconds']:7.1f} s" for s in found]
    for s in found:
        text += ["", f"==== {s['step']}", *s["output"]]
    options.out.with_suffix(".txt").write_text("\n".join(text) + "\n")
    print("\n".join(text[: len(found) + 1]))
    print(f"written to {options.out} and {options.out.with_suffix('.txt')}")
    return int(not all(s["ok"] for s in found))


if __name__ == "__main__":
    sys.exit(main())
