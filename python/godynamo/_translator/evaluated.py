"""The texts of ``eval`` without namespaces, as functions that are inlined."""

from __future__ import annotations

import functools
import re
import types
import warnings
from typing import Any

#: a text that calls one of these sees its own namespace, which a function does not have
_ASKS = frozenset(("locals", "vars", "dir", "eval", "exec", "globals", "super", "breakpoint"))


@functools.lru_cache(maxsize=256)
def function_of(text: str, names: tuple[str, ...]) -> tuple[types.CodeType, tuple[str, ...]] | None:
    """Return (the code of a function with the expression's value, the names of its parameters, which are some of
    ``names``). Returns None for a text that CPython must evaluate: one with an error or a warning, with a function or
    comprehension inside, which would see other variables, or with an assignment.

    >>> function_of("x + k", ("x", "y"))[1]
    ('x',)
    """
    text = text.lstrip(" \t")  # as eval() does
    try:
        code = compiled(text)
    except Exception:
        return None
    used = tuple(name for name in names if name in code.co_names and name.isidentifier())
    if _ASKS.intersection(code.co_names) or ":=" in text or any(type(c) is types.CodeType for c in code.co_consts):
        return None
    made = compile(f"lambda {', '.join(used)}: ({text}\n)", "<string>", "eval", dont_inherit=True).co_consts[0]
    if type(made) is not types.CodeType or made.co_flags & ~code.co_flags & _SUSPENDS:
        return None
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname), used


#: the file of the code that is compiled only to look at it, and a filter that makes errors of its warnings
_LOOKED_AT = "<godynamo: eval>"
_RAISES = ("error", None, Warning, re.compile(re.escape(_LOOKED_AT)), 0)


def compiled(text: str, flags: int = 0) -> Any:
    """Compile an expression. Raises SyntaxError where compile() would warn, since each eval() of the text warns again.

    ``warnings.catch_warnings`` would replace other threads' filters. This one matches no other code.
    """
    get = getattr(warnings, "_get_filters", None)  # 3.14: a context may have filters of its own
    filters: Any = get() if get else warnings.filters
    filters.insert(0, _RAISES)
    try:
        return compile(text, _LOOKED_AT, "eval", flags, dont_inherit=True)
    finally:
        filters.remove(_RAISES)


#: flags of generators and coroutines
_SUSPENDS = 0x20 | 0x80 | 0x200
