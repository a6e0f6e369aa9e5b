"""The memo of a guard program agrees with the whole program, for every change between two evaluations.

Each case has two entries of one program: one keeps its memo; the other has none and runs the whole program.
"""

from __future__ import annotations

import collections
import gc
import random
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.modules.module as module_globals
from torch import nn

import godynamo
from godynamo import _C
from guard_programs import STRONG, Program

WARM = 4  # evaluations until a memo exists


class Twins:
    """Two entries of one program. check() evaluates both and returns whether they hold."""

    def __init__(self, with_memo: Any, without: Any) -> None:
        assert with_memo.parts == without.parts
        assert [node[:5] for node in with_memo.nodes()] == [node[:5] for node in without.nodes()]
        self.with_memo, self.without = with_memo, without
        _C.guard_forget(without)

    @classmethod
    def of(cls, program: Program) -> Twins:
        spec = program.spec()
        return cls(_C.make_entry(spec), _C.make_entry(spec))

    def check(self, slots: tuple[Any, ...], globals: dict[str, Any] | None = None, times: int = 1) -> bool:
        for _ in range(times):
            got = _C.guard_check(self.with_memo, slots, globals)
            want = _C.guard_check(self.without, slots, globals)
            part = want[1] if want[1] is None else self.without.parts[want[1]]
            assert got == want, part
        return want[0]

    def memo(self) -> dict[str, Any]:
        memo = _C.guard_memo(self.with_memo)
        assert memo is not None
        return memo

    def left(self) -> list[str]:
        """Return the operations of the nodes that run even though the memo holds."""
        nodes = self.with_memo.nodes()
        return [nodes[i][0] for i in self.memo()["left"]]


# ---- module trees


class Block(nn.Module):
    scale = 2

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.act = nn.ReLU()
        self.register_buffer("shift", torch.ones(4))
        self.factor = 3
        self.options = {"bias": True, "depth": 2}
        self.order = [1, 2, 3]

    def forward(self, x: Any) -> Any:
        y = self.act(self.linear(x)) * self.scale + self.shift
        if self.training:
            y = y * self.factor
        for k in self.order:
            y = y + k
        return y + 1 if self.options["bias"] else y


class OtherBlock(Block):
    pass


class Tree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block()
        self.rest = nn.Sequential(Block(), nn.Identity(), nn.Tanh())
        self.named = nn.ModuleDict({"a": nn.Identity()})
        self.listed = nn.ModuleList([nn.Identity(), nn.Linear(4, 4)])

    def forward(self, x: Any) -> Any:
        x = self.rest(self.first(x))
        for m in self.listed:
            x = m(x)
        return self.named["a"](x)


def _module_twins(tree: nn.Module, x: torch.Tensor) -> Twins:
    entries = []
    for _ in range(2):
        handle = godynamo.optimize(tree, backend="eager")
        handle(x)
        entries += godynamo.cache_entries(object.__getattribute__(handle, "_godynamo_call"))
    twins = Twins(*entries)
    assert twins.check((tree, (x,), {}), module_globals.__dict__, WARM)
    assert len(twins.memo()["left"]) * 4 < len(twins.with_memo.nodes())
    return twins


Undo = Callable[[], object]


def _set(obj: Any, name: str, value: Any) -> Undo:
    old = getattr(obj, name)
    setattr(obj, name, value)
    return lambda: setattr(obj, name, old)


def _swap_child(tree: Any, rng: random.Random) -> Undo:
    parent = rng.choice([tree.first, tree.rest, tree.named, tree.listed])
    name = rng.choice(list(parent._modules))
    old = parent._modules[name]
    parent._modules[name] = rng.choice([type(old)(4, 4) if type(old) is nn.Linear else nn.ReLU(), nn.Tanh(), Block()])
    return lambda: parent._modules.__setitem__(name, old)


def _replace_parameter(tree: Any, rng: random.Random) -> Undo:
    owner = rng.choice([m for m in tree.modules() if type(m) is nn.Linear])
    old = owner.weight
    owner.weight = nn.Parameter(torch.randn(4, rng.choice([4, 4, 5])), requires_grad=rng.random() < 0.5)
    return lambda: setattr(owner, "weight", old)


