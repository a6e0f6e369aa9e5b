"""Formats a benchmark result as a Markdown table, and checks it against the goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    """An upper bound on the figure at `path` of the result, or a lower bound if `at_least` is set."""

    text: str
    path: tuple[str, ...]
    bound: float
    at_least: bool = False


GOALS = [
    Goal("identity, µs over eager", ("calls", "identity", "godynamo", "over_eager_us"), 0.06),
    Goal("relu function, µs over eager", ("calls", "relu", "godynamo", "over_eager_us"), 0.15),
    Goal("guards alone, two tensors, all checks, ns", ("guards", "two tensors, full", "ns"), 50),
    Goal("MLP grad, × eager", ("calls", "mlp_grad", "godynamo", "ratio"), 0.60),
    Goal("MLP no_grad, × eager", ("calls", "mlp_no_grad", "godynamo", "ratio"), 0.50),
    Goal("nn.Identity, × eager", ("calls", "nn_identity", "godynamo", "ratio"), 0.3),
    Goal("Sequential of 20, × eager", ("calls", "sequential", "godynamo", "ratio"), 1.0),
    Goal("pure Python, × eager", ("calls", "pure_python", "godynamo", "ratio"), 1.05),
    Goal("training step of the MLP, SGD, × eager", ("calls", "step_sgd", "godynamo", "ratio"), 0.60),
    Goal("training step of the MLP, AdamW, × eager", ("calls", "step_adamw", "godynamo", "ratio"), 0.60),
    Goal("30 tensor arguments, µs over eager", ("calls", "thirty", "godynamo", "over_eager_us"), 0.3),
    Goal("eight entries in turn, µs over eager", ("calls", "eight", "godynamo", "over_eager_us"), 0.3),
    Goal("import over torch, ms", ("imports", "godynamo", "ms"), 30),
    Goal("import over torch, MiB", ("imports", "godynamo", "mib"), 10),
    # Two processes of the same program differ by 1 to 2 %; a hook that stays installed costs a factor of 1.2 or more.
    Goal("unrelated Python (fib), × without", ("unrelated", "fib", "ratio"), 1.02),
    Goal("unrelated Python (methods), × without", ("unrelated", "methods", "ratio"), 1.02),
    Goal("capture of 600 ops, × faster than torch.compile", ("capture", "speedup"), 5, at_least=True),
    Goal("first call of 24 equal layers, × faster than torch.compile", ("layers", "speedup"), 8, at_least=True),
    Goal("first call of 24 equal layers, × each layer run through", ("layers", "over_alone"), 0.8),
]


def lookup(result: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    """Return the figure at path, None if the run has none."""
    at: Any = result
    for key in path:
        if not isinstance(at, Mapping) or key not in at:
            return None
        at = at[key]
    return float(at) if isinstance(at, (int, float)) else None


def judged(result: Mapping[str, Any]) -> list[tuple[Goal, float | None, bool | None]]:
    """Return (goal, figure, whether it is met) for each goal; the last two are None if there is no figure."""
    rows: list[tuple[Goal, float | None, bool | None]] = []
    for goal in GOALS:
        value = lookup(result, goal.path)
        met = None if value is None else (value >= goal.bound if goal.at_least else value <= goal.bound)
        rows.append((goal, value, met))
    return rows


def _side(entry: Mapping[str, Any], side: str) -> str:
    taken = entry.get(side) or {}
    if "error" in taken:
        return "error"
    if "us" not in taken:
        return "-"
    if side == "eager":
        return f"{taken['us']:.3f}"
    return f"{taken['us']:.3f} ({taken['over_eager_us']:+.3f}, {taken['ratio']:.2f}x)"


def _other_figures(result: Mapping[str, Any]) -> list[str]:
    """Return the rows of figures other than times per call: a text, torch.compile's figure and godynamo's figure."""
    rows = [
        ("first call of a function of 600 operations, ms", ("capture", "{}", "ms")),
        ("first call of a transformer of 24 equal layers, ms", ("layers", "{}", "ms")),
        ("import over torch, ms", ("imports", "{}", "ms")),
        ("import over torch, MiB", ("imports", "{}", "mib")),
    ]
    lines = []
    for text, path in rows:
        figures = [lookup(result, tuple(key.format(side) for key in path)) for side in ("torch.compile", "godynamo")]
        if any(figure is not None for figure in figures):
            lines.append(f"| {text} | " + " | ".join("-" if f is None else f"{f:.4g}" for f in figures) + " |")
    for name in result.get("guards") or {}:
        ns = lookup(result, ("guards", name, "ns"))
        if ns is not None:
            lines.append(f"| guards alone, {name}, ns | - | {ns:.3g} |")
    for name in result.get("unrelated") or {}:
        ratio = lookup(result, ("unrelated", name, "ratio"))
        if ratio is not None:
            lines.append(f"| unrelated Python, {name}: with godynamo over without | - | {ratio:.3f}x |")
    return lines


def markdown(result: Mapping[str, Any]) -> str:
    """Return the whole result as Markdown: figures side by side, then the goals."""
    machine = result.get("machine", {})
    lines = [
        f"{machine.get('date', '')}, {machine.get('cpu', '')}, {machine.get('cores', '')} cores, "
        f"Python {machine.get('python', '')}, torch {machine.get('torch', '')}. "
        f"Best of {result.get('rounds', '?')} rounds in turn; µs a call (over eager, ratio to eager).",
        "",
        "| call | eager | torch.compile | godynamo |",
        "|---|---|---|---|",
    ]
    for name, entry in (result.get("calls") or {}).items():
        if not isinstance(entry, Mapping):
            continue
        sides = " | ".join(_side(entry, side) for side in ("eager", "torch.compile", "godynamo"))
        lines.append(f"| {entry.get('about', name)} | {sides} |")
    others = _other_figures(result)
    if others:
        lines += ["", "| other figures | torch.compile | godynamo |", "|---|---|---|", *others]
    lines += ["", "| goal | bound | measured | met |", "|---|---|---|---|"]
    for goal, value, met in judged(result):
        bound = f"{'≥' if goal.at_least else '≤'} {goal.bound:g}"
        shown = "-" if value is None else f"{value:.3g}"
        lines.append(f"| {goal.text} | {bound} | {shown} | {'-' if met is None else 'yes' if met else 'no'} |")
    errors = [f"- {name}: {text}" for name, text in (result.get("errors") or {}).items()]
    if errors:
        lines += ["", "Groups that failed:", *errors]
    return "\n".join(lines)
