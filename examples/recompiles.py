"""Two functions that are translated again when a number changes: for each value, and for the second value only.

GODYNAMO_LOGS=recompiles python examples/recompiles.py
"""

import warnings

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402

import godynamo  # noqa: E402


@godynamo.optimize
def noisy(x: torch.Tensor, step: int) -> torch.Tensor:
    """Each value of ``step`` needs a translation, since it decides how many operations there are."""
    for _ in range(step):
        x = x + torch.sin(x)
    return x


@godynamo.optimize
def quiet(x: torch.Tensor, step: int) -> torch.Tensor:
    """The first value of ``step`` is a constant. The translation for the second one serves all others."""
    return x + torch.sin(x) / (step + 1)


def main() -> None:
    """Run four steps of each function."""
    x = torch.linspace(0, 1, 5)
    for step in range(4):
        noisy(x, step)
        quiet(x, step)
    for name, f in (("noisy", noisy), ("quiet", quiet)):
        print(name, godynamo.cache_stats(f))


if __name__ == "__main__":
    main()
