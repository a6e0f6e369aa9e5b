"""Statistics of the benchmark: rounds in turn, best of many, ratios.

On a shared machine the mean depends on the load of others. The best round of each side is compared, and the sides take
turns within a round, so that a slow minute hits all of them. If a round is one call of many milliseconds, there is no
quiet one to wait for: those are compared round by round, and a ratio comes with its interval.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

EAGER = "eager"

# Long enough to hide the clock's resolution and the loop's overhead, short enough to fit between two interruptions by
# the scheduler.
ROUND_SECONDS = 0.004


@dataclass(frozen=True)
class Figure:
    """Seconds per call of one side, over all rounds."""

    best: float
    median: float
    spread: float  # distance of the upper quartile from the best, as a share of the best
    rounds: int


def figure(samples: Sequence[float]) -> Figure:
    """Summarize the rounds of one side. Raises ValueError if there are none."""
    if not samples:
        raise ValueError("no rounds")
    ordered = sorted(samples)
    best = ordered[0]
    upper = ordered[(3 * (len(ordered) - 1) + 2) // 4]
    return Figure(best, statistics.median(ordered), (upper - best) / best if best else 0.0, len(ordered))


def calls_per_round(run: Callable[[int], float], seconds: float = ROUND_SECONDS) -> int:
    """Return how many calls fill a round; run(n) makes n calls and returns the seconds they took."""
    n = 1
    while True:
        taken = run(n)
        if taken >= seconds / 2 or n >= 10_000_000:
            return max(1, round(n * seconds / taken)) if taken else n
        n *= 2


def rounds_in_turn(
    sides: Mapping[str, Callable[[int], float]], rounds: int, seconds: float = ROUND_SECONDS
) -> dict[str, list[float]]:
    """Time all sides, one round of each after the other; the order rotates with the round.

    sides: name → run(n). Returns seconds per call, round by round.
    """
    counts = {name: calls_per_round(run, seconds) for name, run in sides.items()}
    samples: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for i in range(rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            samples[name].append(sides[name](counts[name]) / counts[name])
    return samples


def in_turn(
    sides: Mapping[str, Callable[[int], float]], rounds: int, seconds: float = ROUND_SECONDS
) -> dict[str, Figure]:
    """Return the figures of rounds_in_turn."""
    return {name: figure(taken) for name, taken in rounds_in_turn(sides, rounds, seconds).items()}


@dataclass(frozen=True)
class Ratio:
    """One side's time relative to another's: the median of the rounds' ratios and its interval.

    The interval contains the true median in at least 95 of 100 runs (order statistics: only independent rounds are
    assumed of the noise).
    """

    median: float
    low: float
    high: float


def ratio(samples: Sequence[float], base: Sequence[float]) -> Ratio:
    """Compare two sides round by round. Raises ValueError without rounds.

    With fewer than 6 rounds the interval spans all of them, with lower confidence.
    """
    ratios = sorted(a / b for a, b in zip(samples, base, strict=True))
    n = len(ratios)
    if not n:
        raise ValueError("no rounds")
    outside, below = 0, 0.0  # rounds that may be left out on each side, and the share of runs that this misses
    while (below := below + math.comb(n, outside) / 2**n) <= 0.025:
        outside += 1
    outside = max(outside - 1, 0)
    return Ratio(statistics.median(ratios), ratios[outside], ratios[n - 1 - outside])


def compare(figures: Mapping[str, Figure], base: str = EAGER) -> dict[str, dict[str, float]]:
    """Return each side in µs per call, the difference to base in µs and the ratio to base."""
    reference = figures[base].best
    return {
        name: {
            "us": taken.best * 1e6,
            "median_us": taken.median * 1e6,
            "spread": taken.spread,
            "over_eager_us": (taken.best - reference) * 1e6,
            "ratio": taken.best / reference,
        }
        for name, taken in figures.items()
    }


def once(action: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
