"""logging and warnings in captured code: in program order, with the program's file, line and function."""

from __future__ import annotations

import importlib.util
import logging
import sys
import warnings
from typing import Any

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter
from harness.cases import Case, Cases, check, outcome, reasons

cases = Cases()
split = Cases()  #: cases with graph breaks; those in frames of handlers count too


class ToStdout:
    """A stream that follows redirections of stdout."""

    @godynamo.disable
    def write(self, text: str) -> int:
        return sys.stdout.write(text)

    def flush(self) -> None:
        pass


log = logging.getLogger("godynamo.tests.reports")
log.propagate = False
log.setLevel(logging.INFO)
_handler = logging.StreamHandler(ToStdout())  # type: ignore[type-var]
_handler.setFormatter(logging.Formatter("%(levelname)s %(filename)s:%(lineno)d %(funcName)s %(message)s"))
log.addHandler(_handler)


class Collecting(logging.Handler):
    """A custom handler: the program may read what it has collected."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


own = logging.getLogger("godynamo.tests.reports.own")
own.propagate = False
own.setLevel(logging.INFO)
_collecting = Collecting()
own.addHandler(_collecting)


def helper(x):
    log.error(
        "in helper %d",
        5,
    )
    return x * 2


@cases
def logged(x):
    y = x + 1
    log.info("start %s", y.shape)
    log.debug("not shown %s", y)
    for i in range(2):
        log.warning("turn %d %s", i, y)
        y = y * 2
    log.log(logging.CRITICAL, "last")
    print("between")
    return helper(y)


@split(graphs=1)
def a_handler_that_logs(x):
    try:
        raise ValueError(3)
    except ValueError as error:
        log.error("caught %s", str(error))
    return x + 1


@split(graphs=2)
def with_exc_info(x):
    y = x + 1
    log.error("text", exc_info=False)
    return y * 2


@split(graphs=2)
def inside_try(x):
    y = x + 1
    try:
        log.error("text %s", 1)
    except ValueError:
        return x
    return y * 2


@split(graphs=3)  # the second call finds another list
def to_a_handler_of_the_programs(x):
    _collecting.seen.clear()
    y = x + 1
    own.info("kept %d", 3)
    return y * 2, list(_collecting.seen)


@cases
def warned(x):
    y = x + 1
    warnings.warn("first")
    warnings.warn("second", DeprecationWarning)

    def deeper():
        warnings.warn("third", category=RuntimeWarning, stacklevel=2)
        return y * 2

    return deeper()


@split(graphs=2)
def about_the_caller(x):
    y = x + 1
    warnings.warn("caller's", stacklevel=2)
    return y * 2


def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show warnings as without pytest, on the current stdout."""
    spec = importlib.util.find_spec("warnings")
    assert spec is not None and spec.loader is not None
    fresh: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    monkeypatch.setattr(warnings, "_showwarnmsg_impl", fresh._showwarnmsg_impl)
    monkeypatch.setattr(sys, "stderr", ToStdout())
    monkeypatch.setattr(log, "handlers", [_handler])  # without the handlers added by pytest
    monkeypatch.setattr(own, "handlers", [_collecting])
    warnings.simplefilter("always")


@pytest.mark.row("S004-113")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_reports(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    plainly(monkeypatch)
    check(case)


@pytest.mark.parametrize("case", list(split), ids=split.names())
def test_split_reports(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    plainly(monkeypatch)
    backend = CompileCounter()
    compiled = godynamo.optimize(case.fn, backend=backend)
    for _ in range(2):
        assert outcome(compiled, (torch.arange(4.0),)) == outcome(case.fn, (torch.arange(4.0),))
    assert backend.frame_count == case.graphs and reasons()


def test_a_warning_that_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plainly(monkeypatch)
    warnings.simplefilter("error")

    def f(x: torch.Tensor, out: list[int]) -> Any:
        out.append(1)
        y = x + 1
        warnings.warn("text")
        out.append(2)
        return y

    for fn in (f, godynamo.optimize(f, backend="eager")):
        out: list[int] = []
        with pytest.raises(UserWarning, match="^text$") as told:
            fn(torch.ones(2), out)
        assert out == [1]
        assert told.traceback[1].lineno == f.__code__.co_firstlineno + 2


def test_once_a_place(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: torch.Tensor) -> Any:
        for _ in range(3):
            warnings.warn("repeated")
            x = x + 1
        return x

    shown = []
    for fn in (f, godynamo.optimize(f, backend="eager")):
        globals().pop("__warningregistry__", None)
        plainly(monkeypatch)
        warnings.simplefilter("default")
        fn(torch.ones(2))
        fn(torch.ones(2))
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and shown[0].count("repeated") == 2


def test_the_switch_keeps_the_break(monkeypatch: pytest.MonkeyPatch) -> None:
    plainly(monkeypatch)
    with godynamo.config.patch(queue_effects=False):
        f = godynamo.optimize(lambda x: (log.info("text"), x + 1)[1], backend="eager")
        f(torch.ones(2))
    assert reasons()


def test_a_handler_added_later_is_another_case(monkeypatch: pytest.MonkeyPatch) -> None:
    plainly(monkeypatch)
    f = godynamo.optimize(lambda x: (log.info("text %d", 3), x + 1)[1], backend="eager")
    f(torch.ones(2))
    assert not reasons()
    extra = Collecting()
    log.addHandler(extra)
    try:
        f(torch.ones(2))
    finally:
        log.removeHandler(extra)
    assert extra.seen == ["text 3"]
