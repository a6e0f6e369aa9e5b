"""The examples of the shape rules (fxgraph/shapes/testdata/examples.txt) contain torch's results."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("shape_examples", ROOT / "scripts/shape_examples.py")
shape_examples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shape_examples)


def test_the_examples_are_torchs():
    text = shape_examples.EXAMPLES.read_text()
    assert shape_examples.filled(text) == text


def test_a_wrong_example_is_found():
    assert shape_examples.filled("torch.relu(float32[2]) = int64[3]\n") == "torch.relu(float32[2]) = float32[2]\n"


@pytest.mark.parametrize("call", ["float32[2].view(3)", "torch.no_such_operation(float32[2])"])
def test_what_raises_gives_nothing(call):
    assert shape_examples.result_of(call) == "nothing"
