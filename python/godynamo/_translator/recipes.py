"""Records the call that made an object of the translator, so that another process can repeat it.

The operations that take functions (``_translator/higher``) have neither a name nor a place in the user's program. Their
makers are decorated with ``noted``. Stored translations (``_stored/objects``) then describe maker and arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .identity_map import IdentityMap

F = TypeVar("F", bound=Callable[..., Any])


class Recipe:
    """A call of a maker: its name in MAKERS, and its positional arguments."""

    __slots__ = ("__weakref__", "args", "maker")

    def __init__(self, maker: str, args: tuple[Any, ...]) -> None:
        self.maker, self.args = maker, args


#: the makers by name
MAKERS: dict[str, Callable[..., Any]] = {}
_recipes: IdentityMap[Any, tuple[Recipe, int | None]] = IdentityMap()


def noted(maker: F) -> F:
    """Decorate a function whose results are described by its arguments. If it returns a tuple, its items are."""

    @functools.wraps(maker)
    def make(*args: Any) -> Any:
        result = maker(*args)
        recipe = Recipe(maker.__name__, args)
        if type(result) is tuple:
            for i, item in enumerate(result):
                _recipes[item] = (recipe, i)
        else:
            _recipes[result] = (recipe, None)
        return result

    MAKERS[maker.__name__] = make
    return make  # type: ignore[return-value]


def recipe_of(obj: Any) -> tuple[Recipe, int | None] | None:
    """Return the call that made an object, and the object's index in the result if that is a tuple."""
    return _recipes.get(obj)
