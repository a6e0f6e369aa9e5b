"""Predicts which way torch's optimizers and distributions branch on values of tensors.

A graph cannot branch. It predicts which way a branch goes and checks this in each call. If it is wrong, the frames go
on in CPython, and a guard on ``refuted`` has the next call translated again, with the other prediction.
"""

from __future__ import annotations

import torch
import torch.fx.node

#: how often the answer to one question may turn out to be wrong; then the graph breaks at the branch
_MAX_CHANGES = 8

#: answers that were wrong the last time. Guards look up the answers on which their graphs rely.
refuted: dict[str, None] = {}

#: question (the place of a branch) -> how often its answer was wrong
_changes: dict[str, int] = {}


def forget() -> None:
    """Drop all answers. Called when all entries have been dropped."""
    refuted.clear()
    _changes.clear()


def answer(question: str, truth: bool) -> str:
    """Return the key of an answer in ``refuted``."""
    return f"{question} is {truth}"


def expected(question: str, first: bool) -> bool | None:
    """Return the answer that a graph may rely on, or None if the answers change too often.

    ``first``: the answer as long as nothing is known. It is the answer to an empty question at all times.
    """
    if _changes.get(question, 0) >= _MAX_CHANGES:
        return None
    return first is not (answer(question, first) in refuted)


def as_predicted(value: float | torch.Tensor, truth: bool, question: str) -> bool | None:
    """Return True if the value is as true as the graph expects, else None."""
    if bool(value) is truth:
        return True
    if not question:
        return None
    refute(question, answer(question, truth))
    if _changes[question] < _MAX_CHANGES:
        refuted.pop(answer(question, not truth), None)
    else:
        refuted[answer(question, not truth)] = None
    return None


def must_hold(value: bool | torch.Tensor, truth: bool, question: str) -> None:
    """Raise if the value has another truth. The user's code runs again in place of a whole graph that raises."""
    if as_predicted(value, truth, question) is None:
        raise AssertionError(question)


def must_hold_traced(value: torch.Tensor, truth: bool, question: str) -> None:
    """Do what ``must_hold`` does where AOTAutograd traces it. There is no question."""
    torch._assert_async(value if truth else torch.logical_not(value), question)


def must_equal_itself(value: torch.Tensor, question: str) -> None:
    """Do what ``must_hold`` does for torch.equal(value, value), which is expected to be true."""
    must_hold(torch.equal(value, value), True, question)


for _function in (must_hold, must_hold_traced, must_equal_itself):
    torch.fx.node.has_side_effect(_function)  # passes keep calls that nothing uses


def as_float(value: complex) -> bool | None:
    """Return True if a power of floats is a float, as the graph expects, else None."""
    return True if type(value) is float else None


def declare(question: str, result: str) -> str | None:
    """Return the key in ``refuted`` of the answer that a call returns this, or None if its results change too often."""
    if _changes.get(question, 0) >= _MAX_CHANGES:
        return None
    key = f"{question} is {result}"
    refuted.pop(key, None)
    return key


def refute(question: str, key: str) -> None:
    """Note that an answer was wrong, so that guards that rely on it do not hold."""
    _changes[question] = _changes.get(question, 0) + 1
    refuted[key] = None
