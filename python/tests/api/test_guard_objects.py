"""godynamo.guards(f): each guard with kind, place, words and line; as executable text and as a tree by place."""

import json

import pytest
import torch

import godynamo
from godynamo import config
from godynamo._explain import guard_words

SCALE = {"by": 3}


def use(x, n, items):
    y = x * n
    return y + items[0] * SCALE["by"]


def line_of(fn, offset):
    return (__file__, fn.__code__.co_firstlineno + offset)


@pytest.fixture
def entry():
    f = godynamo.optimize(use)
    f(torch.ones(2), 2, [1.5])
    [entry] = godynamo.guards(f)
    return entry


def by_name(entry, name):
    return {g.kind: g for g in entry.guards if g.name == name}


def test_a_guard_has_kind_place_words_and_line(entry):
    n = by_name(entry, "n")
    assert set(n) == {"TYPE_MATCH", "EQUALS_MATCH"}
    assert (n["TYPE_MATCH"].words, n["EQUALS_MATCH"].words) == ("type(n) is int", "n == 2")
    assert n["EQUALS_MATCH"].text == "n == 2" and n["EQUALS_MATCH"].create_fn_name == "EQUALS_MATCH"
    assert n["EQUALS_MATCH"].source == "LOCAL" and not n["EQUALS_MATCH"].is_nn_module
    assert n["EQUALS_MATCH"].line == line_of(use, 1)
    scale = by_name(entry, "G['SCALE']['by']")
    assert scale["EQUALS_MATCH"].words == "SCALE['by'] == 3" and scale["EQUALS_MATCH"].source == "GLOBAL"
    assert scale["EQUALS_MATCH"].line == line_of(use, 2)
    assert by_name(entry, "x")["TENSOR_MATCH"].words == "type(x) is Tensor"


def test_every_condition_of_the_text_is_a_guard(entry):
    assert {g.text for g in entry.guards} == {part for part, _ in entry.parts}
    assert entry.text == " and ".join(part for part, _ in entry.parts)
    assert (entry.function, entry.file, entry.line) == ("use", __file__, use.__code__.co_firstlineno)
    assert entry.hits == 1 and entry.valid


def test_the_tree_nests_places(entry):
    tree = entry.tree()
    names = {child.name: child for child in tree}
    assert {"x", "n", "items", "SCALE"} <= set(names)
    [first] = names["items"].children
    assert first.name == "items[0]" and {g.kind for g in first.guards} == {"TYPE_MATCH", "EQUALS_MATCH"}
    assert [c.name for c in names["SCALE"]] == ["SCALE['by']"]
    text = str(tree)
    assert "└─ items[0]\n   ├─ TYPE_MATCH: type(items[0]) is float" in text
    assert text.count("\n") + 1 >= len(entry.guards)


