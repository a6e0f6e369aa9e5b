"""Decompiles transformed code to Python source, with depyf if it is installed."""

from __future__ import annotations

from typing import Any

from .explain import cache_entries


def decompile(fn: Any) -> str:
    """Return the transformed code of an optimized callable's entries as Python source, which need not be executable.

    >>> print(godynamo.decompile(f))  # doctest: +SKIP
    # f, file.py:3: 1 of 1, 2 hits
    def f(x):
        ...

    Code that depyf cannot decompile is shown as instructions. Raises ImportError if depyf is not installed, TypeError
    if ``fn`` is not an optimized callable.
    """
    try:
        import depyf
    except ImportError as error:
        raise ImportError("godynamo.decompile() needs depyf: pip install depyf") from error
    entries = [e for e in cache_entries(fn) if e.code is not None]
    out = []
    for i, entry in enumerate(entries, 1):
        code = entry.orig_code or entry.code
        where = f"# {code.co_name}, {code.co_filename}:{code.co_firstlineno}: {i} of {len(entries)}, {entry.hits} hits"
        try:
            text = depyf.decompile(entry.code).strip()
        except Exception as error:  # depyf does not support all instructions
            import dis

            text = "\n".join(
                f"# {line}" for line in [f"depyf: {error!r}", *dis.Bytecode(entry.code).dis().splitlines()]
            )
        out.append(f"{where}\n{text}\n")
    return "\n".join(out)
