"""Stand-ins for operator: functions that have no instruction, and itemgetter, attrgetter and methodcaller."""

from __future__ import annotations

import operator
from typing import Any

from ._base import DECLINE, StandIn, made_by, stands_for

__godynamo_polyfill__ = "module"


@stands_for(operator.contains)
def contains(a: Any, b: Any, /) -> Any:
    return b in a


@stands_for(operator.is_)
def is_(a: Any, b: Any, /) -> Any:
    return a is b


@stands_for(operator.is_not)
def is_not(a: Any, b: Any, /) -> Any:
    return a is not b


def _sequences(a: Any, b: Any) -> bool:
    return isinstance(a, (list, tuple, str, bytes)) and isinstance(b, (list, tuple, str, bytes))


@stands_for(operator.concat)
def concat(a: Any, b: Any, /) -> Any:
    return a + b if _sequences(a, b) else DECLINE


@stands_for(operator.iconcat)
def iconcat(a: Any, b: Any, /) -> Any:
    if not _sequences(a, b):
        return DECLINE
    a += b
    return a


@stands_for(operator.setitem)
def setitem(a: Any, b: Any, c: Any, /) -> None:
    a[b] = c


@stands_for(operator.delitem)
def delitem(a: Any, b: Any, /) -> None:
    del a[b]


@stands_for(operator.indexOf)
def index_of(a: Any, b: Any, /) -> Any:
    try:
        iterator = iter(a)
    except TypeError:  # the C code's exception has another text
        return DECLINE
    i = 0
    for item in iterator:
        if b in (item,):
            return i
        i += 1
    raise ValueError("sequence.index(x): x not in sequence")


@stands_for(operator.countOf)
def count_of(a: Any, b: Any, /) -> Any:
    try:
        iterator = iter(a)
    except TypeError:
        return DECLINE
    n = 0
    for item in iterator:
        if b in (item,):
            n += 1
    return n


@stands_for(operator.call)
def call(obj: Any, /, *args: Any, **kwargs: Any) -> Any:
    return obj(*args, **kwargs)


class itemgetter(StandIn):
    __real__ = operator.itemgetter

    def __init__(self, items: Any) -> None:
        self.items = items

    def __call__(self, obj: Any, /) -> Any:
        if len(self.items) == 1:
            return obj[self.items[0]]
        values = []
        for item in self.items:
            values.append(obj[item])
        return tuple(values)

    def _escape(self) -> Any:
        return (operator.itemgetter, *self.items)


@stands_for(operator.itemgetter)
@made_by(operator.itemgetter)
def itemgetter_of(item: Any, /, *items: Any) -> Any:
    return itemgetter((item, *items))


class attrgetter(StandIn):
    __real__ = operator.attrgetter

    def __init__(self, names: Any) -> None:
        self.names = names

    def _get(self, obj: Any, name: Any) -> Any:
        for part in name.split("."):
            obj = getattr(obj, part)
        return obj

    def __call__(self, obj: Any, /) -> Any:
        if len(self.names) == 1:
            return self._get(obj, self.names[0])
        values = []
        for name in self.names:
            values.append(self._get(obj, name))
        return tuple(values)

    def _escape(self) -> Any:
        return (operator.attrgetter, *self.names)


@stands_for(operator.attrgetter)
@made_by(operator.attrgetter)
def attrgetter_of(attr: Any, /, *attrs: Any) -> Any:
    names = (attr, *attrs)
    for name in names:
        if not isinstance(name, str):
            raise TypeError("attribute name must be a string")
    return attrgetter(names)


class methodcaller(StandIn):
    __real__ = operator.methodcaller

    def __init__(self, name: Any, args: Any, kwargs: Any) -> None:
        self.name = name
        self.args = args
        self.kwargs = kwargs

    def __call__(self, obj: Any, /) -> Any:
        return getattr(obj, self.name)(*self.args, **self.kwargs)

    def _escape(self) -> Any:
        return (_methodcaller, self.name, self.args, self.kwargs)


def _methodcaller(name: Any, args: Any, kwargs: Any) -> Any:
    return operator.methodcaller(name, *args, **kwargs)


@stands_for(operator.methodcaller)
@made_by(operator.methodcaller)
def methodcaller_of(name: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(name, str):
        raise TypeError("method name must be a string")
    return methodcaller(name, args, kwargs)
