"""The fields of % formats and of str.format texts."""

from __future__ import annotations

import re
import string
from typing import Any

_PERCENT = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?[-+ #0]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<type>[a-zA-Z%])"
)


def percent_fields(text: str) -> list[Any]:
    """Return keys (None: the next operand) and conversions of a % format, flat. Raises ValueError for a bad format."""
    out: list[Any] = []
    at = 0
    while (at := text.find("%", at)) >= 0:
        field = _PERCENT.match(text, at)
        if field is None:
            raise ValueError(text)
        at = field.end()
        if field["type"] == "%" and field["key"] is None:
            continue
        out += [x for part in ("width", "precision") if field[part] == "*" for x in (None, "d")]
        out += [field["key"], field["type"]]
    return out


class Repr:
    """Prints as a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def ascii_text(text: str) -> str:
    """Return the result of ascii() for an object with this repr."""
    return ascii(Repr(text))


def format_fields(text: str) -> list[Any] | None:
    """Return the literals, keys (int, str or None), conversions and specs of a str.format text, flat.

    None if fields are nested or access parts of their values.
    """
    out: list[Any] = []
    auto = 0
    try:
        for literal, field, spec, conversion in string.Formatter().parse(text):
            if field is None:
                out += [literal, None, "", ""]
                continue
            if "." in field or "[" in field or "{" in (spec or ""):
                return None
            key: Any = field
            if field == "":
                key, auto = auto, auto + 1
            elif field.isdigit():
                key = int(field)
            out += [literal, key, {"s": "str", "r": "repr", "a": "ascii", None: ""}[conversion], spec or ""]
    except (ValueError, KeyError):
        return None
    return out
