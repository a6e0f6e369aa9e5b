"""Python's side of the command line tool: ``python -m godynamo._tools COMMAND ...``, started by cmd/godynamo.

A command is a module of this package with ``main(arguments: list[str]) -> int``, whose arguments the Go side has
checked; the Go side owns flags, help and completion. ``import godynamo`` imports none of it.
"""