def _freeze_parameter(tree: Any, rng: random.Random) -> Undo:
    parameter = rng.choice(list(tree.parameters()))
    parameter.requires_grad_(not parameter.requires_grad)
    return lambda: parameter.requires_grad_(not parameter.requires_grad)


def _add_hook(tree: Any, rng: random.Random) -> Undo:
    module = rng.choice(list(tree.modules()))
    add = rng.choice(["register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"])
    return getattr(module, add)(lambda *_: None).remove  # type: ignore[no-any-return]


def _add_global_hook(_tree: Any, rng: random.Random) -> Undo:
    name = rng.choice(["register_module_forward_hook", "register_module_forward_pre_hook"])
    return getattr(nn.modules.module, name)(lambda *_: None).remove  # type: ignore[no-any-return]


def _shadow_forward(tree: Any, rng: random.Random) -> Undo:
    module = rng.choice(list(tree.modules()))
    name = rng.choice(["forward", "_call_impl", "unrelated"])
    module.__dict__[name] = lambda x: x
    return lambda: module.__dict__.pop(name)


def _patch_class(_tree: Any, rng: random.Random) -> Undo:
    cls, name, value = rng.choice(
        [(nn.ReLU, "forward", nn.Tanh.forward), (Block, "scale", 5), (Block, "forward", Tree.forward),
         (nn.Module, "_call_impl", Block.forward), (nn.Linear, "forward", nn.Identity.forward), (nn.Identity, "x", 1)]
    )  # fmt: skip
    had, old = name in cls.__dict__, cls.__dict__.get(name)
    setattr(cls, name, value)
    return lambda: setattr(cls, name, old) if had else delattr(cls, name)


def _patch_code(_tree: Any, rng: random.Random) -> Undo:
    function = rng.choice([nn.ReLU.forward, Block.forward, nn.Linear.forward])
    return _set(function, "__code__", function.__code__.replace(co_name="other"))


def _change_class(tree: Any, rng: random.Random) -> Undo:
    module, other = rng.choice([(tree.first, OtherBlock), (tree.rest[1], nn.ReLU), (tree.rest[2], nn.Identity)])
    return _set(module, "__class__", other)


def _replace_dict(tree: Any, rng: random.Random) -> Undo:
    module = rng.choice(list(tree.modules()))
    old = module.__dict__
    module.__dict__ = new = dict(old)
    if rng.random() < 0.5:
        new["training"] = not new["training"]
    return lambda: setattr(module, "__dict__", old)


def _replace_hooks(tree: Any, rng: random.Random) -> Undo:
    module = rng.choice(list(tree.modules()))
    kind = rng.choice([dict, collections.OrderedDict])
    return _set(module, rng.choice(["_forward_hooks", "_backward_hooks", "_modules"]), kind())


def _mutate_container(tree: Any, rng: random.Random) -> Undo:
    block = tree.first
    if rng.random() < 0.5:
        block.order.append(4)
        return block.order.pop
    old = dict(block.options)
    block.options[rng.choice(["bias", "depth", "more"])] = rng.choice([False, 2, None])

    def undo() -> None:
        block.options.clear()
        block.options.update(old)

    return undo


def _patch_torch(_tree: Any, rng: random.Random) -> Undo:
    owner, name = rng.choice([(torch.nn.functional, "linear"), (torch.nn.functional, "relu"), (torch, "tanh"),
                              (torch._C, "_get_tracing_state"), (module_globals, "torch")])  # fmt: skip
    return _set(owner, name, types.SimpleNamespace())


