"""Callbacks of the garbage collector, as in hypothesis and profilers, are not captured with the code they interrupt."""

import gc
import time

import torch

import godynamo
from godynamo import utils
from harness.cases import reasons


def test_a_callback_of_the_collector_is_not_translated():
    times = []

    def tell(phase, info):
        times.append(time.perf_counter())

    def collects(x):
        gc.collect()
        return x + 1

    def fn(x):
        exec("collects(x)", {"collects": collects, "x": x})  # the hook serves the frames below it one by one
        return x + 1

    godynamo.reset()
    utils.counters.clear()
    gc.callbacks.append(tell)
    try:
        result = godynamo.optimize("eager")(fn)(torch.ones(2))
    finally:
        gc.callbacks.remove(tell)
    assert result.tolist() == [2.0, 2.0] and len(times) >= 2
    assert any("collect>" in reason for reason in reasons())
    assert not [reason for reason in reasons() if "perf_counter" in reason], reasons()
