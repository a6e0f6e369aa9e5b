"""docs/api.md: every listed name exists and does what its example shows, and every public name is listed."""

import importlib
import inspect
import sys
import types
from pathlib import Path

import pytest
import torch
import torch._dynamo
import torch.compiler

import godynamo
from godynamo import callback
from godynamo._user import registry

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import api_page
import api_rows

ROWS = [row for _, rows in api_rows.GROUPS for row in rows]
NAMES = [row.name for row in ROWS]
NOT_BUILT = importlib.import_module("godynamo._user.not_built").NOT_BUILT
SUBMODULES = ("callback", "comptime", "config", "exc", "testing", "utils")


@pytest.fixture(autouse=True)
def _as_before():
    yield
    callback.callback_handler.clear()
    godynamo.set_stance("default")
    godynamo.set_default_backend(None)
    godynamo.config.reset_config()


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_name_exists_and_does_what_its_example_says(row):
    found = godynamo
    for part in row.name.split("."):
        found = getattr(found, part)
    plain = eval("lambda x: x + 1")  # a new code object, which a row may mark
    names = {"torch": torch, "godynamo": godynamo, "x": torch.ones(3), "plain": plain, "f": godynamo.optimize(plain)}
    assert eval(row.example, {**names, "model": torch.nn.Linear(3, 3)})
    registry.unregister(plain)


@pytest.mark.parametrize("name", NOT_BUILT)
def test_what_is_not_built_says_why(name):
    module, _, last = name.rpartition(".")
    with pytest.raises(AttributeError) as e:
        getattr(getattr(godynamo, module) if module else godynamo, last)
    subject = f"godynamo.config has no setting {last!r}" if module else f"module 'godynamo' has no attribute {name!r}"
    assert str(e.value) == f"{subject}: {NOT_BUILT[name]}"


def test_there_are_enough_names_and_each_once():
    assert len(ROWS) >= 60
    assert len(set(NAMES)) == len(NAMES)
    assert not set(NAMES) & set(NOT_BUILT)


def test_every_public_name_is_listed():
    assert set(godynamo.__all__) - set(NAMES) == set()
    missing = []
    for name in SUBMODULES:
        module = getattr(godynamo, name)
        public = getattr(module, "__all__", None) or [
            n
            for n, value in vars(module).items()
            if not n.startswith("_")
            and not isinstance(value, types.ModuleType)
            and getattr(value, "__module__", module.__name__) == module.__name__
            and n not in ("annotations", "core", "Backend", "Callback", "V", "TYPE_CHECKING")
        ]
        missing += [f"{name}.{n}" for n in public if f"{name}.{n}" not in NAMES]
    assert missing == [], "a row in scripts/api_rows.py, then make generate"


@pytest.mark.parametrize(("module", "names"), [("torch.compiler", torch.compiler), ("torch._dynamo", torch._dynamo)])
def test_every_name_that_torch_lists_is_told_of(module, names):
    told = {row.torch for row in ROWS} | set(api_rows.ELSEWHERE) | {f"{module}.{name}" for name in NOT_BUILT}
    missing = [name for name in names.__all__ if f"{module}.{name}" not in told]
    if torch.__version__.startswith("2.15"):
        assert missing == []


def test_torchs_names_are_torchs():
    """Check only names that the installed torch has: the table also lists names of older versions."""
    for row in ROWS:
        if not row.torch or not torch.__version__.startswith("2.15"):
            continue
        path = row.torch.split(".")[1:]
        found = torch
        for i, part in enumerate(path):
            if isinstance(found, types.ModuleType) and not hasattr(found, part):
                try:
                    found = importlib.import_module(".".join(["torch", *path[: i + 1]]))
                    continue
                except ImportError:
                    pass
            found = getattr(found, part, None)
        gone = "removed from torch" in row.difference or row.name in ("reset_code_caches", "config.dynamic_shapes")
        assert (found is not None) or gone or row.torch.startswith("torch._dynamo.config."), row


def test_the_page_is_what_the_rows_say():
    assert api_page.PAGE.read_text() == api_page.page(), "make generate"


def test_an_unknown_name_is_met_with_near_ones():
    with pytest.raises(AttributeError, match="near it: optimize"):
        godynamo.optimise
    with pytest.raises(AttributeError, match="attribute '__wrapped__'$"):
        godynamo.__wrapped__


def test_every_public_function_has_a_docstring():
    for row in ROWS:
        found = godynamo
        for part in row.name.split("."):
            found = getattr(found, part)
        if inspect.isroutine(found) or inspect.isclass(found):
            assert inspect.getdoc(found), row.name
