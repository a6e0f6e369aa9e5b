"""Parses the fields of % formats and of str.format texts."""

from __future__ import annotations

import re
import string
from typing import Any

_PERCENT = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?[-+ #0]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<type>[a-zA-Z%])"
)


def percent_fields(text: str) -> list[Any]:
    """Return the key (None: the next operand) and conversion of each field of a % format, in one flat list.

    Raises ValueError for a bad format.
    """
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
    """An object whose repr is a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def ascii_text(text: str) -> str:
    """Return the result of ascii() for an object with this repr."""
    return ascii(Repr(text))


def format_fields(text: str) -> list[Any] | None:
    """Return literal, key (int, str or None), conversion and spec of each part of a str.format text, in a flat list.

    Returns None if a field contains another field, or reads an attribute or item.
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
