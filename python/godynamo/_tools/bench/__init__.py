"""The measuring side of ``godynamo bench`` and ``make bench``: workloads, and engines that take turns in rounds.

The command line tool (Go, internal/bench) starts children, ``python -m godynamo._tools bench``. It reads their messages
line by line, and does all statistics and output; child.py describes the protocol. ``make bench`` runs groups.py, which
measures with the same functions.
"""
