"""What differs between the versions of CPython that tests run on. Tests assert the fact of the running version."""

import sys

COMPREHENSIONS_ARE_INLINED = sys.version_info >= (3, 12)
"""PEP 709: a comprehension of lists, sets or dicts has no frame of its own."""

COLLECTS_AT_ALLOCATION = sys.version_info < (3, 12)
"""The collector runs where an object is allocated. Since 3.12 it runs where the eval loop looks at its requests."""

#: counts of instructions: from 3.13 on, PUSH_NULL is an instruction in a call of a module's function, and two loads of
#: variables are one
_COUNTS = (
    ("27 of 30 (90%)", "29 of 32 (91%)"),
    ("scaled: 9 of 10 (90%)", "scaled: 10 of 11 (91%)"),
    ("36 of 40 (90%)", "35 of 39 (90%)"),
)


def as_printed(text: str) -> str:
    """Return what a page shows, printed on 3.11, as the running version prints it."""
    if sys.version_info >= (3, 12):
        text = text.replace("POP_JUMP_FORWARD_IF_", "POP_JUMP_IF_")
    if sys.version_info >= (3, 13):
        for old, new in _COUNTS:
            text = text.replace(old, new)
    return text
