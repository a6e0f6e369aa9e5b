"""Why cache entries did not serve a call: one short line each, with the user's names, both values and a remedy."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo import exc
from godynamo._observe import reasons


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.parts = nn.ModuleDict({"up": nn.Linear(width, width), "a b": nn.Linear(width, width)})

    def forward(self, x, mask=None):
        x = x + self.parts["a b"](torch.relu(self.parts["up"](self.norm(x))))
        return x if mask is None else x * mask


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.more = nn.ModuleList([Block()])
        self.step = 0
        self.settings = {"scale": {"by": 1}}

    def forward(self, input_ids, *rest, mask=None, **more):
        y = self.blocks(input_ids).view(input_ids.shape[0], -1) * self.step * self.settings["scale"]["by"]
        y = self.more[0](y.view(input_ids.shape), mask).view(-1)
        for r in rest:
            y = y + r.sum() * r.shape[0]
        return y + more["bias"] if more else y


def ones(n: int) -> torch.Tensor:
    return torch.ones(n, 3, 8)


def stepping(m: Any, i: int) -> None:
    m.step = i
    m(ones(2))


def scaling(m: Any, i: int) -> None:
    m.settings["scale"]["by"] = i
    m(ones(2))


def frozen(m: Any, i: int) -> None:
    if i:
        m.more[0].parts[("up", "a b")[i - 1]].weight.requires_grad_(False)
    m(ones(2))


#: functions called with i = 0, 1, ..., and what the reason's line says after the function and its place
MODULES: dict[str, tuple[Callable[[Any, int], Any], str]] = {
    "an argument's sizes": (
        lambda m, i: m(ones(i + 1)),
        "input_ids: sizes expected (2, 3, 8), seen (3, 3, 8); pad to few sizes",
    ),
    "another of *rest": (
        lambda m, i: m(ones(2), ones(2), torch.ones(i + 1)),
        "rest[1]: sizes expected (2,), seen (3,)",
    ),
    "a keyword": (
        lambda m, i: m(ones(2), mask=(None, torch.ones(8), torch.ones(8).double())[i]),
        "mask: dtype expected float32, seen float64; use one dtype",
    ),
    "one of **more": (
        lambda m, i: m(ones(2), bias=i),
        "more['bias']: expected 1, seen 2; use a tensor instead of a number",
    ),
    "an attribute": (stepping, "self.step: expected 1, seen 2; use a tensor instead of a number"),
    "an item of an attribute": (scaling, "self.settings['scale']['by']: expected 1, seen 2; use a tensor"),
    "a weight": (frozen, "self.more[0].parts['a b'].weight: requires_grad expected True, seen False"),
}


def warned(caplog: pytest.LogCaptureFixture, run: Callable[[], Any]) -> str:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "godynamo"):
        run()
    [text] = [r.getMessage() for r in caplog.records if "cache_size_limit" in r.getMessage()]
    return text


#: cases that the inline backend does not guard
WHOLE_GRAPHS = frozenset(("a keyword", "a weight"))


@pytest.mark.parametrize(
    ("case", "backend"),
    [(c, b) for c in MODULES for b in ("eager", "aot_eager") if b != "eager" or c not in WHOLE_GRAPHS],
)
def test_the_warning_of_a_module_names_forward_and_what_the_user_called_it(case, backend, caplog):
    call, said = MODULES[case]
    model = Stack()
    served = godynamo.optimize(backend=backend, cache_size_limit=2, dynamic=False)(model)
    text = warned(caplog, lambda: [call(served, i) for i in range(3)])
    lines = text.splitlines()
    first = Stack.forward.__code__.co_firstlineno
    assert f"function: 'Stack.forward' ({__file__}:{first})" in text
    entries = [line for line in lines if line.lstrip().startswith("Stack.forward (test_reasons.py:")]
    assert len(entries) == 2 and all(len(line) <= 120 for line in entries)
    assert any(said in line for line in entries), text
    assert "godynamo.config.cache_size_limit = " in text and len(text) < 1200
    assert "_call_impl" not in text and "___check" not in text and "_modules" not in text


def number(x, n):
    return x * n


def sequence(x, rows):
    return x * len(rows)


def options(x, **named):
    return x * len(named)


def chosen(x, how):
    return x.relu() if how == "a" else x * 2


def weighted(x, settings):
    return x * settings.scale


def settings():
    class Settings:
        scale = 2

    return Settings()


def modes(x):
    return x * 2 if torch.is_grad_enabled() else x


def late(x):
    y = x * 2
    godynamo.graph_break()
    return y.view(-1, y.shape[0])


X = torch.ones(3)
FUNCTIONS: dict[str, tuple[Any, list[tuple[Any, ...]], str]] = {
    "a number": (number, [(X, 1), (X, 2), (X, 3)], "n: expected 2, seen 3; use a tensor instead of a number"),
    "a type": (number, [(X, 1), (X, 2.0), (X, X)], "n: type expected float, seen Tensor; use one type"),
    "a class of the same name": (
        weighted,
        [(X, settings()) for _ in range(3)],
        "settings: type expected Settings, seen another Settings; use one type",
    ),
    "a text": (chosen, [(X, "a"), (X, "b"), (X, "c")], "how: expected 'b', seen 'c'; use fewer values"),
    "a length": (sequence, [(X, [1]), (X, [1, 2]), (X, [])], "rows: length expected 2, seen 0; use one length"),
    "a local behind a break": (
        late,
        [(torch.ones(n, 2),) for n in (1, 2, 3)],
        "y: sizes expected (2, 2), seen (3, 2); pad to few sizes",
    ),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_the_warning_of_a_function(case, caplog):
    fn, calls, said = FUNCTIONS[case]
    served = godynamo.optimize(cache_size_limit=2, dynamic=False)(fn)
    text = warned(caplog, lambda: [served(*args) for args in calls])
    assert re.search(rf"^ +{fn.__name__} \(test_reasons\.py:\d+\): {re.escape(said)}", text, re.MULTILINE), text


def branches(x):
    return x.relu() if x.shape[0] * x.shape[1] > 12 else x


def test_a_condition_on_sizes_is_shown_with_its_line_and_both_values(caplog):
    served = godynamo.optimize(cache_size_limit=1)(branches)
    served(torch.ones(4, 4))
    line = branches.__code__.co_firstlineno + 1
    said = f"branches (test_reasons.py:{line}): x.size()[0] * x.size()[1] >= 13: seen 6, was 16; pad to few sizes"
    assert said in warned(caplog, lambda: served(torch.ones(3, 2)))
    served(torch.ones(13, 1))
    assert godynamo.cache_stats(served)["hits"] == 1


def test_modes_and_keywords_have_words_too(caplog):
    served = godynamo.optimize(cache_size_limit=1)(modes)
    served(X)
    with torch.no_grad():
        assert "grad mode" in warned(caplog, lambda: served(X))
    served = godynamo.optimize(cache_size_limit=1)(options)
    served(X, a=1)
    assert "named: keys expected ('a',), seen ('b',); use the same keys" in warned(caplog, lambda: served(X, b=1))


def large(x):
    return x * 2 if x.sum() > 9 else x


def calling(x):
    return large(x) + 1


def test_a_wrong_prediction_names_the_function_with_the_branch(caplog):
    served = godynamo.optimize(cache_size_limit=1)(calling)
    said = "the branch on data in large: expected False, seen True; use torch.where"
    assert said in warned(caplog, lambda: [served(X + 9), served(X + 9)])


def test_values_longer_than_a_line_are_cut_and_the_name_stays(caplog):
    served = godynamo.optimize(cache_size_limit=1)(chosen)
    served(X, "a" * 300)
    text = warned(caplog, lambda: served(X, "b" * 300))
    [line] = [line for line in text.splitlines() if "chosen (" in line]
    assert len(line) <= 120 and "): how: expected 'aaa" in line and "seen 'bbb" in line


def test_many_entries_are_counted(caplog):
    served = godynamo.optimize(cache_size_limit=reasons.MOST + 4, dynamic=False)(number)
    text = warned(caplog, lambda: [served(X, n) for n in range(reasons.MOST + 5)])
    assert text.count("number (test_reasons") == reasons.MOST and "and 4 more entries" in text


def test_the_log_and_the_errors_say_the_same_lines(caplog):
    with caplog.at_level(logging.DEBUG, "godynamo.recompiles"):
        served = godynamo.optimize(Stack(), dynamic=False)
        served(ones(2))
        served(ones(3))
    line = "input_ids: sizes expected (2, 3, 8), seen (3, 3, 8); pad to few sizes"
    [said] = [r.getMessage() for r in caplog.records if r.name == "godynamo.recompiles"]
    assert said.startswith("'Stack.forward' (") and line in said
    with (
        godynamo.config.patch(error_on_recompile=True),
        pytest.raises(exc.RecompileError, match=re.escape("input_ids")),
    ):
        served(ones(4))


@pytest.mark.parametrize("limit", [1, 3, 1 << 20, 2**31 - 1, 2**31, 2**70])
def test_a_limit_is_any_positive_size(limit):
    with godynamo.config.patch(cache_size_limit=limit):
        assert godynamo.config.cache_size_limit == limit
        served = godynamo.optimize(number)
        assert [served(X, n)[0].item() for n in (1, 2)] == [1, 2]
        assert len(godynamo.guards(served)) == min(limit, 2)
    served = godynamo.optimize(cache_size_limit=limit)(number)
    assert [served(X, n)[0].item() for n in (1, 2)] == [1, 2]
    assert len(godynamo.guards(served)) == min(limit, 2)


@pytest.mark.parametrize(("limit", "error"), [("8", TypeError), (True, TypeError), (8.0, TypeError), (-1, ValueError)])
def test_another_limit_is_refused(limit, error):
    with pytest.raises(error, match="cache_size_limit"):
        godynamo.optimize(cache_size_limit=limit)
    with pytest.raises(error, match="cache_size_limit"):
        godynamo.compile(number, recompile_limit=limit)
    with pytest.raises(error, match="cache_size_limit"):
        godynamo.config.cache_size_limit = limit