MUTATIONS: list[Callable[[Any, random.Random], Undo]] = [
    _swap_child, _replace_parameter, _freeze_parameter, _add_hook, _add_global_hook, _shadow_forward, _patch_class,
    _patch_code, _change_class, _replace_dict, _replace_hooks, _mutate_container, _patch_torch,
    lambda tree, rng: _set(rng.choice(list(tree.modules())), "training", rng.random() < 0.5),
    lambda tree, rng: _set(tree.first, "factor", rng.choice([3, 3.0, 4])),
    lambda tree, rng: _set(rng.choice(list(tree.modules())), "training", True),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
def test_memo_agrees_over_random_changes_of_a_module_tree(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    tree = Tree()
    x, odd = torch.randn(2, 4), torch.randn(3, 4)
    twins = _module_twins(tree, x)
    undos: list[Undo] = []
    held = failed = 0
    try:
        for _ in range(25):
            if undos and rng.random() < 0.5:
                undos.pop()()
            else:
                undos.append(rng.choice(MUTATIONS)(tree, rng))
            if rng.random() < 0.1:
                gc.collect()
            outcome = twins.check(
                (tree, (odd if rng.random() < 0.1 else x,), {}), module_globals.__dict__, rng.choice([1, WARM])
            )
            held, failed = held + outcome, failed + (not outcome)
    finally:
        while undos:
            undos.pop()()
    assert twins.check((tree, (x,), {}), module_globals.__dict__, WARM)
    assert failed, "no change was noticed by either"


@pytest.mark.parametrize("mutation", range(len(MUTATIONS)))
def test_memo_agrees_after_one_change_and_its_undoing(mutation: int) -> None:
    x = torch.randn(2, 4)
    for seed in range(4):
        tree = Tree()
        twins = _module_twins(tree, x)
        slots = (tree, (x,), {})
        undo = MUTATIONS[mutation](tree, random.Random(seed))
        try:
            twins.check(slots, module_globals.__dict__, WARM)
        finally:
            undo()
        assert twins.check(slots, module_globals.__dict__, WARM)


def test_another_tree_of_the_same_classes_is_checked_in_full() -> None:
    x = torch.randn(2, 4)
    trees = [Tree() for _ in range(3)]
    twins = _module_twins(trees[0], x)
    trees[2].first.act = nn.Tanh()  # type: ignore[assignment]
    for tree in trees * 4:
        assert twins.check((tree, (x,), {}), module_globals.__dict__) == (tree is not trees[2])
    # After a few changes the slot is no longer a root of the memo; the rest of the memo serves all trees.
    for tree in trees[:2] * 4:
        assert twins.check((tree, (x,), {}), module_globals.__dict__)
    assert "ATTR" in twins.left()


def test_module_call_runs_few_nodes() -> None:
    module, x = nn.Identity(), torch.randn(10)
    handle = godynamo.optimize(module, backend="eager")
    for _ in range(WARM):
        handle(x)
    (entry,) = godynamo.cache_entries(object.__getattribute__(handle, "_godynamo_call"))
    memo = _C.guard_memo(entry)
    assert memo is not None
    assert len(memo["left"]) <= 8 < len(entry.nodes())


def test_a_class_that_has_changed_often_can_be_watched() -> None:
    """torch.fx changes torch.nn.Module for each graph, and CPython 3.13 has versions for a thousand changes."""
    for i in range(1100):
        nn.Module.changed = i
        assert nn.Module.changed == i
    del nn.Module.changed
    test_module_call_runs_few_nodes()


# ---- a program reads an object that the memo may rely on, and then the object changes


class Plain:
    """Instances have inline values."""

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


class PlainToo(Plain):
    pass


class Slotted:
    __slots__ = ("a", "b")


def _function(x: Any) -> Any:
    return x


def _repeat(program: Program, place: Any, value: Any) -> None:
    """Add more checks of one value, so that a memo is worth it."""
    for _ in range(4):
        program.is_(place, value)


def _attr_program(obj: Any, name: str) -> Program:
    p = Program(_function)
    x = p.slot("x")
    p.type_is(x, type(obj))
    value = p.attr(x, name)
    p.is_(value, getattr(obj, name))
    p.has_attr(x, "late", False)
    p.has_attr(x, name, True)
    _repeat(p, value, getattr(obj, name))
    return p


def test_inline_values() -> None:
    marker, other = Slotted(), Slotted()
    obj = Plain(a=1, mark=marker)
    twins = Twins.of(_attr_program(obj, "mark"))
    assert twins.check((obj,), times=WARM)
    assert twins.left() == []
    obj.mark = other
    assert not twins.check((obj,))
    obj.mark = marker
    assert twins.check((obj,), times=WARM)
    del obj.mark
    assert not twins.check((obj,))
    obj.mark = marker
    assert twins.check((obj,), times=WARM)
    obj.late = 1
    assert not twins.check((obj,))
    del obj.late
    assert twins.check((obj,), times=WARM)


def test_inline_values_that_become_a_dict() -> None:
    marker = Slotted()
    obj = Plain(mark=marker)
    twins = Twins.of(_attr_program(obj, "mark"))
    assert twins.check((obj,), times=WARM)
    obj.__dict__["late"] = 1
    assert not twins.check((obj,))
    obj.__dict__.pop("late")
    assert twins.check((obj,), times=WARM)
    obj.__dict__ = {"mark": 1}
    assert not twins.check((obj,))
    obj.__dict__ = {"mark": marker}
    assert twins.check((obj,), times=WARM)


def test_class_of_a_slot_assigned() -> None:
    marker = Slotted()
    obj = Plain(mark=marker)
    twins = Twins.of(_attr_program(obj, "mark"))
    assert twins.check((obj,), times=WARM)
    obj.__class__ = PlainToo
    assert not twins.check((obj,))
    obj.__class__ = Plain
    assert twins.check((obj,), times=WARM)


def test_a_new_object_at_the_address_of_a_dead_one() -> None:
    marker = Slotted()
    twins = Twins.of(_attr_program(Plain(mark=marker), "mark"))
    addresses = collections.Counter()
    for i in range(60):
        obj = Plain(mark=marker) if i % 3 else Plain(mark=i, a=2)
        addresses[id(obj)] += 1
        assert twins.check((obj,)) == bool(i % 3)
        if i % 5 == 4:
            obj.__dict__["b"] = 1
            twins.check((obj,))
        del obj
    assert max(addresses.values()) > 1, "no address was used again"


def test_slots_and_their_class() -> None:
    obj, marker = Slotted(), Plain()
    obj.a = marker
    p = Program(_function)
    x = p.slot("x")
    p.type_is(x, Slotted)
    offset = 16
    p.nodes.append(("SLOT", 0, p.nregs, x.reg, len(p.parts), p.const("a"), offset))
    p.nregs += 1
    value = type(x)("x.a", p.nregs - 1)
    _repeat(p, value, marker)
    p.type_is(value, Plain)
    twins = Twins.of(p)
    assert twins.check((obj,), times=WARM)
    assert twins.left() == []
    obj.a = Plain()
    assert not twins.check((obj,))
    obj.a = marker
    assert twins.check((obj,), times=WARM)
    marker.__class__ = PlainToo
    assert not twins.check((obj,))
    marker.__class__ = Plain
    assert twins.check((obj,), times=WARM)
    member = Slotted.__dict__["a"]
    Slotted.a = property(lambda self: 1)  # type: ignore[assignment]
    try:
        assert not twins.check((obj,))
    finally:
        Slotted.a = member
    assert twins.check((obj,), times=WARM)


def test_cells_hold_another_object_at_the_same_address() -> None:
    """The memo compares only the address of a cell's contents, and an equal address does not prove an equal number."""
    cell = types.CellType(10**9)

    def inner(x: Any) -> Any:
        return x, cell

    p = Program(inner)
    contents = p.cell("cell")
    p.type_is(contents, int)
    p.equals(contents, 10**9)
    for _ in range(6):
        p.type_is(contents, int)
    twins = Twins.of(p)
    assert twins.check((1, cell), times=WARM)
    reused = 0
    for i in range(1, 200):
        before = id(cell.cell_contents)
        cell.cell_contents = None
        cell.cell_contents = 10**9 + i % 2
        reused += id(cell.cell_contents) == before
        assert twins.check((1, cell)) == (i % 2 == 0)
    assert reused, "no address was used again"
    del cell.cell_contents
    assert not twins.check((1, cell))


def test_items_of_lists_tuples_and_dicts() -> None:
    deep = Slotted()
    data: dict[str, Any] = {"list": [1, [deep, 2]], "tuple": (deep, 3), "dict": {"k": deep}}
    p = Program(_function)
    x = p.slot("x")
    p.type_is(x, dict)
    p.keys(x, ("list", "tuple", "dict"))
    listed = p.item(x, "list")
    p.type_is(listed, list)
    p.length(listed, 2)
    inner = p.index(listed, -1)
    p.type_is(inner, list)
    p.length(inner, 2)
    p.is_(p.index(inner, 0), deep)
    pair = p.item(x, "tuple")
    p.type_is(pair, tuple)
    p.length(pair, 2)
    p.is_(p.index(pair, 0), deep)
    p.equals(p.index(pair, 1), 3)
    mapping = p.item(x, "dict")
    p.type_is(mapping, dict)
    p.contains(mapping, "k", True)
    p.contains(mapping, "absent", False)
    p.is_(p.item(mapping, "k"), deep)
    twins = Twins.of(p)
    slots = (data,)
    assert twins.check(slots, times=WARM)
    assert twins.left() == []
    changes: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: data["list"].append(3), lambda: data["list"].pop()),
        (lambda: data["list"][1].insert(0, 0), lambda: data["list"][1].pop(0)),
        (lambda: data["list"].__setitem__(1, (deep, 2)), lambda: data["list"].__setitem__(1, [deep, 2])),
        (lambda: data["list"].clear(), lambda: data["list"].extend([1, [deep, 2]])),
        (lambda: data.update(tuple=(deep, 4)), lambda: data.update(tuple=(deep, 3))),
        (lambda: data["dict"].update(absent=1), lambda: data["dict"].pop("absent")),
        (lambda: data["dict"].clear(), lambda: data["dict"].update(k=deep)),
        (lambda: data.update(more=1), lambda: data.pop("more")),
    ]
    for change, undo in changes:
        twins = Twins.of(_same_program(p))
        assert twins.check(slots, times=WARM)
        change()
        assert not twins.check(slots)
        undo()
        assert twins.check(slots, times=WARM)
    data["dict"] = {"k": deep}
    assert twins.check(slots, times=WARM)


