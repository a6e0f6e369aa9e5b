"""``godynamo.overrides``: public functions with a dispatcher, as in the seed document: S001-28 to 38."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest
import torch

from godynamo.overrides import (
    get_overloaded_types_and_args,
    implement_torch_function,
    torch_function_dispatch,
    verify_matching_signatures,
)
from torch_function_support import LOG, Answers, Bare, Logged, Refuses, compare, of, plain


def gemm_dispatcher(input: Any, mat2: Any, out: Any = None) -> Any:
    """From the dispatcher."""
    return (input, mat2, out)


def gemm_implementation(input: Any, mat2: Any, out: Any = None) -> Any:
    """A product."""
    return torch.mm(input, mat2)


@torch_function_dispatch(gemm_dispatcher, module="mylib")
def gemm(input: Any, mat2: Any, out: Any = None) -> Any:
    """A product."""
    return torch.mm(input, mat2)


def square() -> torch.Tensor:
    return torch.arange(4.0).reshape(2, 2)


@pytest.mark.row("S001-28")
def test_a_decorated_function() -> None:
    x = square()
    assert torch.equal(gemm(x, x), torch.mm(x, x))
    assert torch.equal(gemm(input=x, mat2=x, out=None), torch.mm(x, x))
    assert gemm(x, Answers()) == ("Answers", "gemm", ("Tensor", "Answers"), 2, [])
    assert gemm(x, mat2=Answers()) == ("Answers", "gemm", ("Tensor", "Answers"), 1, ["mat2"])
    assert gemm(x, x, out=Answers()) == ("Answers", "gemm", ("Tensor", "Answers"), 2, ["out"])
    assert inspect.signature(torch_function_dispatch).parameters["verify"].default is True
    parameters = list(inspect.signature(torch_function_dispatch).parameters)
    assert parameters == ["dispatcher", "module", "verify", "docs_from_dispatcher"]


@pytest.mark.row("S001-29")
def test_only_relevant_arguments_are_examined() -> None:
    @torch_function_dispatch(lambda a, b: (a,))
    def first_counts(a: Any, b: Any) -> Any:
        return "implementation"

    assert first_counts(plain(), Answers()) == "implementation"
    assert first_counts(Answers(), plain())[0] == "Answers"
    assert not compare(lambda a, b: first_counts(a, b), lambda: [plain(), Answers()]).breaks
    types, args = get_overloaded_types_and_args(
        (1, "x", plain(), of(Bare), of(Bare), Answers(), torch.nn.Parameter(plain()))
    )
    assert types == (torch.Tensor, Bare, Answers) and [type(a) for a in args] == [Bare, torch.Tensor, Answers]


VARIANTS = {
    "names": (lambda a, b: 0, lambda a, c: 0),
    "number": (lambda a, b: 0, lambda a: 0),
    "varargs": (lambda a, *b: 0, lambda a, *c: 0),
    "keywords": (lambda a, **b: 0, lambda a: 0),
    "defaults": (lambda a, b=1: 0, lambda a, b: 0),
    "number of defaults": (lambda a=1, b=2: 0, lambda a, b=None: 0),
}


@pytest.mark.row("S001-30")
@pytest.mark.parametrize("name", VARIANTS)
def test_signatures_must_match(name: str) -> None:
    implementation, dispatcher = VARIANTS[name]
    with pytest.raises(RuntimeError) as info:
        verify_matching_signatures(implementation, dispatcher)
    assert str(info.value) == f"implementation and dispatcher for {implementation} have different function signatures"
    with pytest.raises(RuntimeError):
        torch_function_dispatch(dispatcher)(implementation)
    verify_matching_signatures(gemm_implementation, gemm_dispatcher)


@pytest.mark.row("S001-31")
def test_defaults_of_the_dispatcher_are_none() -> None:
    with pytest.raises(RuntimeError) as info:
        verify_matching_signatures(lambda a, b=1: 0, lambda a, b=1: 0)
    assert str(info.value) == "dispatcher functions can only use None for default argument values"
    verify_matching_signatures(lambda a, b=1: 0, lambda a, b=None: 0)


@pytest.mark.row("S001-32")
def test_verify_off() -> None:
    @torch_function_dispatch(lambda *args: args, verify=False)
    def f(a: Any, b: int = 1) -> Any:
        return a, b

    assert f(3) == (3, 1)


@pytest.mark.row("S001-33")
def test_docs_from_the_dispatcher() -> None:
    def undocumented(input: Any, mat2: Any, out: Any = None) -> None: ...

    made = torch_function_dispatch(gemm_dispatcher, docs_from_dispatcher=True)(undocumented)
    assert made.__doc__ == undocumented.__doc__ == "From the dispatcher."
    assert gemm.__doc__ == "A product."


@pytest.mark.row("S001-34")
def test_the_public_function_is_generated() -> None:
    public = torch_function_dispatch(gemm_dispatcher, module="mylib")(gemm_implementation)
    assert public is not gemm_implementation
    assert public.__name__ == "gemm_implementation" and public.__module__ == "mylib"
    assert public._implementation is gemm_implementation and public.__wrapped__ is gemm_implementation
    assert public.__code__.co_filename == "<__torch_function__ internals>"
    assert public.__code__.co_name == "gemm_implementation"
    assert inspect.signature(public) == inspect.signature(gemm_implementation)
    for name in set(functools.WRAPPER_ASSIGNMENTS) - {"__module__"}:
        assert getattr(public, name) == getattr(gemm_implementation, name)
    assert torch_function_dispatch(gemm_dispatcher)(gemm_implementation).__module__ == __name__


@pytest.mark.row("S001-35")
def test_shortcuts() -> None:
    seen: list[Any] = []

    def implementation(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs))
        return "implementation"

    def call(*relevant: Any) -> Any:
        return implement_torch_function(implementation, gemm, relevant, (1,), {"k": 2})

    LOG.clear()
    assert call() == call(1, "a") == "implementation"  # no argument has a handler
    assert call(plain()) == "implementation"  # types == (Tensor,)
    assert call(of(Bare)) == call(plain(), of(Bare)) == "implementation"  # all have torch.Tensor's own handler
    assert call(torch.nn.Parameter(plain())) == "implementation"
    assert LOG == [] and seen == [((1,), {"k": 2})] * 6
    assert call(plain(), Answers())[0] == "Answers"
    with pytest.raises(TypeError) as info:
        call(of(Refuses))
    assert str(info.value) == (
        f"no implementation found for 'mylib.gemm' on types that implement __torch_function__: [{Refuses!r}]"
    )
    assert call(of(Refuses), Answers())[0] == "Answers"
    with torch._C.DisableTorchFunctionSubclass():
        assert call(Answers()) == "implementation"


@pytest.mark.row("S001-09")
def test_the_seeds_text_when_all_refuse() -> None:
    def f(a: Any, b: Any) -> Any:
        return gemm(a, b)

    compare(f, lambda: [of(Refuses), plain()])
    with pytest.raises(TypeError) as info:
        f(of(Refuses), plain())
    expected = f"[{Refuses!r}, {torch.Tensor!r}]"
    assert (
        str(info.value)
        == f"no implementation found for 'mylib.gemm' on types that implement __torch_function__: {expected}"
    )


@pytest.mark.row("S001-36")
def test_the_implementation_gets_the_original_objects() -> None:
    given: list[Any] = []

    @torch_function_dispatch(lambda a, b=None: (a, b))
    def keeps(a: Any, b: Any = None) -> Any:
        given.append((a, b))
        return a

    x, y = plain(), [1]
    assert keeps(x, b=y) is x
    assert given[0][0] is x and given[0][1] is y

    seen: list[Any] = []
    args, kwargs = (x,), {"b": y}

    def implementation(*a: Any, **k: Any) -> None:
        seen.append((a, k))

    implement_torch_function(implementation, keeps, (x,), args, kwargs)
    assert seen[0][0][0] is x and seen[0][1]["b"] is y


@pytest.mark.row("S001-37")
def test_a_bad_call_names_the_dispatcher() -> None:
    for call in (lambda: gemm(plain()), lambda: gemm(plain(), plain(), nothing=1)):
        with pytest.raises(TypeError, match=r"^gemm_dispatcher\(\) ") as info:
            call()
        names = [frame.name for frame in info.traceback]
        assert names[-1] == "gemm"
    got = compare(lambda x: gemm(x.sin()), lambda: [square()])
    assert got.backend.all_ops() in ([], ["sin"])


@pytest.mark.row("S001-38")
def test_captured_by_its_default_path() -> None:
    compare(lambda x, y: gemm(x, y) + 1, lambda: [square(), square()]).one_graph("mm", "add")
    compare(lambda x, y: gemm(x, mat2=y) + 1, lambda: [square().as_subclass(Bare), square()]).one_graph("mm", "add")


@pytest.mark.row("S001-38")
def test_captured_by_its_handler() -> None:
    got = compare(lambda x, y: gemm(x, y) + 1, lambda: [square().as_subclass(Logged), square()])
    got.one_graph("mm", "add")
    assert [entry[1] for entry in LOG] == ["gemm", "add"]
    got = compare(lambda x, d: (gemm(x, d), x.sin()), lambda: [square(), Answers()])
    got.one_graph("sin")
