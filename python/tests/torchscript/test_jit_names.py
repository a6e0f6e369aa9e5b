"""torch.jit and torch.distributed.rpc names: rows S004-218 to S004-234."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from torch import nn

import godynamo
from harness.graph_counts import nb, one_graph, same, split, x3

row = pytest.mark.row


@pytest.fixture(scope="module")
def rpc(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not torch.distributed.is_available():
        pytest.skip("torch.distributed is not in this build of torch")
    from torch.distributed import rpc as module

    if not module.is_available():
        pytest.skip("torch.distributed.rpc is not in this build of torch")
    place = tmp_path_factory.mktemp("rpc") / "rendezvous"
    module.init_rpc(
        "worker0",
        rank=0,
        world_size=1,
        rpc_backend_options=module.TensorPipeRpcBackendOptions(init_method=f"file://{place}"),
    )
    yield module
    module.shutdown()


def remote_work(x: torch.Tensor, k: int) -> torch.Tensor:
    return x * k


@row("S004-22")
def test_rref(rpc: Any) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        r = rpc.RRef(y)
        return r.local_value() * 2

    split(f, x3(), at_most=3)


@row("S004-218")
def test_rpc_sync(rpc: Any) -> None:
    split(lambda x: rpc.rpc_sync("worker0", remote_work, args=(x + 1, 3)) + 1, x3(), at_most=3)


@row("S004-219")
def test_rpc_async(rpc: Any) -> None:
    def f(x: torch.Tensor) -> Any:
        fut = rpc.rpc_async("worker0", remote_work, args=(x + 1, 3))
        y = x * 2
        return fut.wait() + y

    split(f, x3(), at_most=4)


@row("S004-220")
def test_remote(rpc: Any) -> None:
    split(lambda x: rpc.remote("worker0", remote_work, args=(x + 1, 3)).to_here() + 1, x3(), at_most=4)


@row("S004-221")
def test_fork() -> None:
    def f(x: torch.Tensor) -> Any:
        fut = torch.jit.fork(lambda v, k: v * k, x + 1, 3)
        old = torch.jit._fork(torch.sin, x)
        return torch.jit.wait(fut) + 1, torch.jit._wait(old)

    split(f, x3(), at_most=6)


@row("S004-221")
def test_fork_starts_at_once() -> None:
    def f(x: torch.Tensor, log: list[str]) -> Any:
        def task(v: torch.Tensor) -> Any:
            log.append("task")
            return v + 1

        log.append("before")
        fut = torch.jit.fork(task, x)
        log.append("after")
        return torch.jit.wait(fut) * 2

    split(f, x3(), [], at_most=4)


def failing(x: torch.Tensor) -> Any:
    raise ValueError("in the task")


@row("S004-222")
def test_wait_raises_the_task_s_exception() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        return torch.jit.wait(torch.jit.fork(failing, y))

    same(f, x3())


@row("S004-226")
def test_which_compiler_runs() -> None:
    def f(x: torch.Tensor) -> Any:
        inside = godynamo.is_compiling()
        return x + 1, torch.jit.is_scripting(), torch.jit.is_tracing(), inside

    assert f(x3())[1:] == (False, False, False)
    backend = nb()
    compiled = godynamo.optimize(f, backend=backend)
    assert compiled(x3())[1:] == (False, False, True)
    assert len(backend) == 1


@torch.jit.ignore
def ignored(x: torch.Tensor) -> Any:
    return x + 1


@torch.jit.ignore(drop=True)
def dropped(x: torch.Tensor) -> Any:
    return x * 5


@torch.jit.unused
def unused(x: torch.Tensor) -> Any:
    return x * 2


class Exported(nn.Module):
    @torch.jit.export
    def exported(self, x: torch.Tensor) -> Any:
        return x * 3

    @torch.jit.ignore
    def python_only(self, x: torch.Tensor) -> Any:
        return x - 1

    @torch.jit.unused
    def not_used(self, x: torch.Tensor) -> Any:
        return x - 2

    def forward(self, x: torch.Tensor) -> Any:
        return self.not_used(self.python_only(self.exported(x)))


@row("S004-227")
def test_ignore() -> None:
    one_graph(lambda x: dropped(ignored(x)), x3())
    one_graph(Exported(), x3())


@row("S004-228")
def test_unused() -> None:
    one_graph(lambda x: unused(x) + 1, x3())


@row("S004-229")
def test_export() -> None:
    m = Exported()
    one_graph(lambda x: m.exported(x), x3())
    one_graph(Exported().exported, x3())


VALUES = {
    "ints": [1],
    "strings": ["a"],
    "empty list": [],
    "dict": {"a": 1},
    "empty dict": {},
    "tuple": (1, "a"),
    "nested": [[1], [2]],
    "none": None,
    "int": 3,
    "dict of lists": {"a": [1.5]},
}
TYPES = [
    List[int],
    List[str],
    Dict[str, int],
    Tuple[int, str],
    List[List[int]],
    Optional[int],
    int,
    Dict[str, List[float]],
    (List[int], Dict[str, int]),
]


@row("S004-230")
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.filterwarnings("ignore:The inner type of a container is lost:UserWarning")
def test_jit_isinstance(name: str) -> None:
    split(lambda x, v: (x + 1, [torch.jit.isinstance(v, t) for t in TYPES]), x3(), VALUES[name], at_most=20)


@row("S004-230")
@pytest.mark.filterwarnings("ignore:The inner type of a container is lost:UserWarning")
def test_jit_isinstance_as_a_condition() -> None:
    def f(x: torch.Tensor, v: Any) -> Any:
        y = x + 1
        if torch.jit.isinstance(v, List[int]):
            return y * v[0]
        return y * 2

    split(f, x3(), [5])
    godynamo.reset()
    split(f, x3(), ["s"])


@row("S004-231")
def test_refinement() -> None:
    def f(x: torch.Tensor, v: Any) -> Any:
        if isinstance(v, torch.Tensor):
            return x + v.sum()
        if isinstance(v, list):
            v.append(1)
            return x * len(v)
        assert isinstance(v, str)
        return x - len(v.upper())

    for v in (x3(), [1, 2], "abc"):
        godynamo.reset()
        one_graph(f, x3(), v)


def to_script(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


class ToScript(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu() + 1


@row("S004-232")
def test_calling_scripted_code() -> None:
    scripted = torch.jit.script(to_script)
    one_graph(lambda x: scripted(x + 1) * 3, x3())


@row("S004-232")
def test_calling_a_script_module() -> None:
    module = torch.jit.script(ToScript())
    split(lambda x: module(x + 1) * 3, x3(), at_most=2)


@row("S004-233")
def test_script_and_godynamo_on_one_function() -> None:
    backend = nb()
    ours = godynamo.optimize(to_script, backend=backend)
    scripted = torch.jit.script(to_script)
    assert torch.equal(ours(x3()), to_script(x3()))
    assert torch.equal(scripted(x3()), to_script(x3()))
    assert torch.equal(ours(x3()), scripted(x3()))
    assert len(backend) == 1