def _same_program(p: Program) -> Any:
    spec = p.spec()
    return types.SimpleNamespace(spec=lambda: spec)


def test_order_of_an_ordered_dict() -> None:
    ordered = collections.OrderedDict(a=1, b=2)
    p = Program(_function)
    x = p.slot("x")
    p.type_is(x, collections.OrderedDict)
    p.keys(x, ("a", "b"))
    for _ in range(6):
        p.contains(x, "a", True)
    twins = Twins.of(p)
    assert twins.check((ordered,), times=WARM)
    ordered.move_to_end("a")
    assert not twins.check((ordered,))
    ordered.move_to_end("b")
    assert twins.check((ordered,), times=WARM)


def test_fields_of_functions() -> None:
    def target(a: Any, b: Any = 5, *, c: Any = 6) -> Any:
        return a

    p = Program(_function)
    x = p.slot("x")
    p.type_is(x, types.FunctionType)
    code = p.helper(x, "{}.__code__", "FUNC_FIELD", 0)
    p.is_(code, target.__code__)
    defaults = p.helper(x, "{}.__defaults__", "FUNC_FIELD", 2)
    p.type_is(defaults, tuple)
    p.length(defaults, 1)
    p.equals(p.index(defaults, 0), 5)
    kwdefaults = p.helper(x, "{}.__kwdefaults__", "FUNC_FIELD", 3)
    p.type_is(kwdefaults, dict)
    p.equals(p.item(kwdefaults, "c"), 6)
    twins = Twins.of(p)
    assert twins.check((target,), times=WARM)
    for name, value in (("__defaults__", (7,)), ("__defaults__", (5, 5)), ("__defaults__", None),
                        ("__kwdefaults__", {"c": 7}), ("__kwdefaults__", None),
                        ("__code__", target.__code__.replace(co_name="o"))):  # fmt: skip
        twins = Twins.of(_same_program(p))
        assert twins.check((target,), times=WARM)
        undo = _set(target, name, value)
        assert not twins.check((target,))
        undo()
        assert twins.check((target,), times=WARM)
    kw = target.__kwdefaults__
    kw["c"] = 8
    assert not twins.check((target,))
    kw["c"] = 6
    assert twins.check((target,), times=WARM)


