"""The measuring side of ``godynamo bench`` and ``make bench``: workloads, engines, rounds in turn.

The command line tool (Go, internal/bench) starts ``python -m godynamo._tools bench`` as its children, reads their
messages line by line, and does all statistics and output; child.py describes the protocol. The project's own ``make
bench`` runs groups.py, which measures with the same functions.
"""