def test_a_modules_parameters_hang_below_it():
    net = godynamo.optimize(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    net(torch.ones(2))
    found = [g for e in godynamo.guards(net) for g in e.guards]
    assert any(g.is_nn_module for g in found)
    weights = [g for g in found if g.kind == "TENSOR_MATCH" and g.name.endswith("['weight']")]
    assert weights and all(g.line is not None for g in weights)
    tree = next(t for e in godynamo.guards(net) if "weight" in str(t := e.tree()))
    path, at = [], next(c for c in tree if c.name == "self")
    while at.children and "weight" not in at.name:
        path.append(at.name)
        at = next(c for c in at.children if "weight" in str(c))
    assert path[0] == "self" and at.name.startswith(path[-1]) and len(path) >= 3


def test_all_of_it_as_plain_data(entry):
    data = json.loads(json.dumps(entry.to_dict()))
    assert {"name": "n", "kind": "EQUALS_MATCH", "words": "n == 2"}.items() <= next(
        g for g in data["guards"] if g["text"] == "n == 2"
    ).items()
    tree = json.loads(json.dumps(entry.tree().to_dict()))
    assert tree["name"] == "" and {c["name"] for c in tree["children"]} >= {"x", "n"}


def test_what_is_asked_of_a_tensor_in_words():
    def f(x):
        return x + 1

    with config.patch(tensor_guards="full"):
        g = godynamo.optimize(f)
        g(torch.ones(2, 3, requires_grad=True))
    [entry] = godynamo.guards(g)
    [guard] = [x for x in entry.guards if x.kind == "TENSOR_MATCH"]
    assert guard.words == "type(x) is Tensor, float32, cpu, sizes (2, 3), strides (3, 1), requires_grad"


def test_an_entry_that_is_gone_still_has_its_guards(entry):
    f = godynamo.optimize(use)
    f(torch.ones(2), 2, [1.5])
    entries = godynamo.cache_entries(f)
    godynamo.reset()
    for e in entries:
        assert not e.valid and e.text
        from godynamo._explain import guard_objects

        assert any(g.words == "n == 2" for g in guard_objects.of_entry(e).guards)


def test_a_callable_that_is_not_optimized_has_none():
    with pytest.raises(TypeError, match="optimized callable"):
        godynamo.guards(use)


WORDS = {
    "___guarded_code.valid": "what the entry rests on is alive",
    "___check_type_id(x, %INT)": "type(x) is int",
    "___check_obj_id(x, %NONE)": "x is None",
    "not ___hasattr(self, 'forward')": "'forward' not in vars(self)",
    "not ___type_hasattr(___object(5, '___type_Net'), 'b')": "not hasattr(Net, 'b')",
    "___loads(___type_lookup(___object(5, '___type_Net'), 'call'))": "Net.call can be read",
    "not ___dict_contains('a', self._buffers)": "'a' not in self._buffers",
    "not ___dict_contains('p.py f:1\\np.py g.<locals>.h:5 at 9\\n in p.py f:1 at 8 is True', "
    "___object(5, '___predictions').refuted)": "the branch on data in g.<locals>.h is predicted to be True",
    "not ___dict_contains('a b.py RAdam.step:5 at 9 is False', ___object(5, '___predictions').refuted)": (
        "the branch on data in RAdam.step is predicted to be False"
    ),
    "___dict_keys(d) == ('a',)": "the keys of d are ('a',)",
    "___param_names(m) == ('w',)": "the parameter names of m are ('w',)",
    "not ___is_grad_enabled()": "grad mode is off",
    "___object(7, '== {1, 2}')(x)": "x == {1, 2}",
    "___check_tensors(x, y[0]) and ___check_distinct(x, y[0])": (
        "the metadata of x, y[0] is as it was and x, y[0] are distinct objects"
    ),
    "___cells['n'].cell_contents == 3": "n == 3",
    "___object(5, '___sys_modules')['math'].pi == 3.14": "math.pi == 3.14",
    "___equals(x, nan)": "x == nan",
    "___cell_empty(___cells['n'])": "the cell of n has no value yet",
    "L['___stack1'] == 2": "stack[1] == 2",
    "___tuple_iterator_len(it) == 2": "len(list(it)) == 2",
    "___mro_class(___object(5, '___type_A'), 1) is not ___referent(r)": "A.__mro__[1] is not r()",
    "no Python (": "no Python (",
}


@pytest.mark.parametrize("text", WORDS)
def test_words(text):
    objects = {1: int}
    given = text.replace("%INT", "1").replace("%NONE", str(id(None)))
    assert guard_words.words(given, objects.get) == WORDS[text]


@pytest.mark.parametrize(
    ("name", "above"),
    [
        ("x", None),
        ("x.weight", "x"),
        ("x.weight.shape", "x.weight"),
        ("self._modules['a']", "self._modules"),
        ("G['torch']", None),
        ("G['torch'].nn", "G['torch']"),
        ("___cells['n'].cell_contents", None),
        ("___type_lookup(___object(5, '___type_A'), 'f')", "___object(5, '___type_A')"),
        ("___object(5, '___type_A')", None),
        ("not ( Python", None),
    ],
)
def test_what_a_place_is_read_from(name, above):
    assert guard_words.base(name) == above


def test_a_guard_text_is_taken_apart_where_and_joins_it():
    assert guard_words.parts("a == '1 and 23é' and (b or c) and not d") == ["a == '1 and 23é'", "(b or c)", "not d"]
    assert guard_words.parts("a") == ["a"]