def test_attributes_of_classes_and_their_bases() -> None:
    class Base:
        value = Plain()

    class Derived(Base):
        pass

    p = Program(_function)
    x = p.slot("x")
    p.type_is(x, Derived)
    kind = p.type_of(x)
    p.is_(kind, Derived)
    value = p.type_attr(kind, "value")
    _repeat(p, value, Base.value)
    p.type_has_attr(kind, "more", False)
    p.has_attr(x, "value", False)
    obj = Derived()
    twins = Twins.of(p)
    assert twins.check((obj,), times=WARM)
    assert twins.left() == []
    for cls, name in ((Base, "value"), (Derived, "value"), (Derived, "more"), (Base, "more")):
        had, old = name in cls.__dict__, cls.__dict__.get(name)
        setattr(cls, name, 1)
        assert not twins.check((obj,))
        setattr(cls, name, old) if had else delattr(cls, name)
        assert twins.check((obj,), times=WARM)
    Derived.__bases__ = (type("Empty", (), {}),)
    assert not twins.check((obj,))
    Derived.__bases__ = (Base,)
    assert twins.check((obj,), times=WARM)
    obj.value = 1  # type: ignore[assignment]
    assert not twins.check((obj,))


def test_modules_and_globals() -> None:
    module, marker = types.ModuleType("m"), Slotted()
    module.mark = marker  # type: ignore[attr-defined]
    names: dict[str, Any] = {"m": module, "__builtins__": __builtins__}
    p = Program(_function)
    m = p.global_("m")
    p.is_(m, module)
    mark = p.helper(m, "{}.mark", "MODULE_ATTR", p.const("mark"), p.cache())
    _repeat(p, mark, marker)
    twins = Twins.of(p)
    assert twins.check((1,), names, WARM)
    assert twins.left() == []
    names["unrelated"] = 1
    assert twins.check((1,), names, WARM)
    module.mark = 1  # type: ignore[attr-defined]
    assert not twins.check((1,), names)
    module.mark = marker  # type: ignore[attr-defined]
    assert twins.check((1,), names, WARM)
    assert twins.check((1,), dict(names), WARM)
    names["m"] = types.ModuleType("m")
    assert not twins.check((1,), names)
    names["m"] = module
    assert twins.check((1,), names)


