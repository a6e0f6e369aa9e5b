"""Removes the parts of a program that a mismatch does not need: statements by delta debugging, then blocks, headers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.fuzz_statements import Statement

Body = list[Statement]


def _ddmin(body: Body, holds: Callable[[Body], bool]) -> Body:
    """Return the needed statements of one block.

    Tries to remove halves first, then quarters, and finally single statements.
    """
    size = max(1, len(body) // 2)
    while body:
        at, taken = 0, False
        while at < len(body):
            rest = body[:at] + body[at + size :]
            if holds(rest):
                body, taken = rest, True
            else:
                at += size
        if size == 1 and not taken:
            break
        size = max(1, size // 2)
    return body


def _simpler(statement: Statement) -> Iterator[Body]:
    """Yield replacements of a compound statement, simplest first: its blocks, then itself without an optional part."""
    for _, block in statement.parts:
        if block is not None:
            yield block
    for i, optional in enumerate(statement.optional):
        if optional and i < len(statement.parts):
            parts = statement.parts[:i] + statement.parts[i + 1 :]
            flags = statement.optional[:i] + statement.optional[i + 1 :]
            if not parts[0][0].startswith("try") or len(parts) > 1:
                yield [Statement(parts, flags)]


def shrink(body: Body, mismatch: Callable[[Body], bool], most: int = 2000) -> Body:
    """Return the smallest program found for which ``mismatch`` holds; at most ``most`` programs are tried."""
    left = most

    def tried(candidate: Body) -> bool:
        nonlocal left
        left -= 1
        return left > 0 and mismatch(candidate)

    while left > 0:
        smaller = _pass(body, tried)
        if _size(smaller) == _size(body):
            return smaller
        body = smaller
    return body


def _size(body: Body) -> int:
    return sum(1 + _size(block or []) for s in body for _, block in s.parts)


def _pass(body: Body, holds: Callable[[Body], bool]) -> Body:
    body = _ddmin(body, holds)
    for i in range(len(body)):
        body = _inside(body, i, holds)
    return body


def _inside(body: Body, i: int, holds: Callable[[Body], bool]) -> Body:
    for replacement in _simpler(body[i]):
        candidate = body[:i] + replacement + body[i + 1 :]
        if holds(candidate):
            return candidate
    for k, (header, block) in enumerate(body[i].parts):
        if block is None:
            continue

        def rebuilt(inner: Body, k: int = k, header: str = header) -> Body:
            parts = list(body[i].parts)
            parts[k] = (header, inner)
            return [*body[:i], Statement(parts, body[i].optional), *body[i + 1 :]]

        smaller = _pass(block, lambda inner: holds(rebuilt(inner)))
        body = rebuilt(smaller)
    return body
