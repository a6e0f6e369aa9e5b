"""A function that is translated again and again, and what to do about it.

GODYNAMO_LOGS=recompiles python examples/recompiles.py
"""

import warnings

# torch warns at its import where NumPy is not installed; nothing here needs it.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402

import godynamo  # noqa: E402


@godynamo.optimize
def noisy(x: torch.Tensor, step: int) -> torch.Tensor:
    """Each number is a case of its own: the translation has it as a constant."""
    return x + torch.sin(x) / (step + 1)


@godynamo.optimize
def quiet(x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """What varies is a tensor: one translation serves every step."""
    return x + torch.sin(x) / (step + 1)


def main() -> None:
    """Four steps of each."""
    x = torch.linspace(0, 1, 5)
    for step in range(4):
        a, b = noisy(x, step), quiet(x, torch.tensor(step))
        assert torch.equal(a, b)
    for name, f in (("noisy", noisy), ("quiet", quiet)):
        print(name, godynamo.cache_stats(f))


if __name__ == "__main__":
    main()