def test_a_watched_object_that_dies_ends_the_entry() -> None:
    class Temporary(Plain):
        pass

    obj = Temporary(mark=1)
    twins = Twins.of(_attr_program(obj, "mark"))
    assert twins.check((obj,), times=WARM)
    del obj, Temporary
    gc.collect()
    assert not twins.with_memo.valid
    assert not twins.check((Plain(mark=1),))


def test_what_keeps_changing_is_given_up() -> None:
    """A counter changes in the dict that the program reads: after a few rounds a node reads it, not the memo."""
    marker = Slotted()
    names: dict[str, Any] = {"mark": marker, "count": 0, "__builtins__": __builtins__}
    obj = Plain(mark=marker)
    p = _attr_program(obj, "mark")
    _repeat(p, p.global_("mark"), marker)
    twins = Twins.of(p)
    for i in range(20):
        names["count"] = i
        assert twins.check((obj,), names)
    assert twins.left().count("DICT_GET") == 1
    assert "ATTR" not in twins.left()


def _two(x: Any, y: Any) -> Any:
    return x, y


def _calling(predicate: Callable[[Any], bool], *constants: Any) -> Any:
    """Return an entry that reads attributes below slot x, and calls a predicate on slot y and on the constants."""
    p = Program(_two)
    x, y = p.slot("x"), p.slot("y")
    p.check("is", "PY_CHECK", y, p.const(predicate, STRONG))
    for at, value in enumerate(constants):
        p.check(
            f"is {at}",
            "PY_CHECK",
            p.fetch(x, f"constant {at}", "CONST", p.const(value, STRONG)),
            p.const(predicate, STRONG),
        )
    place = x
    for _ in range(7):
        p.type_is(place, Plain)
        for name in ("late", "later", "latest"):
            p.has_attr(place, name, False)
        place = p.attr(place, "next")
    p.equals(place, 7)
    return p.entry()


def _chain(end: Any) -> Any:
    for _ in range(6):
        end = Plain(next=end)
    return end


def test_a_program_that_calls_python_has_a_memo_and_calls_once_each_time() -> None:
    calls = []

    def predicate(value: Any) -> bool:
        calls.append(value)
        return bool(value != "no")

    holder = Plain(next=_chain(7))
    entry = _calling(predicate)
    for i in range(WARM):
        assert _C.guard_check(entry, (holder, i)) == (True, None)
    memo = _C.guard_memo(entry)
    assert memo is not None
    assert "PY_CHECK" in [entry.nodes()[i][0] for i in memo["left"]]
    assert calls == list(range(WARM))
    assert not _C.guard_check(entry, (holder, "no"))[0]
    assert calls.pop() == "no"
    holder.next.next.next.next = _chain(8).next.next.next
    assert not _C.guard_check(entry, (holder, 5))[0]


