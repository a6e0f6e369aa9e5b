"""`make pgo`: profile first calls and write cmd/godynamo-ext/default.pgo, from which `go build` optimizes the library.

    scripts/pgo.py [--seconds N]

A library with the tag `profile` (pyhook/profile.go) is built into build/pgo. A child captures models of the zoo again
and again with it. Needs the environment of `make models`. The profile needs no update unless much of the translator
changes: a function that is missing from it is compiled as without a profile.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import fnmatch
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "build" / "pgo" / "libgodynamo.so"
PROFILE = ROOT / "cmd" / "godynamo-ext" / "default.pgo"
# Small models of different kinds, and programs with breaks, containers and effects (the workloads of `make bench`).
MODELS = [
    "torchvision.resnet18", "torchvision.mobilenet*", "torchvision.squeezenet*", "timm.ghostnet*", "timm.convnext*",
    "timm.levit*", "transformers.bert", "transformers.gpt2", "transformers.llama", "transformers.t5",
    "transformers.deberta*", "transformers.mamba", "transformers.mixtral", "transformers.bart",
]  # fmt: skip


def build() -> None:
    """Build the library that can profile itself, with the profile that exists."""
    sys.path.insert(0, str(ROOT / "build_backend"))
    import native

    command = native.go_build_command(LIBRARY)
    command[command.index("-ldflags") : command.index("-ldflags") + 2] = ["-tags", "profile"]  # symbols, and checks
    subprocess.run(command, cwd=ROOT, env={**os.environ, **native.cgo_environment()}, check=True)


def child(seconds: float) -> None:
    """Capture the models in turn for about `seconds` of this thread's CPU time, under the profiler."""
    import torch

    import godynamo
    from godynamo._tools.bench import zoo

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    made = []
    with torch.no_grad():
        for name in (n for n in zoo.MODELS if any(fnmatch.fnmatch(n, m) for m in MODELS)):
            module, args, kwargs = zoo.MODELS[name]()
            made.append((module.eval(), args, kwargs))
            godynamo.optimize(module)(*args, **kwargs)
        go = ctypes.CDLL(str(LIBRARY))
        if go.gdProfileStart(os.fsencode(PROFILE)) != 0:
            sys.exit(f"pgo: cannot write {PROFILE}")
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            for module, args, kwargs in made:
                godynamo.optimize(copy.copy(module))(*args, **kwargs)
            godynamo.reset()
        if go.gdProfileStop() != 0:
            sys.exit(f"pgo: cannot write {PROFILE}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.seconds)
        return
    build()
    environment = {
        **os.environ,
        "GODYNAMO_GOLIB": str(LIBRARY),
        "PYTHONPATH": str(ROOT / "python"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    command = [sys.executable, "-W", "ignore", __file__, "--child", "--seconds", str(options.seconds)]
    subprocess.run(command, env=environment, check=True)
    print(f"pgo: wrote {PROFILE.relative_to(ROOT)}, {PROFILE.stat().st_size >> 10} KB")


if __name__ == "__main__":
    main()
