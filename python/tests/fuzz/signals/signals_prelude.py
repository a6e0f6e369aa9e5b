"""The start of every ``make fuzz-signals`` program: contexts, effects, generators, callees that record their runs."""

import contextlib
import io
import sys
import threading

import arrivals
import torch
import torch.nn.functional as F  # noqa: F401 programs use it

import godynamo

LOG = []
G = {"n": 0}
COUNT = 0
LOCK = threading.Lock()
RLOCK = threading.RLock()


class Timeout(Exception):
    pass


class Sent(Exception):
    """The exception that another thread sets."""


class Own:
    def __init__(self, k):
        self.k = k

    def __enter__(self):
        LOG.append(("enter", self.k))
        return self

    def __exit__(self, kind, error, traceback):
        LOG.append(("exit", self.k, kind and kind.__name__))
        return False


class Forgiving(Own):
    def __exit__(self, kind, error, traceback):
        LOG.append(("forgive", self.k, kind and kind.__name__))
        return kind is not None and issubclass(kind, Timeout)


class Counted:
    """A context manager that counts how often it is entered and left."""

    def __init__(self):
        self.entered = self.left = 0

    def __enter__(self):
        self.entered += 1

    def __exit__(self, *_):
        self.left += 1


@contextlib.contextmanager
def managed(k):
    LOG.append(("setup", k))
    try:
        yield k
    finally:
        LOG.append(("teardown", k))


@contextlib.contextmanager
def bare_managed(k):
    LOG.append(("before", k))
    yield k
    LOG.append(("after", k))


class Logged(list):
    def append(self, value):
        arrivals.tick()
        super().append(value)


class Out(io.StringIO):
    def write(self, text):
        arrivals.tick()
        return super().write(text)


class Mortal:
    def __init__(self, k):
        self.k = k

    def __del__(self):
        LOG.append(("dead", self.k))


class Box:
    def __init__(self):
        self.a, self.turns, self.seen, self.counted = 0, 0, Logged(), Counted()

    def more(self):
        self.turns += 1
        return self.turns % 3 > 0 and self.turns < 9

    @property
    def prop(self):
        LOG.append("prop")
        return self.a

    @prop.setter
    def prop(self, value):
        LOG.append(("set", value))
        self.a = value


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.relu(x) * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def callback(k):
    LOG.append(("callback", k))
    arrivals.tick()
    return k


def opaque(k):
    godynamo.graph_break()
    LOG.append(("opaque", k))


def guarded(x, k):
    try:
        LOG.append(("try", k))
        return torch.ops.sig.tick(x) + k
    finally:
        LOG.append(("finally", k))


def locked(x, lock):
    with lock:
        x = x * 2
        LOG.append("locked")
        return x.clamp(-8, 8)


def rescued(x):
    try:
        x = torch.ops.sig.tick(x + 1)
        LOG.append("tried")
    except Timeout as e:
        LOG.append(("rescued", type(e).__name__))
    return x


def split(x, k):
    try:
        x = x + k
        godynamo.graph_break()
        return x - 1
    finally:
        LOG.append(("split", k))


def turns(x, k):
    try:
        for i in range(k):
            LOG.append(("yield", i))
            yield x + i
        LOG.append("exhausted")
    finally:
        LOG.append("closed")


def calls(x, y, o, l, d):
    """Call the program from a frame that CPython runs, so that the hook serves it."""
    sys._getframe()
    return fn(x, y, o, l, d)
