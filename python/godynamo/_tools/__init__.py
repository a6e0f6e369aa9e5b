"""Python's side of the command line tool: ``python -m godynamo._tools COMMAND ...``, started by cmd/godynamo.

A command is a module of this package with ``main(arguments: list[str]) -> int``. The Go side has checked the arguments,
and it implements flags, help and completion. ``import godynamo`` imports nothing of this package.
"""
