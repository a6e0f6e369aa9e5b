"""godynamo.comptime: the context that a function receives while translating; the call leaves no trace."""

import io

import pytest
import torch

import godynamo
from godynamo import exc, utils
from godynamo.comptime import ComptimeVar, comptime
from godynamo.testing import CompileCounter

SEEN = []


@pytest.fixture(autouse=True)
def _nothing_seen():
    SEEN.clear()


@pytest.fixture
def x():
    return torch.randn(2, 3)


def keep_y(ctx):
    SEEN.append(ctx.get_local("y"))


@pytest.mark.parametrize("backend", ["eager", CompileCounter()])
def test_it_is_called_once_a_translation_with_what_is_known_there(x, backend):
    @godynamo.optimize(backend=backend)
    def f(x, n):
        y = x.sum(1) * n
        comptime(lambda ctx: SEEN.append((ctx.get_local("y"), ctx.get_local("n"), ctx.get_local("x"))))
        return y - 1

    for n in (2, 2, 3):
        assert torch.equal(f(x, n), x.sum(1) * n - 1)
    assert len(SEEN) == 2
    y, n, given = SEEN[0]
    assert (y.python_type(), y.size(), y.size(0), y.is_python_constant()) == (torch.Tensor, (2,), 2, False)
    assert (y.is_proxy(), y.as_proxy().op, y.as_fake().dtype) == (True, "call_function", torch.float32)
    assert (n.python_type(), n.as_python_constant(), n.is_dynamic(), n.is_proxy()) == (int, 2, False, False)
    assert (given.size(), given.python_type(), given.as_fake().device) == ((2, 3), torch.Tensor, x.device)
    second = SEEN[1][1]
    assert (second.python_type(), second.is_dynamic(), second.is_python_constant()) == (int, True, False)
    n.force_static()
    for wrong in (y.force_static, y.as_python_constant, n.as_proxy, n.as_fake, n.size):
        with pytest.raises((TypeError, ValueError), match="is |cannot be made static"):
            wrong()


def test_nothing_of_it_stays_in_graph_guards_or_code(x):
    def plain(x, n, items):
        y = x + n
        return y * items[0]

    def asking(x, n, items):
        y = x + n
        comptime(keep_y)
        comptime.print_locals()
        return y * items[0]

    counts = []
    for fn in (plain, asking):
        counter = CompileCounter()
        f = godynamo.optimize(fn, backend=counter)
        assert torch.equal(f(x, 1, [2]), (x + 1) * 2)
        (entry,) = godynamo.cache_entries(f)
        guards = [part for part in entry.parts if "comptime" not in part and "keep_y" not in part]
        counts.append((counter.frame_count, counter.op_count, guards))
        assert "comptime" not in {c for c in entry.code.co_names}
    assert counts[0] == counts[1]
    assert len(SEEN) == 1


def test_it_sees_the_frames_of_inlined_functions(x, capsys):
    def inner(v, k=4):
        comptime(lambda ctx: SEEN.extend([ctx.get_local("k"), ctx.parent().get_local("y")]))
        comptime(lambda ctx: SEEN.append(ctx.get_local("y", stacklevel=1)))
        comptime.print_bt()
        comptime.print_locals(stacklevel=1)
        return v * k

    def f(x):
        y = x.relu()
        return inner(y + 1)

    assert torch.equal(godynamo.optimize(f)(x), (x.relu() + 1) * 4)
    k, y, again = SEEN
    assert (k.as_python_constant(), y.size(), again.size()) == (4, x.shape, x.shape)
    out = capsys.readouterr().out
    assert out.index("in f\n    return inner(y + 1)") < out.index("in inner\n    comptime.print_bt()")
    assert "y = ComptimeVar(TensorVariable: torch.float32 [2, 3] on cpu)" in out
    assert "v = " not in out


def test_the_shorthands_print(x, capsys):
    @godynamo.optimize
    def f(x, n):
        y = x + n
        comptime.print_graph()
        comptime.print_guards()
        comptime.print(y)
        comptime.print(n)
        comptime.print_disas()
        comptime.assert_static(n)
        comptime.force_static(n)
        comptime.sleep(0)
        return x - comptime.print_value_stack_and_return(y * 2)

    assert torch.equal(f(x, 1), x - (x + 1) * 2)
    out = capsys.readouterr().out
    for text in ("= x + 1", "TENSOR_MATCH x", "EQUALS_MATCH n", "float32 [2, 3] on cpu)\n1\n", "--> ", "- ComptimeVar"):
        assert text in out
    f(x, 1)
    assert capsys.readouterr().out == ""


def test_its_own_context_prints_to_a_file_and_gives_the_graph(x):
    out = io.StringIO()

    def look(ctx):
        ctx.print_graph(verbose=False, file=out)
        ctx.print_locals(file=out)
        ctx.print_value_stack(file=out)
        ctx.assert_static(ctx.get_local("x"))
        SEEN.append([node.op for node in ctx.graph().nodes])

    def f(x):
        y = x.cos()
        comptime(look)
        return y

    godynamo.optimize(f)(x)
    assert SEEN == [["placeholder", "call_method", "output"]]
    assert "x.cos()" in out.getvalue()
    assert "y = ComptimeVar" in out.getvalue()


