"""Changes of inference tensors outside inference mode: torch writes and then raises, so they must run once."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors


def operator_in_place(x, y):
    try:
        x += 1
    finally:
        y.mul_(2)


def method(x, y):
    try:
        x.add_(y)
    except ValueError:
        return y


def subscript(x, y):
    try:
        x[0] = 5
    finally:
        y += 1


def out(x, y):
    try:
        torch.add(x, 1, out=x)
    finally:
        y += 1


def after_an_effect(x, y):
    made = []
    try:
        made.append(y + 1)
        x.mul_(3)
    except RuntimeError as error:
        return made, str(error)


def handled(x, y):
    for _ in range(2):
        try:
            x += 1
        except RuntimeError:
            y += 1
    return y


def view(x, y):
    try:
        x[1:].fill_(4)
    finally:
        y += 1


def no_handler(x, y):
    y += 1
    x += 1


def made_inside(x, y):
    with torch.inference_mode():
        z = x + 1
    try:
        z += 1
    except RuntimeError:
        return z * 2, y


def inside_inference_mode(x, y):
    with torch.inference_mode():
        try:
            x += 1
        finally:
            y = y + 1
    return x * 2, y


def outcome(f, x, y):
    try:
        result = f(x, y)
    except Exception as error:
        result = type(error), str(error), type(error.__context__)
    return str(result), x.tolist(), y.tolist()


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
@pytest.mark.parametrize(
    "f",
    [
        *(operator_in_place, method, subscript, out, after_an_effect, handled, view, no_handler, made_inside),
        inside_inference_mode,
    ],
)
@pytest.mark.parametrize("normal_first", [False, True])
def test_each_change_is_made_once(f, backend, normal_first) -> None:
    optimized = godynamo.optimize(f, backend=backend)
    if normal_first:
        assert outcome(optimized, torch.ones(3), torch.ones(3)) == outcome(f, torch.ones(3), torch.ones(3))
    for _ in range(2):
        seen = []
        for g in (f, optimized):
            with torch.inference_mode():
                x = torch.ones(3)
            seen.append(outcome(g, x, torch.ones(3)))
        assert seen[0] == seen[1]
    assert_no_internal_errors()
