"""Python's side of the command line tool: ``python -m godynamo._tools COMMAND ...``, started by cmd/godynamo.

A command is a module of this package with ``main(arguments: list[str]) -> int``, which gets what the Go side has checked already;
the Go side owns flags, help and completion. Nothing of it is imported by ``import godynamo``.
"""
