"""The short forms of make opinfo and make modules, and their harness: it detects differences, crashes and hangs."""

from __future__ import annotations

import textwrap

import pytest
import torch
from torch.testing._internal.common_modules import module_db

import library_judge
import module_table
import op_cases
from library_judge import Case, caller_of, judge
from library_run import run_units, summary, whole_lines

OPS = """
    add addmm matmul softmax sum mean unsqueeze view transpose cat index_select where sort topk cumsum clamp expand
    gather
    scatter_add split nn.functional.linear nn.functional.conv2d nn.functional.layer_norm nn.functional.embedding
    nn.functional.dropout nn.functional.gelu nn.functional.cross_entropy linalg.qr fft.fft einsum __getitem__ bernoulli
    logsumexp masked_fill var_mean masked.sum max.reduction_with_dim block_diag
""".split()
MODULES = """
    Linear Conv2d BatchNorm1d LayerNorm Embedding Dropout GELU CrossEntropyLoss MaxPool2d Sequential MultiheadAttention
    TransformerEncoderLayer PixelShuffle Identity LSTM
""".split()
#: modules that are not one graph here; `make modules` prints the reason
SPLIT_MODULES = {"BatchNorm1d"}


def test_a_choice_of_operators_is_right_and_in_one_graph():
    names = [n for n in op_cases.units() if n in OPS]
    assert len(names) >= 30
    rows = run_units("ops", names, samples=2)
    assert not [(r["unit"], r["wrong"], r["error"]) for r in rows if r["wrong"] or r["error"]]
    assert not [(r["unit"], r["breaks"]) for r in rows if r["one"] < r["counted"]]
    assert all(r["counted"] for r in rows)


def test_a_choice_of_modules_is_right_and_most_are_in_one_graph():
    rows = run_units("modules", MODULES, samples=2)
    assert not [(r["unit"], r["wrong"], r["error"]) for r in rows if r["wrong"] or r["error"]]
    assert {r["unit"] for r in rows if r["one"] < r["counted"]} <= SPLIT_MODULES
    assert all(r["counted"] for r in rows)


def test_every_module_of_torch_has_inputs():
    made = {info.module_cls.__name__ for info in module_db} | set(module_table.ROWS)
    assert [name for name in module_table.names() if name not in made] == []
    assert len(module_table.names()) >= 131


# ---- the judge -------------------------------------------------------------------------------------------------------


def case(fn, *args):
    return Case("c", lambda: caller_of(fn), args)


def test_a_right_call_in_one_graph():
    verdict = judge(case(torch.add, torch.ones(2, requires_grad=True), 2))
    assert (verdict.ran, verdict.wrong, verdict.one, dict(verdict.breaks)) == (True, [], True, {})


def test_a_split_is_told_with_its_reason():
    verdict = judge(case(torch.Tensor.tolist, torch.ones(1, 1)))
    assert not verdict.wrong
    assert not verdict.one
    assert list(verdict.breaks) == ["a tensor's value is needed as a Python number: tolist()"]


class Counts(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Lists(Counts):
    def forward(self, x):
        return super().forward(x) * x.reshape(1, 2).tolist()[0][1]


def test_a_call_that_is_translated_again_is_one_graph():
    verdict = judge(Case("c", Counts, (torch.ones(2),)))
    assert (verdict.wrong, verdict.one, verdict.again, dict(verdict.breaks)) == ([], True, True, {})
    verdict = judge(Case("c", Lists, (torch.ones(2),)))
    assert (verdict.wrong, verdict.one, verdict.again) == ([], False, False)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda out: out + 1, "value"),
        (lambda out: out.double(), "value"),
        (lambda out: out.t().contiguous().t(), "value"),
        (lambda out: out.detach(), "value"),
        (lambda out: out * 1.0, "value"),  # the same numbers, computed by another autograd function
        (lambda out: torch.rand(1) * 0 + out, "random"),
    ],
)
def test_a_backend_that_changes_something_is_caught(monkeypatch, change, key):
    compile_graph = library_judge.Recorder.__call__

    def changed(self, gm, example_inputs):
        forward = compile_graph(self, gm, example_inputs)
        return lambda *args: [change(out) for out in forward(*args)]

    monkeypatch.setattr(library_judge.Recorder, "__call__", changed)
    verdict = judge(case(torch.add, torch.ones(2, 3, requires_grad=True), 2))
    assert verdict.wrong
    assert any(text.startswith(f"whole graph, call 0: {key}: ") for text in verdict.wrong)
    assert not any(text.startswith("inline") for text in verdict.wrong)


def test_exceptions_are_compared_and_not_counted():
    verdict = judge(case(torch.add, torch.ones(2), torch.ones(3)))
    assert (verdict.ran, verdict.wrong) == (False, [])


def test_what_eager_does_not_repeat_is_compared_without_its_values():
    seen = iter(range(100))
    fn = Case("c", lambda: (lambda n: lambda x: x + n)(next(seen)), (torch.ones(2),))
    verdict = judge(fn)
    assert (verdict.wrong, verdict.valued) == ([], False)


