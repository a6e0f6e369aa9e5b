"""Gets the text of the TypeError for a call with wrong arguments, by making the call with a copy of the function."""

from __future__ import annotations

import inspect
import types


def _nothing() -> None:
    pass


def binding_error(
    code: types.CodeType, name: str, defaults: int, keywords: tuple[str, ...], nargs: int, kwnames: tuple[str, ...]
) -> str:
    """Return the text of the TypeError for a call of a function with this code.

    defaults: the number of positional defaults. keywords: keyword-only parameters with a default.
    """
    bare = _nothing.__code__
    flags = bare.co_flags | code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    count = (
        code.co_argcount
        + code.co_kwonlyargcount
        + bool(flags & inspect.CO_VARARGS)
        + bool(flags & inspect.CO_VARKEYWORDS)
    )
    twin = types.FunctionType(
        bare.replace(
            co_argcount=code.co_argcount,
            co_posonlyargcount=code.co_posonlyargcount,
            co_kwonlyargcount=code.co_kwonlyargcount,
            co_flags=flags,
            co_varnames=code.co_varnames[:count],
            co_nlocals=count,
        ),
        {},
        argdefs=(None,) * defaults,
    )
    twin.__qualname__ = name
    twin.__kwdefaults__ = dict.fromkeys(keywords)
    try:
        twin(*(None,) * nargs, **dict.fromkeys(kwnames))
    except TypeError as error:
        return str(error)
    raise AssertionError(name)
