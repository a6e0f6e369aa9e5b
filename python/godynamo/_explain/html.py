"""Writes an explanation as HTML: a fragment for a notebook, or a page that opens offline and has no scripts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from .. import _core
from .._called import runtime
from .._translator import trace_rules
from . import source_lines, svg
from .captured import Share
from .guard_objects import Guard, GuardText
from .text import guards_title

if TYPE_CHECKING:
    from .explanation import BreakReason, Explanation, Recompile

#: maximum number of graph nodes that a notebook draws; a page draws all
MOST_NODES = 250

_CSS = """
.gdx{font:14px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:#1c2733;background:#fff;text-align:left}
.gdx h1{font-size:22px;margin:0 0 2px}.gdx h2{font-size:16px;margin:26px 0 8px}.gdx .sub{color:#5e7186;margin:0 0 14px}
.gdx code,.gdx pre{font:12.5px/1.45 "DejaVu Sans Mono",Menlo,Consolas,monospace;color:inherit;background:none;padding:0}
.gdx .cards{display:flex;flex-wrap:wrap;gap:10px}
.gdx .card{border:1px solid #d5dde6;border-radius:8px;padding:8px 14px;min-width:104px}
.gdx .card b{display:block;font-size:20px}.gdx .card span{color:#5e7186}
.gdx .bar{height:6px;border-radius:3px;background:#f0c9bf;margin-top:5px;overflow:hidden}
.gdx .bar i{display:block;height:100%;background:#4c8a5c}
.gdx .break{border:1px solid #e3b5a9;border-left:4px solid #d4654b;border-radius:6px;padding:8px 14px;margin:0 0 12px}
.gdx .id{font-weight:bold;color:#a5341a;margin-right:6px}.gdx .hint{color:#37506b;margin:2px 0}
.gdx .hint:before{content:"→ "}
.gdx .where{color:#5e7186;margin:6px 0 2px}
.gdx pre.src{margin:2px 0 4px;padding:6px 0;background:#f5f7fa;border-radius:5px;overflow-x:auto;line-height:1.45}
.gdx pre.src span{display:block;padding:0 10px;min-width:max-content}
.gdx pre.src .no{display:inline;padding:0 12px 0 0;color:#93a2b3}
.gdx pre.src .hit{background:#fde6df}.gdx pre.src mark{background:#f6b7a5;color:inherit;border-radius:2px}
.gdx table{border-collapse:collapse;margin:0;width:auto;display:block;overflow-x:auto}
.gdx th,.gdx td{border-bottom:1px solid #e3e8ee;padding:4px 12px 4px 0;text-align:left;vertical-align:top;
background:none}
.gdx th{color:#5e7186;font-weight:600;white-space:nowrap}.gdx td.n{text-align:right;white-space:nowrap}
.gdx details{margin:4px 0}.gdx summary{cursor:pointer}.gdx details>*:not(summary){margin-left:16px}
.gdx .picture{overflow:auto;max-height:900px;border:1px solid #e3e8ee;border-radius:6px;padding:6px}
.gdx pre.graph{background:#f5f7fa;border-radius:5px;padding:8px 12px;overflow-x:auto;line-height:1.4}
.gdx .old{color:#a5341a}.gdx .new{color:#2f7040}.gdx .muted{color:#5e7186}
"""
#: additional style of a page, after _CSS and after the picture's style
_PAGE = """
body{margin:0;padding:26px 34px;background:#fff}.gdx .picture{max-height:none}
.gdx{max-width:1240px}
@media(prefers-color-scheme:dark){
body,.gdx{background:#11181f;color:#dfe7ef}
.gdx .card,.gdx th,.gdx td,.gdx .picture{border-color:#33414f}
.gdx .sub,.gdx .card span,.gdx .where,.gdx th,.gdx .muted{color:#93a5b8}
.gdx .break{border-color:#6b3d31;border-left-color:#d4654b}.gdx .id,.gdx .old{color:#ff9f86}.gdx .hint{color:#a9c3df}
.gdx .new{color:#86cf99}
.gdx pre.src,.gdx pre.graph{background:#1a232d}.gdx pre.src .hit{background:#40251e}
.gdx pre.src mark{background:#8a4333}
.gdx .bar{background:#5a3228}
}
"""


def page(e: Explanation) -> str:
    """Return a whole page."""
    title = f"explain {e.name}" if e.name else "explain"
    style = _CSS + (_PAGE + svg.DARK).replace(".gd", ".page .gd")  # takes precedence over the picture's own style
    return (
        f'<!DOCTYPE html>\n<html lang="en" class="page"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="data:,"><style>{style}</style></head>'
        f"<body>{_body(e, None, heading='h1')}</body></html>\n"
    )


def fragment(e: Explanation) -> str:
    """Return the output that a notebook shows below a cell."""
    return f"<style>{_CSS}</style>{_body(e, MOST_NODES, heading='h2')}"


def _body(e: Explanation, most: int | None, heading: str) -> str:
    parts = [
        '<div class="gdx">',
        f"<{heading}>{escape(e.name or 'explanation')}</{heading}>" if e.name else "",
        _cards(e),
        _section("Graph breaks", "".join(map(_break, e.break_reasons))),
        _section("Pieces of the function", _picture(e, most)),
        _section("What CPython ran, and why", _kept_out(e)),
        _section("By function", _functions(e)),
        _section("Recompiles", _recompiles(e.recompiles)),
        _section("Guards", "".join(_guards(i, guards_title(e, i - 1), g) for i, g in enumerate(e.guard_entries, 1))),
        _section("Graphs", "".join(_graph(i, g) for i, g in enumerate(e.graphs, 1))),
        "</div>",
    ]
    return "".join(parts)


def _section(title: str, inner: str) -> str:
    return f"<section><h2>{title}</h2>{inner}</section>" if inner else ""


# ---- the head ----


def _cards(e: Explanation) -> str:
    rows = [
        _card(str(e.graph_count), "graphs"),
        _card(str(e.graph_break_count), "graph breaks"),
        _card(str(e.op_count), "operations"),
        _share("torch calls captured", e.torch_calls),
        _share("bytecodes captured", e.bytecodes),
        _card(f"{e.captured_frames} of {e.frame_count}", "frames captured"),
    ]
    rows += [_card(str(count), f"Python calls of {escape(callee)}") for callee, count in e.python_ops.items()]
    note = "" if e.counted else "The shares were not counted in full: a trace or profile function is at work."
    if not _core.available:
        note = f"Nothing was captured or counted: {_core.refusal}."
    shown = f'<p class="muted">{escape(note)}</p>' if note else ""
    return f'<div class="cards">{"".join(rows)}</div>{shown}'


def _card(value: str, what: str, more: str = "") -> str:
    return f'<div class="card"><b>{value}</b><span>{what}</span>{more}</div>'


def _share(what: str, share: Share) -> str:
    return _card(
        f"{share.captured} of {share.total}",
        f"{what}: {share.share:.0%}",
        f'<div class="bar"><i style="width:{100 * share.share:.1f}%"></i></div>',
    )


# ---- breaks ----


def _break(reason: BreakReason) -> str:
    times = f' <span class="muted">in {reason.count} translations</span>' if reason.count > 1 else ""
    inner = _frame(reason, 0, 3) if reason.user_stack else ""
    outer = [i for i in range(1, len(reason.user_stack)) if not trace_rules.is_torchs(reason.user_stack[i][1])]
    hidden = len(reason.user_stack) - 1 - len(outer)
    above = "".join(_frame(reason, i, 0) for i in outer)
    above += f'<div class="muted">and {hidden} frame{"s" if hidden > 1 else ""} of torch\'s</div>' if hidden else ""
    called = f"<details{' open' if outer else ''}><summary>called from</summary>{above}</details>" if above else ""
    return (
        f'<div class="break"><div><span class="id">{escape(reason.code)}</span>{escape(reason.reason)}{times}</div>'
        f"{_hint(reason.hint)}{inner}{called}</div>"
    )


def _hint(text: str) -> str:
    return f'<div class="hint">{escape(text)}</div>' if text else ""


def _frame(reason: BreakReason, frame: int, around: int) -> str:
    name, file, line = reason.user_stack[frame]
    found = reason.excerpt(frame, around)
    rows = []
    for number, text in enumerate(found.lines, found.first):
        hit = number == found.marked
        shown = escape(text)
        if hit and found.width:
            a, b = found.column, found.column + found.width
            shown = f"{escape(text[:a])}<mark>{escape(text[a:b])}</mark>{escape(text[b:])}"
        style = ' class="hit"' if hit else ""
        rows.append(f'<span{style}><span class="no">{number:>5}</span>{shown}</span>')
    source = f'<pre class="src">{"".join(rows)}</pre>' if rows else ""
    return f'<div class="where"><code>{escape(name)}</code>, {_place(file, line)}</div>{source}'


def _place(file: str, line: int | None) -> str:
    return f'<code title="{escape(file)}">{escape(source_lines.short(file))}:{line}</code>'


# ---- picture, tables ----


def _picture(e: Explanation, most: int | None) -> str:
    return f'<div class="picture">{svg.picture(e.pieces, e.break_reasons, most)}</div>' if e.pieces else ""


def _table(heads: Iterable[str], rows: Iterable[str]) -> str:
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{h}</th>' for h in heads)}</tr>{body}</table>" if body else ""


def _kept_out(e: Explanation) -> str:
    return _table(
        ("torch calls", "bytecodes", "times", "callee", "reason", "where"),
        (
            f'<td class="n">{r.torch_calls}</td><td class="n">{r.bytecodes}</td><td class="n">{r.count}</td>'
            f"<td><code>{escape(r.callee)}</code></td>"
            f'<td><span class="id">{escape(r.code)}</span>{escape(r.reason)}{_hint(r.hint)}</td>'
            f"<td>{_place(r.file, r.line)}<br><code>{escape(runtime.source_line(r.file, r.line))}</code></td>"
            for r in e.kept_out
        ),
    )


def _functions(e: Explanation) -> str:
    return _table(
        ("function", "torch calls captured", "bytecodes captured", "where"),
        (
            f'<td><code>{escape(f.function)}</code></td><td class="n">{f.torch_calls}</td>'
            f'<td class="n">{f.bytecodes}</td>'
            f"<td>{_place(f.file, f.line)}</td>"
            for f in e.functions
        ),
    )


def _recompiles(recompiles: Iterable[Recompile]) -> str:
    return _table(
        ("function", "why the entry did not serve", "was", "now", "asked for by"),
        (
            f"<td><code>{escape(r.function)}</code>"
            f"{'<br><span class=muted>before this call</span>' if r.before else ''}</td>"
            f"<td><code>{escape(f.said)}</code><details><summary>the guard</summary>"
            f"<code>{escape(f.guard)}</code><br>{escape(f.words)}</details></td>"
            f'<td class="old"><code>{escape(f.old or "")}</code></td>'
            f'<td class="new"><code>{escape(f.new or "")}</code></td>'
            + (
                f"<td>{_place(f.file, f.line)}<br><code>{escape(runtime.source_line(f.file, f.line))}</code></td>"
                if f.file
                else "<td></td>"
            )
            for r in recompiles
            for f in r.failures
        ),
    )


# ---- guards, graphs ----


def _guards(number: int, title: str, entry: GuardText) -> str:
    rows = (_guard(g) for g in entry.guards)
    table = _table(("kind", "what is checked", "asked for by"), rows)
    text = escape(" and\n".join(part for part, _ in entry.parts))
    return (
        f"<details><summary>{number}: <code>{escape(title)}</code>, {len(entry.guards)} guards</summary>{table}"
        f'<details><summary>as executable Python</summary><pre class="graph">{text}</pre>'
        "</details></details>"
    )


def _guard(guard: Guard) -> str:
    where = _place(*guard.line) if guard.line else ""
    return f"<td><code>{escape(guard.kind)}</code></td><td><code>{escape(guard.words)}</code></td><td>{where}</td>"


def _graph(number: int, text: str) -> str:
    lines = text.count("\n")
    return f'<details><summary>graph {number}, {lines} lines</summary><pre class="graph">{escape(text)}</pre></details>'
