"""Stand-ins for functools, except for partial and lru_cache: see variables/function.go and function_cached.go."""

from __future__ import annotations

import functools
from typing import Any

from ._base import DECLINE, END, StandIn, stands_for, type_of_stand_in

__godynamo_polyfill__ = "module"


@stands_for(functools.reduce)
def reduce(function: Any, iterable: Any, initial: Any = END, /) -> Any:
    try:
        iterator = iter(iterable)
    except TypeError:  # the C code's exception has another text
        return DECLINE
    result = next(iterator, END) if initial is END else initial
    if result is END:
        raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        result = function(result, item)
    return result


class KeyWrapper(StandIn):
    __real__ = type(functools.cmp_to_key(min))
    __public__ = ("obj",)

    def __init__(self, cmp: Any, obj: Any) -> None:
        self.cmp = cmp
        if obj is not END:
            self.obj = obj
        self.made = obj is not END

    def __call__(self, obj: Any) -> Any:
        return KeyWrapper(self.cmp, obj)

    def _compare(self, other: Any) -> Any:
        if type_of_stand_in(other) is not KeyWrapper.__real__:
            raise TypeError("other argument must be K instance")
        return self.cmp(self.obj, other.obj)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other) < 0

    def __le__(self, other: Any) -> Any:
        return self._compare(other) <= 0

    def __gt__(self, other: Any) -> Any:
        return self._compare(other) > 0

    def __ge__(self, other: Any) -> Any:
        return self._compare(other) >= 0

    def __eq__(self, other: Any) -> Any:
        return self._compare(other) == 0

    def __ne__(self, other: Any) -> Any:
        return self._compare(other) != 0

    __hash__ = None  # type: ignore[assignment]

    def _escape(self) -> Any:
        if self.made:
            return (_key, self.cmp, self.obj)
        return (functools.cmp_to_key, self.cmp)


def _key(cmp: Any, obj: Any) -> Any:
    return functools.cmp_to_key(cmp)(obj)


@stands_for(functools.cmp_to_key)
def cmp_to_key(mycmp: Any) -> Any:
    return KeyWrapper(mycmp, END)
