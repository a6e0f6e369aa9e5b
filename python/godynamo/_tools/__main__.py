"""Runs a command: see the package."""

from __future__ import annotations

import importlib
import sys

#: command of the tool → module of this package
COMMANDS = {
    "bench": "bench.child",  # its children
    "dis": "dis",
    "doctor": "doctor",
    "explain": "explain",
    "run": "run",
}


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code: 2, with one line, for a usage error."""
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
