"""What the compiler of 3.14 has beyond 3.13: template strings, deferred annotations, `except` without parentheses."""


def template(name, spec):
    return t"hello {name!r:>{spec}} and {name}", t"{name=}"


class Annotated[T]:
    count: Missing
    pair: tuple[T, "Annotated"]

    def method(self, value: Missing) -> T:
        local: Missing = value
        return local


def handlers(call, *args):
    try:
        call(*args)
    except ValueError, TypeError:
        assert args, "none"
        raise NotImplementedError
    return all(arg for arg in args), any(arg for arg in args), tuple(arg for arg in args)


def numbers(sequence):
    return sequence[0], sequence[255], sequence[256], sequence[-1], sequence[1:2]


def enters(manager, outer):
    if outer:
        with manager as first, outer:
            return first
    with outer:
        for item in manager:
            if item:
                break
            with item:
                continue


async def turns(manager, source):
    async with manager as value:
        async for item in source:
            if item:
                break
            yield await item


def calls(function, args, kwargs, flag):
    function(*args)
    function(*args, **kwargs)
    return function(*(args if flag else kwargs))
