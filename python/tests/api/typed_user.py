"""A user's program as mypy strict sees it (test_types.py): decorated functions keep their types, wrong uses are errors.

The program is checked and never run. Each ``type: ignore`` marks an expected error: strict mypy reports unused ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_type

import torch

import godynamo
from godynamo import callback, config, exc, testing, utils
from godynamo.comptime import ComptimeContext, comptime

Tensor = torch.Tensor


def plain(x: Tensor, n: int = 1, *, scale: float = 1.0) -> Tensor:
    return x * n * scale


def my_backend(gm: torch.fx.GraphModule, example_inputs: list[Tensor]) -> Callable[..., Any]:
    return gm.forward


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out

    @godynamo.optimize
    def method(self, x: Tensor) -> list[Tensor]:
        return [x]

    @godynamo.optimize(backend="inductor", nopython=True)
    def with_options(self, x: Tensor) -> int:
        return 1

    @staticmethod
    @godynamo.optimize
    def static(x: Tensor) -> float:
        return 1.0

    @classmethod
    @godynamo.disable
    def of_class(cls, x: Tensor) -> Net:
        return cls()


def forms(x: Tensor, any_callable: Callable[..., Any]) -> None:
    f = godynamo.optimize(plain)
    assert_type(f(x, 2, scale=0.5), Tensor)
    f(x, "2")  # type: ignore[arg-type]
    f(x, m=2)  # type: ignore[call-arg]
    assert_type(godynamo.optimize(plain, backend=my_backend)(x), Tensor)
    assert_type(godynamo.optimize(plain, backend="inductor", mode="max-autotune")(x), Tensor)
    assert_type(godynamo.optimize(fn=plain, backend=my_backend)(x), Tensor)
    assert_type(godynamo.optimize("inductor")(plain)(x), Tensor)
    assert_type(godynamo.optimize(backend=my_backend, options={"a": 1})(plain)(x), Tensor)
    assert_type(godynamo.optimize(testing.CompileCounter())(plain)(x), Tensor)
    assert_type(godynamo.optimize()(plain)(x), Tensor)
    assert_type(godynamo.optimize_assert("eager")(plain)(x), Tensor)
    assert_type(godynamo.optimize(any_callable), Callable[..., Any])
    assert_type(godynamo.optimize(lambda a, b: a)(1, 2), Any)
    with godynamo.optimize(backend=my_backend):
        plain(x)
    godynamo.optimize(3)  # type: ignore[call-overload]
    godynamo.optimize(plain, nopythn=True)  # type: ignore[call-overload]
    godynamo.optimize(backend=3)  # type: ignore[call-overload]


def modules(x: Tensor) -> None:
    net = Net()
    assert_type(godynamo.optimize(net), Net)
    assert_type(godynamo.optimize(net).layer, torch.nn.Linear)
    assert_type(net.method(x), list[Tensor])
    assert_type(net.with_options(x), int)
    assert_type(Net.static(x), float)
    assert_type(Net.of_class(x), Net)
    net.method(1)  # type: ignore[arg-type]
    assert_type(godynamo.compile(net), Net)
    godynamo.compile_module(net, backend="eager")
    assert_type(isinstance(net, godynamo.OptimizedModule), bool)


def compiled(x: Tensor) -> None:
    @godynamo.compile(fullgraph=True, backend=my_backend)
    def f(x: Tensor) -> tuple[Tensor, int]:
        return x, 1

    assert_type(f(x), tuple[Tensor, int])
    assert_type(godynamo.compile(plain)(x), Tensor)
    godynamo.compile(plain, fulgraph=True)  # type: ignore[call-overload]


@godynamo.disable
def disabled(x: Tensor) -> Tensor:
    return x


@godynamo.disable(reason="slow")
def disabled_for_a_reason(x: Tensor) -> Tensor:
    return x


@godynamo.disable(recursive=False)
def own_frame_alone(x: Tensor) -> Tensor:
    return x


@godynamo.skip
def skipped(x: Tensor) -> Tensor:
    return x


@godynamo.allow_in_graph
def allowed(x: Tensor) -> Tensor:
    return x


@godynamo.nonstrict_trace
def traced(x: Tensor) -> Tensor:
    return x


@godynamo.forbid_in_graph
def forbidden(x: Tensor) -> Tensor:
    return x


@godynamo.assume_constant_result
def constant() -> int:
    return 1


@godynamo.substitute_in_graph(plain)
def substitute(x: Tensor, n: int = 1, *, scale: float = 1.0) -> Tensor:
    return x


@godynamo.set_stance("force_eager")
def in_stance(x: Tensor) -> Tensor:
    return x


@godynamo.register_backend
def registered(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    return gm.forward


@godynamo.register_backend(name="named", tags=["debug"])
def registered_by_name(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    return gm.forward


@config.patch(cache_size_limit=2)
def patched(x: Tensor) -> Tensor:
    return x


def decorators_keep_types(x: Tensor) -> None:
    for f in (
        disabled,
        disabled_for_a_reason,
        own_frame_alone,
        skipped,
        allowed,
        traced,
        forbidden,
        in_stance,
        patched,
    ):
        assert_type(f(x), Tensor)
    assert_type(constant(), int)
    assert_type(substitute(x, 1), Tensor)
    assert_type(godynamo.run(plain)(x), Tensor)
    assert_type(godynamo.list_backends(), list[str])
    disabled("x")  # type: ignore[arg-type]
    in_stance("x")  # type: ignore[arg-type]
    with (
        godynamo.run(),
        godynamo.disable(),
        godynamo.set_stance("fail_on_recompile"),
        config.patch(suppress_errors=True),
    ):
        pass


def looking(x: Tensor) -> None:
    explanation = godynamo.explain(plain)(x, 2)
    assert_type(explanation.graph_count, int)
    assert_type(explanation.break_reasons[0].line, int | None)
    godynamo.explain(plain)("x")  # type: ignore[arg-type]
    assert_type(godynamo.cache_stats(plain), dict[str, int])
    assert_type(godynamo.cache_size(plain), int)
    assert_type(godynamo.guards(plain)[0].hits, int)
    assert_type(godynamo.decompile(plain), str)
    assert_type(godynamo.is_compiling(), bool)
    assert_type(utils.counters["frames"]["ok"], int)
    assert_type(utils.compile_times(), str)
    assert_type(utils.compile_times("csv"), tuple[list[str], list[str]])
    assert_type(utils.get_compilation_metrics()[0].co_name, str)
    assert_type(config.cache_size_limit, int)
    assert_type(config.tensor_guards, str)
    config.cache_size_limit = "8"  # type: ignore[assignment]
    graph_module, guards = godynamo.export(plain)(x)
    assert_type(testing.same(x, x), bool)
    del graph_module, guards


def errors(x: Tensor) -> str:
    try:
        godynamo.optimize(plain, nopython=True)(x)
    except exc.Unsupported as error:
        return f"{error.code} {error.hint} {error.stack[0][2]}"
    except exc.BackendCompilerFailed as error:
        return error.backend_name
    return ""


def at_compile_time(x: Tensor) -> Tensor:
    def look(ctx: ComptimeContext) -> None:
        assert_type(ctx.get_local("x").is_python_constant(), bool)

    comptime(look)
    comptime(look, lambda: None)
    comptime.print_graph()
    comptime.print_locals(stacklevel=1)
    comptime(3)  # type: ignore[arg-type]
    return comptime.print_value_stack_and_return(x)


@callback.on_compile_start
def started(args: callback.CallbackArgs) -> None:
    assert_type(args.compile_id, str)


def marks(x: Tensor) -> None:
    godynamo.mark_dynamic(x, [0, 1], min=2)
    godynamo.mark_static(x)
    godynamo.mark_dynamic(x, "0")  # type: ignore[arg-type]
    godynamo.set_default_backend(my_backend)
    godynamo.nosuchname  # type: ignore[attr-defined]