def test_checks_of_constants_call_once_and_before_the_memo_is_compared() -> None:
    bad: list[Any] = []
    calls: list[Any] = []
    holder = Plain(next=_chain(7))

    def predicate(value: Any) -> bool:
        calls.append(value)
        return value not in bad

    entry = _calling(predicate, "first", "second")
    for i in range(WARM):
        assert _C.guard_check(entry, (holder, i)) == (True, None)
    assert _C.guard_memo(entry) is not None
    calls.clear()
    assert _C.guard_check(entry, (holder, 5)) == (True, None)
    assert calls == ["first", "second", 5]
    bad.append("second")
    for _ in range(2):
        held, part = _C.guard_check(entry, (holder, 6))
        assert not held and entry.parts[part] == "is 1"
    bad[:] = ["second", 7]
    held, part = _C.guard_check(entry, (holder, 7))
    assert not held and entry.parts[part] == "is", "the first part in the program's order"
    bad.clear()
    calls.clear()
    for i in range(WARM):
        assert _C.guard_check(entry, (holder, i)) == (True, None)
    assert calls[-3:] == ["first", "second", WARM - 1]
    holder.next.next.next.next = _chain(8).next.next.next
    assert not _C.guard_check(entry, (holder, 5))[0]


@pytest.mark.parametrize("constants", [(), ("constant", "other")])
def test_what_a_call_changes_of_what_the_memo_rests_on_is_seen(constants: tuple[str, ...]) -> None:
    holder = Plain(next=_chain(7))
    behaviour: list[Callable[[], None]] = []

    def predicate(_: Any) -> bool:
        for act in behaviour:
            act()
        return True

    def other_end() -> None:
        holder.next = _chain(8)
        gc.collect()

    entry = _calling(predicate, *constants)
    for i in range(WARM):
        assert _C.guard_check(entry, (holder, i)) == (True, None)
    assert _C.guard_memo(entry) is not None
    behaviour.append(other_end)
    assert not _C.guard_check(entry, (holder, 0))[0]
    # The call itself evaluates the entry and causes another memo to be recorded.
    behaviour[:] = [lambda: setattr(holder, "next", _chain(7))]
    for _ in range(8):
        assert _C.guard_check(entry, (holder, 1)) == (True, None)
    depth = [0]

    def again() -> None:
        depth[0] += 1
        if depth[0] < 3:
            holder.next = _chain(7)
            assert _C.guard_check(entry, (holder, 1)) == (True, None)
        depth[0] -= 1

    behaviour[:] = [again]
    for _ in range(8):
        assert _C.guard_check(entry, (holder, 1)) == (True, None)
    behaviour[:] = [entry.invalidate]
    assert not _C.guard_check(entry, (holder, 1))[0]


def _by_mode(x: Any, mode: str) -> Any:
    return x + len(mode)


def test_entries_taken_in_turn_are_each_found_and_kept_in_order_of_use() -> None:
    """After each entry, the cache first tries the one that followed it last time.

    Results and eviction order do not change.
    """
    f, x = godynamo.optimize(_by_mode, backend="eager"), torch.randn(3)
    modes = ["m" * (i + 1) for i in range(5)]
    rng = random.Random(1)
    for mode in modes:
        f(x, mode)
    of = {entry.text: mode for entry, mode in zip(godynamo.cache_entries(f), reversed(modes), strict=True)}
    for calls in (modes * 3, modes[::-1] * 2, modes[:1] * 4, rng.choices(modes, k=40)):
        for mode in calls:
            before = {entry.text: entry.hits for entry in godynamo.cache_entries(f)}
            assert torch.equal(f(x, mode), x + len(mode))
            entries = godynamo.cache_entries(f)
            assert of[entries[0].text] == mode
            served = [of[entry.text] for entry in entries if entry.hits != before[entry.text]]
            assert served == [mode]
        recent = list(dict.fromkeys(reversed(calls)))
        assert [of[entry.text] for entry in godynamo.cache_entries(f)][: len(recent)] == recent
