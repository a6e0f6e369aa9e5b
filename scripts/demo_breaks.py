"""`make demo-breaks`: shows what is captured around unsupported code, beside torch.compile's counts.

Each function has a block (a loop, ``with``, ``try``) with code in the middle that no graph can contain. Prints the
graphs that godynamo has captured before, inside and after the block, and the numbers of graphs and operations of
torch.compile. Compares results with eager mode. Exits with 1 if a result differs or a graph is missing.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
import torch._dynamo  # noqa: E402

import godynamo  # noqa: E402

history: list[float] = []
log = logging.getLogger("demo")


def remember(x: torch.Tensor) -> None:
    """Read a tensor's data, which no graph can contain."""
    history.append(float(x.sum()))


def loop_with_print(x: torch.Tensor) -> torch.Tensor:
    """Print data in a loop."""
    x = x.sin()
    for i in range(3):
        x = x + i
        print("step", i, float(x.sum()))
        x = x * 2
    return x.cos()


class Section:
    """A context manager like those of user programs."""

    depth = 0

    def __enter__(self) -> int:
        self.depth += 1
        return self.depth

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


def with_unsupported_call(x: torch.Tensor) -> torch.Tensor:
    """Make a call inside ``with`` that reads data."""
    x = x.sin()
    with Section() as k:
        x = x * k
        remember(x)
        x = x + 1
    return x.cos()


def try_with_logging_handler(x: torch.Tensor) -> torch.Tensor:
    """Raise in a try, and log in its handler."""
    x = x.sin()
    try:
        x = x + 1
        int("no number")
        x = x - 1
    except ValueError as e:
        x = x * 2
        log.warning("went on without: %s", e)
        x = x * 3
    return x.cos()


FUNCTIONS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    loop_with_print,
    with_unsupported_call,
    try_with_logging_handler,
]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the functions' own output in a ``with`` block."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def captured(
    fn: Callable[..., Any], x: torch.Tensor, compile_with: Callable[..., Any]
) -> tuple[Any, list[torch.fx.GraphModule]]:
    """Call a compiled function; return the result and the graphs that the backend has received."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(gm: torch.fx.GraphModule, _inputs: list[Any]) -> Callable[..., Any]:
        graphs.append(gm)
        return gm.forward

    with quiet():
        return compile_with(fn, backend)(x), graphs


def operations(gm: torch.fx.GraphModule) -> list[str]:
    """Return the names of a graph's operations."""
    return [str(n.name) for n in gm.graph.nodes if n.op.startswith("call")]


def main() -> int:
    """Run the three functions; return 0 if everything is as expected, else 1."""
    torch.set_num_threads(1)
    logging.basicConfig(handlers=[logging.NullHandler()])
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    good = True
    for fn in FUNCTIONS:
        x = torch.linspace(0, 1, 4)
        with quiet():
            want = fn(x)
        godynamo.reset()
        got, ours = captured(fn, x, lambda f, b: godynamo.optimize(f, backend=b))
        torch._dynamo.reset()
        _, theirs = captured(fn, x, lambda f, b: torch.compile(f, backend=b))
        print(f"\n{fn.__name__}: {fn.__doc__}")
        for i, gm in enumerate(ours, 1):
            print(f"  graph {i}: {', '.join(operations(gm))}")
        counts = [(len(g), sum(len(operations(m)) for m in g)) for g in (ours, theirs)]
        print(
            "  godynamo {} graphs, {} operations; torch.compile {} graphs, {} operations".format(*counts[0], *counts[1])
        )
        equal = torch.equal(got, want)
        print(f"  result equal to eager's, bit by bit: {'yes' if equal else 'NO'}")
        good = good and equal and counts[0][0] >= 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
