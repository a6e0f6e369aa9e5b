"""Runs a command of the tool; see the package's docstring."""

from __future__ import annotations

import importlib
import sys

#: command of the tool → module of this package
COMMANDS = {
    "bench": "bench.child",  # the children of the command bench
    "dis": "dis",
    "doctor": "doctor",
    "explain": "explain",
    "run": "run",
}


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code. A usage error prints one line and returns 2."""
    if not arguments or arguments[0] not in COMMANDS:
        print(f"godynamo: python -m godynamo._tools takes one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f".{COMMANDS[arguments[0]]}", __package__)
    from .problem import Problem

    try:
        return int(module.main(arguments[1:]))
    except Problem as problem:
        print(f"godynamo: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
