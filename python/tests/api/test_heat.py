"""When a whole program is served, functions without tensors are translated only if they are called often."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo._called import runtime
from godynamo._core import core


def plain(n):
    return [i * i for i in range(n)]


def outer(n):
    return sum(plain(n))


def tensors(x):
    return (x * 2).relu()


def makes(n):
    return torch.ones(n) * 2


def nested(batch):
    return batch["inputs"][0] + 1


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def through_module(model):
    return model(torch.ones(2))


@dataclasses.dataclass
class Holder:
    x: Any

    def value(self):
        return self.x * 2


def translated(run: Callable[[], Any], **hot: int) -> list[str]:
    """Return the names of the functions that are translated while ``run`` runs under Optimizer.everywhere()."""
    names: list[str] = []

    def hear(info: dict[str, Any]) -> None:
        names.append(runtime.users_frame(info).name)

    optimizer = godynamo.optimize(backend="eager").everywhere(**hot)
    runtime.listeners.append(hear)
    try:
        with optimizer:
            run()
    finally:
        runtime.listeners.remove(hear)
    return names


def often(times: int, f: Callable[..., Any], *args: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            f(*args)

    core.mark_skip(run.__code__)
    return run


def copy_of(f: Any) -> Any:
    """Return a copy of f with a new code object, for which no call has been counted."""
    return type(f)(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (tensors, (torch.ones(2),)),
        (makes, (2,)),
        (nested, ({"inputs": [torch.ones(2)]},)),
        (through_module, (Model(),)),
    ],
    ids=["argument", "names torch", "in containers", "module"],
)
def test_what_meets_tensors_is_translated_at_once(f, args):
    assert f.__name__ in translated(often(1, copy_of(f), *args))


def test_what_meets_none_is_left_until_it_is_called_often():
    f = copy_of(plain)
    assert translated(often(9, f, 3), calls=10) == []
    assert translated(often(2, f, 3), calls=10) == ["plain"]


def test_a_method_whose_object_holds_a_tensor_becomes_hot():
    holder = Holder(torch.ones(2))
    assert "Holder.value" in translated(often(12, holder.value), calls=10)


def test_what_gained_nothing_is_tried_again_after_twice_as_many_calls():
    f = copy_of(plain)
    assert translated(often(11, f, 3), calls=10).count("plain") == 1
    assert "plain" not in translated(often(19, f, 5), calls=10)


def test_results_are_the_programs_while_code_is_cold_hot_and_alone():
    f, seen = copy_of(outer), []

    def run():
        seen.extend(f(n) for n in range(200))

    core.mark_skip(run.__code__)
    translated(run, calls=64)
    assert seen == [outer(n) for n in range(200)]


def test_an_exception_out_of_a_cold_frame_is_the_programs():
    def fails(n):
        raise KeyError(n)

    def run():
        for n in range(40):
            with pytest.raises(KeyError) as caught:
                fails(n)
            assert caught.value.args == (n,) and caught.traceback[-1].name == "fails"

    core.mark_skip(run.__code__)
    assert "fails" not in translated(run)


def test_the_hook_is_there_again_after_code_that_ran_without_it():
    idle, x = copy_of(plain), torch.ones(2)
    f = copy_of(tensors)

    def run():
        for _ in range(30):
            idle(2)
        f(x)

    core.mark_skip(run.__code__)
    assert translated(run) == ["tensors"]


def test_optimize_itself_translates_at_once():
    f = copy_of(plain)
    assert godynamo.optimize(f)(3) == [0, 1, 4]
    assert godynamo.utils.counters["frames"]["total"] > 0
    names: list[str] = []

    def hear(info: dict[str, Any]) -> None:
        names.append(info["code"].co_name)

    runtime.listeners.append(hear)
    try:
        with godynamo.optimize():
            copy_of(plain)(3)
    finally:
        runtime.listeners.remove(hear)
    assert "plain" in names


def test_threads_and_extents_inside_each_other():
    f = copy_of(outer)
    out: list[int] = []
    optimizer = godynamo.optimize(backend="eager").everywhere(calls=50)

    def work():
        with optimizer:
            for _ in range(40):
                with godynamo.optimize(backend="eager").everywhere(calls=50):
                    out.append(f(4))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert out == [14] * 160 and core.hook_installed() == 0