def test_a_crash_and_a_hang_cost_one_unit_each(tmp_path, monkeypatch):
    (tmp_path / "made_cases.py").write_text(
        textwrap.dedent("""
        import os, time, torch
        from library_judge import Case, caller_of

        def units(): return {name: name for name in "good crash hang bad again".split()}
        def cases(unit, most):
            if unit == "crash": os.abort()
            if unit == "hang": time.sleep(1000)
            if unit == "bad": raise ValueError("no samples")
            yield Case(unit, lambda: caller_of(torch.neg), (torch.ones(2),))
        """)
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    heard = []
    rows = run_units("made_cases", "good crash hang bad again".split(), timeout=4, told=heard.append)
    assert rows == heard
    found = {r["unit"]: (r["wrong"][0].split("\n")[0] if r["wrong"] else r["error"] or r["one"]) for r in rows}
    assert found == {
        "good": 1,
        "crash": "crashed with -6",
        "hang": "hung",
        "bad": "ValueError: no samples",
        "again": 1,
    }
    assert summary(rows, "ops").splitlines()[-3] == "ops: 2 of 4 right, 2 of 2 in one graph"


GENERATED = """
import sys
_module = sys.modules[__name__]
del sys
from _paritybench_helpers import _mock_config, patch_functional
from unittest.mock import mock_open, MagicMock
import torch, torch.nn as nn, torch.nn.functional as F
from collections import Iterable
from torch._six import string_classes
from torch.utils.tensorboard import SummaryWriter
open = mock_open()
yaml = logging = sys = argparse = MagicMock()
_global_config = args = cfg = config = _mock_config()
xrange = range

class Gate(nn.Module):
    def __init__(self, dim, p=0.5):
        super(Gate, self).__init__()
        self.lin, self.drop = nn.Linear(dim, dim), nn.Dropout(p)
    def forward(self, x):
        return self.drop(torch.sigmoid(self.lin(x))) * x

class Splits(nn.Module):
    def forward(self, x):
        return x * x[None].tolist()[0][0]

class NeedsMore(nn.Module):
    def __init__(self, missing):
        super().__init__()

class Numbered(nn.Module):
    made = 0

    def __init__(self):  # differs from instance to instance, as uninitialized memory does
        super().__init__()
        Numbered.made += 1
        self.number = Numbered.made

    def forward(self, x):
        return x * self.number

class Raises(nn.Module):
    def forward(self, x):
        return x @ x.reshape(-1)

class Pair:
    def __init__(self, x):
        self.x = x

class Yields(nn.Module):
    def forward(self, x):
        yield Pair(x + 1)

from _paritybench_helpers import _mock_layer, _paritybench_base, _fails_compile
TESTCASES = [
    (Gate, lambda: ([], {'dim': 4}), lambda: ([torch.rand([4, 4])], {}), True),
    (Splits, lambda: ([], {}), lambda: ([torch.rand([4])], {})),
    (NeedsMore, lambda: ([], {}), lambda: ([torch.rand([4])], {}), False),
    (Raises, lambda: ([], {}), lambda: ([torch.rand([2, 2])], {}), False),
    (Numbered, lambda: ([], {}), lambda: ([torch.rand([2, 2])], {}), True),
    (Yields, lambda: ([], {}), lambda: ([torch.rand([2, 2])], {}), True),
]

class Test_some_project(_paritybench_base):
    def test_000(self):
        self._check(*TESTCASES[0])
"""
HELPERS = """
class _mock_config(dict): pass
class _paritybench_base: pass
patch_functional = _mock_layer = _fails_compile = None
"""


def test_a_line_that_a_child_is_still_writing_is_read_later(tmp_path):
    results = tmp_path / "results.jsonl"
    assert whole_lines(results) == []
    results.write_text('{"start": "add"}\n{"unit": "ad')
    assert whole_lines(results) == ['{"start": "add"}']
    results.write_text('{"start": "add"}\n{"unit": "add"}\n')
    assert whole_lines(results) == ['{"start": "add"}', '{"unit": "add"}']


def test_files_of_paritybench_are_run(tmp_path, monkeypatch):
    generated = tmp_path / "generated"
    generated.mkdir()
    (generated / "_paritybench_helpers.py").write_text(HELPERS)
    (generated / "test_Author_project.py").write_text(GENERATED)
    (generated / "test_broken_one.py").write_text("import nothing_of_this_name")
    monkeypatch.setenv("GODYNAMO_PARITYBENCH_DIR", str(tmp_path))
    from library_child import tables

    names = list(tables("paritybench").units())
    assert names == ["Author_project", "broken_one"]
    good, broken = run_units("paritybench", names, samples=100)
    assert (good["cases"], good["right"], good["ran"], good["one"], good["wrong"]) == (10, 10, 8, 6, [])
    assert good["unvalued"] == 0
    assert set(good["split"]) == {"1 Splits train", "1 Splits eval"}
    assert any("tolist()" in reason for reason in good["breaks"])
    assert "nothing_of_this_name" in broken["error"]
