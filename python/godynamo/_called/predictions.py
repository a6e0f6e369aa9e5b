"""Predicts which way code branches on values of tensors: torch's optimizers and distributions, and inlined functions.

A graph cannot branch. It predicts which way a branch goes and checks this in each call. If it is wrong, the frames go
on in CPython, and a guard on ``refuted`` has the next call translated again, with the other prediction.

A question names a branch. If it has several lines, the first one names the outermost function: the wrong answers to all
its questions count together. If it has three, the second one names the instruction, whatever called its function: what
one call has shown is the first answer for the others, such as for the next layers of a model.
"""

from __future__ import annotations

import torch
import torch.fx.node

#: how often the answer to one question may turn out to be wrong; then the graph breaks at the branch
_MAX_CHANGES = 8

#: how often the answers to all questions about one function may turn out to be wrong. Each combination of answers is a
#: translation, and a function has at most eight of them (``config.cache_size_limit``).
_MAX_CHANGES_TOGETHER = 4

#: answers that were wrong the last time. Guards look up the answers on which their graphs rely.
refuted: dict[str, None] = {}

#: question (the place of a branch), or the first line of questions that count together -> how often it was wrong
_changes: dict[str, int] = {}

#: instruction (the second line of a question) -> the truth that it saw when an answer was wrong
_seen: dict[str, bool] = {}


def forget() -> None:
    """Drop all answers. Called when all entries have been dropped."""
    refuted.clear()
    _changes.clear()
    _seen.clear()


def answer(question: str, truth: bool) -> str:
    """Return the key of an answer in ``refuted``."""
    return f"{question} is {truth}"


def _unsettled(question: str) -> bool:
    """Return whether the answers to a question have been wrong too often."""
    function, together, _ = question.partition("\n")
    return _changes.get(function, 0) >= (_MAX_CHANGES_TOGETHER if together else _MAX_CHANGES)


def expected(question: str, first: bool) -> bool | None:
    """Return the answer that a graph may rely on, or None if the answers change too often.

    ``first``: the answer as long as nothing is known. It is the answer to an empty question at all times.
    """
    if _unsettled(question):
        return None
    lines = question.split("\n")
    if len(lines) == 3:
        first = _seen.get(lines[1], first)
    for truth in (True, False):
        if answer(question, truth) in refuted:
            return not truth
    return first


def as_predicted(value: float | torch.Tensor, truth: bool, question: str) -> bool | None:
    """Return True if the value is as true as the graph expects, else None."""
    if bool(value) is truth:
        return True
    if not question:
        return None
    refute(question, answer(question, truth))
    lines = question.split("\n")
    if len(lines) == 3:
        _seen[lines[1]] = not truth
    if _unsettled(question):
        refuted[answer(question, not truth)] = None
    else:
        refuted.pop(answer(question, not truth), None)
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
    if _unsettled(question):
        return None
    key = f"{question} is {result}"
    refuted.pop(key, None)
    return key


def refute(question: str, key: str) -> None:
    """Note that an answer was wrong, so that guards that rely on it do not hold."""
    counted = question.partition("\n")[0]
    _changes[counted] = _changes.get(counted, 0) + 1
    refuted[key] = None
