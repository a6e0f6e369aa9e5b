"""Times the sides of a benchmark in turn, and computes the best rounds and ratios.

On a shared machine the mean depends on other programs' load. So the best rounds of the sides are compared, and the
sides take turns within a round, so that a slow minute affects all of them. If a round is a call of many milliseconds,
every round may have other load: then the sides are compared round by round, and a ratio comes with its interval.
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
    """Return how many calls fill a round. run(n) makes n calls and returns the seconds that they took."""
    n = 1
    while True:
        taken = run(n)
        if taken >= seconds / 2 or n >= 10_000_000:
            return max(1, round(n * seconds / taken)) if taken else n
        n *= 2


def rounds_in_turn(
    sides: Mapping[str, Callable[[int], float]], rounds: int, seconds: float = ROUND_SECONDS
) -> dict[str, list[float]]:
    """Time all sides in turn, one round of each. The order of the sides changes from round to round.

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
    """Time all sides with rounds_in_turn; return the Figure of each side."""
    return {name: figure(taken) for name, taken in rounds_in_turn(sides, rounds, seconds).items()}


@dataclass(frozen=True)
class Ratio:
    """One side's time relative to another's: the median of the rounds' ratios and its interval.

    The interval contains the true median in at least 95 of 100 runs. It is computed from order statistics, whose only
    assumption about the noise is that rounds are independent.
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
    outside, below = 0, 0.0  # rounds outside the interval at either end, and the share of runs in which it is too high
    while (below := below + math.comb(n, outside) / 2**n) <= 0.025:
        outside += 1
    outside = max(outside - 1, 0)
    return Ratio(statistics.median(ratios), ratios[outside], ratios[n - 1 - outside])


def compare(figures: Mapping[str, Figure], base: str = EAGER) -> dict[str, dict[str, float]]:
    """Return each side's µs per call, its difference to base in µs and its ratio to base."""
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
    """Run an action once; return its seconds."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
