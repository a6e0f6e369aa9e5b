import contextlib

COUNT = 0
LOG = []
NAME = "name"


class Oops(Exception):
    pass


class Worse(Oops):
    def __init__(self, value=0):
        super().__init__("worse", value)


class Thing:
    kind = 1

    def __init__(self, v, t):
        self.v, self.t, self.x = v, t, None

    def add(self, t):
        self.t = self.t + t
        self.v += 1
        return self

    def scaled(self, t):
        return t * 2 + self.kind

    @property
    def double(self):
        return self.v * 2

    @double.setter
    def double(self, value):
        self.v = value

    def shout(self, text):
        print(type(self).__name__, text)

    def __matmul__(self, t):
        return self.t * t

    def __iadd__(self, other):
        self.v += other
        return self

    def __setitem__(self, key, value):
        setattr(self, key, value)


DEAD = set()


class Mortal:
    """Records its death in a set, since the order of deaths is not compared."""

    def __init__(self, k):
        self.k = k

    def __del__(self):
        DEAD.add(self.k)


def born(k):
    eval("1")
    return Mortal(k)


def dead():
    return sorted(DEAD)


class Child(Thing):
    kind = 3

    def scaled(self, t):
        return super().scaled(t) - self.v

    def __len__(self):
        return self.v % 2


class Manager:
    def __init__(self, value, swallow):
        self.value, self.swallow = value, swallow

    def __enter__(self):
        LOG.append("enter")
        return self.value

    def __exit__(self, kind, error, traceback):
        LOG.append(("exit", kind.__name__ if kind else None, self.value))
        return self.swallow


@contextlib.contextmanager
def managed(value):
    LOG.append("start")
    try:
        yield value
    finally:
        LOG.append("stop")


def helper(t, k):
    return t * 2 + k


def pick(a, *rest, key=0, **more):
    return a + len(rest) + key


def numbers(n):
    for i in range(n):
        yield i * i


def doubled(t, n):
    for _ in range(n):
        t = t * 2
        yield t


def fail(value):
    try:
        raise KeyError(value)
    finally:
        LOG.append("fail")


def opaque(o, l):
    o.v += 1
    l.append(7)
    eval("1")
