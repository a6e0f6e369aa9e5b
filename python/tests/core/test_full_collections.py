"""Full garbage collections wait while a function is translated, and are as before afterwards."""

from __future__ import annotations

import gc
import os
import threading

import pytest
import torch
from torch import nn

import godynamo


@pytest.fixture
def collections():
    """Yield a list of the generations of the collections that ran, oldest first."""
    seen: list[int] = []

    def note(phase, info):
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def full_collection_due():
    """Bring the collector to a state in which the next young collections lead to a full one.

    CPython then requires two things. Generation 2 is past its threshold of 10. And the objects that have survived two
    younger collections since the last full one are more than a quarter of those that survived the full one.
    """
    gc.collect()
    kept = [[] for _ in range(len(gc.get_objects()) // 2)]
    for _ in range(gc.get_threshold()[2] + 2):
        gc.collect(1)
    return kept


def many_objects(x):
    """A backend that makes enough objects for several collections of generation 1, and one of generation 2."""
    return [[] for _ in range(40_000)]


def backend_of_many_objects(gm, inputs):
    many_objects(gm)
    return gm.forward


def test_a_full_collection_that_is_due_runs_without_a_translation(collections):
    kept = full_collection_due()
    collections.clear()
    many_objects(None)
    assert 2 in collections, "the fixture does not bring the collector to a full collection"
    assert kept


def test_no_full_collection_runs_during_a_translation(collections):
    fn = godynamo.optimize(lambda x: x + 1, backend=backend_of_many_objects)
    x = torch.ones(2)
    kept = full_collection_due()
    collections.clear()
    assert torch.equal(fn(x), x + 1)
    assert collections, "no collection ran at all: the test shows nothing"
    assert 2 not in collections
    many_objects(None)
    assert 2 in collections, "a full collection that was due does not run after the translation"
    assert kept


def test_first_call_of_a_model_has_no_full_collection(collections):
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).eval()
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        expected = model(x)
        optimized = godynamo.optimize(model)
        kept = full_collection_due()
        collections.clear()
        assert torch.equal(optimized(x), expected)
    assert 2 not in collections
    assert kept


def test_gc_collect_of_the_users_own_runs_at_once(collections):
    garbage_freed = []

    class Node:
        def __del__(self):
            garbage_freed.append(1)

    def backend(gm, inputs):
        node = Node()
        node.me = node
        del node
        assert gc.collect() >= 1
        assert garbage_freed
        return gm.forward

    threshold = gc.get_threshold()
    collections.clear()
    fn = godynamo.optimize(lambda x: x * 2, backend=backend)
    assert torch.equal(fn(torch.ones(3)), torch.full((3,), 2.0))
    assert 2 in collections
    assert gc.get_threshold() == threshold


def test_a_translation_that_raises_ends_the_wait(collections):
    def backend(gm, inputs):
        raise RuntimeError("this backend takes nothing")

    fn = godynamo.optimize(lambda x: x - 1, backend=backend)
    with pytest.raises(Exception, match="this backend takes nothing"):
        fn(torch.ones(2))
    kept = full_collection_due()
    collections.clear()
    many_objects(None)
    assert 2 in collections
    assert kept


@pytest.mark.parametrize("from_thread", [False, True])
def test_a_child_forked_during_a_translation_collects(from_thread):
    """A child runs full collections as before, whether the backend's own thread or another one forks it."""
    exit_codes: list[int] = []

    def fork_and_look():
        pid = os.fork()
        if pid == 0:
            seen = []
            gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
            kept = full_collection_due()
            seen.clear()
            if from_thread:  # no frame of the translation is left in this child
                many_objects(None)
                os._exit(0 if 2 in seen and kept else 3)
            os.environ["GODYNAMO_TEST_CHILD"] = "1"
            return
        exit_codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    def backend(gm, inputs):
        if from_thread:
            thread = threading.Thread(target=fork_and_look)
            thread.start()
            thread.join()
        else:
            fork_and_look()
        return gm.forward

    os.environ.pop("GODYNAMO_TEST_CHILD", None)
    fn = godynamo.optimize(lambda x: x + 3, backend=backend)
    result = fn(torch.ones(2))
    if os.environ.get("GODYNAMO_TEST_CHILD"):  # the forked child, after it has returned from the translation
        seen = []
        gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
        kept = full_collection_due()
        seen.clear()
        many_objects(None)
        os._exit(0 if 2 in seen and kept and torch.equal(result, torch.full((2,), 4.0)) else 4)
    assert exit_codes == [0]
    assert torch.equal(result, torch.full((2,), 4.0))