def test_builtins_and_methods_of_the_frames_can_be_called(x, capsys):
    class Keeper:
        def keep(self, ctx):
            SEEN.append(ctx.get_local("x").size())

    keep = Keeper().keep

    def f(x):
        y = x + 1
        comptime(print)
        comptime(keep)
        return y

    assert torch.equal(godynamo.optimize(f)(x), x + 1)
    assert SEEN == [(2, 3)]
    assert "ComptimeContext object" in capsys.readouterr().out


def test_in_generators_blocks_and_bodies_of_operations(x, capsys):
    def items(x):
        for i in range(2):
            comptime(lambda ctx: SEEN.append(ctx.get_local("i").as_python_constant()))
            yield x * i

    def f(x):
        try:
            y = sum(items(x))
            comptime.print(y)
        finally:
            comptime(lambda ctx: SEEN.append("finally"))

        def each(row):
            comptime(lambda ctx: SEEN.append(ctx.get_local("row").size()))
            return row * 2

        return y + torch.vmap(each)(x)

    assert torch.equal(godynamo.optimize(f)(x), x + x * 2)
    assert SEEN == [0, 1, "finally", (3,)]
    assert "float32 [2, 3]" in capsys.readouterr().out


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_and_exit_go_through(x, error):
    def leave(ctx):
        raise error

    with pytest.raises(error):
        godynamo.optimize(lambda x: (x + 1, comptime(leave)))(x)


def test_a_closure_gives_known_values_and_variables_for_the_rest(x):
    def f(x, n):
        y = x + n
        label = "sum"
        comptime(lambda ctx, scale=n: SEEN.append((label, n, scale, y)))
        return y

    godynamo.optimize(f)(x, 5)
    ((label, n, scale, y),) = SEEN
    assert (label, n, scale) == ("sum", 5, 5)
    assert isinstance(y, ComptimeVar)
    assert y.size() == x.shape


def test_graph_break_splits_there(x):
    counter = CompileCounter()

    @godynamo.optimize(backend=counter)
    def f(x):
        y = x + 1
        comptime(lambda ctx: ctx.graph_break("here, please"))
        y = y * 2
        comptime.graph_break()
        return y - 1

    assert torch.equal(f(x), (x + 1) * 2 - 1)
    assert counter.frame_count == 3
    assert [r for r in utils.counters["graph_break"] if "here, please" in r]


def test_under_nopython_its_break_is_an_error(x):
    with pytest.raises(exc.Unsupported, match="not now"):
        godynamo.optimize(lambda x: (x + 1, comptime(lambda ctx: ctx.graph_break("not now"))), nopython=True)(x)


def test_what_it_raises_names_the_place_and_keeps_the_cause(x):
    def f(x):
        y = x + 1
        comptime(lambda ctx: ctx.get_local("z"))
        return y

    with pytest.raises(exc.ComptimeError, match=r"test_comptime.py:\d+ in f: KeyError: 'z'; variables here: x, y") as e:
        godynamo.optimize(f)(x)
    assert isinstance(e.value.__cause__, KeyError)
    with pytest.raises(exc.ComptimeError, match="takes a function of one argument"):
        godynamo.optimize(lambda x: (x + 1, comptime(3)))(x)
    with pytest.raises(exc.ComptimeError, match="this translation has 1 frames here"):
        godynamo.optimize(lambda x: (x + 1, comptime(lambda ctx: ctx.parent())))(x)


def test_in_cpython_the_fallback_runs_and_the_rest_does_nothing(x, capsys):
    comptime(keep_y, lambda: SEEN.append("eager"))
    comptime(keep_y)
    comptime.print_graph()
    comptime.print_locals(stacklevel=1)
    comptime.graph_break()
    comptime.assert_static(x)
    assert comptime.print_value_stack_and_return(3) == 3
    assert SEEN == ["eager"]
    assert capsys.readouterr().out == ""
    comptime.print(4)
    assert capsys.readouterr().out == "4\n"


def test_a_split_further_down_calls_it_again_and_results_stay_right(x):
    def f(x):
        y = x + 1
        comptime(keep_y)
        godynamo.graph_break()
        return y * 2

    f = godynamo.optimize(f)
    assert torch.equal(f(x), (x + 1) * 2)
    assert 1 <= len(SEEN) <= 2
    before = len(SEEN)
    f(x)
    assert len(SEEN) == before


def test_in_a_module_and_in_a_loop(x):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(3))

        def forward(self, x):
            for i, layer in enumerate(self.layers):
                x = layer(x)
                comptime(lambda ctx: SEEN.append((ctx.get_local("i").as_python_constant(), ctx.get_local("x").size())))
            return x

    net = Net()
    assert torch.equal(godynamo.optimize(net)(x), net(x))
    assert SEEN == [(i, (2, 3)) for i in range(3)]
