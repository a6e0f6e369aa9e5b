"""What the compiler of 3.12 has beyond 3.11: type parameters, aliases, names of a class seen from annotation scopes."""

type Pair[T] = tuple[T, T]
type Callback[**P, R] = dict[P, R]
type Shape[*Ts] = tuple[*Ts]


class Box[T]:
    Item = int
    type Alias = Item

    def put[V: Item, W: (int, str)](self, value: V, other: W) -> Item:
        self.value = value
        return [outer for outer in (value, other, __class__)]

    def all[*Ts, **P](self, *args: *Ts) -> int:
        return super().__init__()


def enclosing(x):
    class Inner:
        y = x
        values = [y for y in (x,)]

    return Inner


def names(sequence):
    inner = 1
    for inner in sequence:
        pass
    del inner
    if sequence:
        inner = 2
    return inner, sequence[1:2], {name: inner for name in sequence}


def slices(sequence, value):
    sequence[value:] = sequence[:value]
    return -1 if value < 0 else +value
