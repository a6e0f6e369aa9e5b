"""The measuring side of ``godynamo bench`` and ``make bench``: workloads, engines, rounds in turn.

The command line tool (Go, internal/bench) starts ``python -m godynamo._tools bench`` as its children, reads what they say
line by line, and does all statistics and output; see child.py for what passes between the two. The project's own
``make bench`` runs groups.py, which measures by the same functions.
"""
