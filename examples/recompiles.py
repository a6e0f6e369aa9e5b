"""A function that is translated again for each value of an argument, and a version that is translated once.

GODYNAMO_LOGS=recompiles python examples/recompiles.py
"""

import warnings

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402

import godynamo  # noqa: E402


@godynamo.optimize
def noisy(x: torch.Tensor, step: int) -> torch.Tensor:
    """Each value of ``step`` needs a translation, in which the value is a constant."""
    return x + torch.sin(x) / (step + 1)


@godynamo.optimize
def quiet(x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """One translation serves every step, since ``step`` is a tensor."""
    return x + torch.sin(x) / (step + 1)


def main() -> None:
    """Run four steps of each function."""
    x = torch.linspace(0, 1, 5)
    for step in range(4):
        a, b = noisy(x, step), quiet(x, torch.tensor(step))
        assert torch.equal(a, b)
    for name, f in (("noisy", noisy), ("quiet", quiet)):
        print(name, godynamo.cache_stats(f))


if __name__ == "__main__":
    main()
