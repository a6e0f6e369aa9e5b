"""Random programs of blocks, effects and small tensors, with the points of arrival in each call."""

from __future__ import annotations

import random
from pathlib import Path

from harness.fuzz_statements import Statement, line, render_block

PRELUDE = (Path(__file__).parent / "signals_prelude.py").read_text()
HEADER = "def fn(x, y, o, l, d):\n    global COUNT"
KINDS = ("interrupt", "timeout", "timeout", "exit", "sent", "returns")
BACKENDS = ("eager", "eager", "forward", "wrapper", "aot_eager")
ARRIVALS = 12  #: arrivals per program

OPERATIONS = (
    "x = x * 2 - 1; x = x + y; y = torch.relu(x); x = torch.ops.sig.tick(x); x = torch.ops.sig.pytick(x); "
    "y = torch.ops.sig.tick(y) + 1; x = x.clamp(-8, 8); y = y.clamp(-8, 8); x = -x; x = Halved.apply(x).clamp(-8, 8); "
    "x = guarded(x, {i}); x = locked(x, RLOCK); x = rescued(x); x = split(x, {i}); x = torch.where(x > 0, x, y)"
).split("; ")
IN_PLACE = "x.add_(1); y.mul_(-1); y[0] = x[1]; x[:1] += 1; y.copy_(x); x.neg_(); x.clamp_(-4, 4)".split("; ")
DRAWS = (
    "y = torch.rand(3); x = F.dropout(x, 0.5); "
    "x = x + torch.randint(0, 3, (3,)); y = torch.bernoulli(torch.full((3,), 0.5))"
)
EFFECTS = (
    "LOG.append({i}); LOG.append({i}); l.append({i}); d['k'] = {i}; d[{i}] = x; o.a = {i}; o.a += 1; COUNT = {i}; "
    "COUNT += 1; G['n'] += 1; print({i}); print({i}, file=OUT); callback({i}); o.seen.append({i}); o.prop = {i}; "
    "arrivals.tick(); LOG.append(float(x[0])); o.x = x; l.append(o.prop); dead = Mortal({i}); dead = None; "
    "setattr(o, 'b', {i}); d.pop('k', None); d.setdefault('s', []).append({i}); l[:] = [{i}]; sys.stdout.flush()"
).split("; ")
BREAKS = (
    "godynamo.graph_break(); opaque({i}); print(x.tolist()); LOG.append(x.sum().item()); godynamo.graph_break()"
).split("; ")
CONTEXTS = (
    "Own({i}); Own({i}) as c; managed({i}); managed({i}) as c; bare_managed({i}); RLOCK; LOCK; LOCK; o.counted; "
    "Forgiving({i}); torch.no_grad(); torch.no_grad(); torch.enable_grad(); torch.autocast('cpu', "
    "dtype=torch.bfloat16); "
    "torch.set_grad_enabled(False); contextlib.suppress(Timeout); contextlib.redirect_stdout(OUT); Own({i}), RLOCK; "
    "managed({i}), torch.no_grad(); contextlib.ExitStack() as stack; contextlib.nullcontext()"
).split("; ")
CAUGHT = (
    "Timeout; Timeout; Exception; BaseException; (KeyboardInterrupt, SystemExit); Sent; ValueError; (Timeout, Sent)"
).split("; ")


class Generator:
    """Builds the body of one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = 0

    def fill(self, template: str) -> str:
        return template.replace("{i}", str(self.rng.randrange(1, 9)))

    def new(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def block(self, depth: int, held: frozenset[str], most: int = 3) -> list[Statement]:
        out: list[Statement] = []
        for _ in range(self.rng.randint(1, most)):
            out += self.statement(depth, held)
        return out

    def statement(self, depth: int, held: frozenset[str]) -> list[Statement]:
        """Return one random statement. ``held`` contains "lock" inside a block of LOCK, "loop" inside a loop."""
        if depth > 0 and self.rng.random() < 0.42:
            makers = (self.context, self.context, self.final, self.handled, self.handled, self.loop, self.inner)
            return self.rng.choice(makers)(depth - 1, held)
        roll = self.rng.random()
        if roll < 0.36:
            table = OPERATIONS
        elif roll < 0.42:
            table = IN_PLACE
        elif roll < 0.45:
            table = DRAWS.split("; ")
        elif roll < 0.78:
            table = EFFECTS
        elif roll < 0.86:
            table = BREAKS
        else:
            return self.other(depth, held)
        return [line(self.fill(self.rng.choice(table)))]

    def other(self, depth: int, held: frozenset[str]) -> list[Statement]:
        """Return statements that leave, branch or use a generator."""
        g = self.new("g")
        rare = [
            [line(f"{g} = turns(x, 3)"), line(f"x = next({g})"), line(f"y = next({g})")],
            [line(f"{g} = turns(x, 3)"), line(f"x = next({g})"), line(f"{g}.close()")],
            [
                Statement(
                    [("if x.sum() > 0:", self.block(0, held, 2)), ("else:", self.block(0, held, 2))], (False, True)
                )
            ],
            [Statement([("if o.a > 2:", self.block(0, held, 2))])],
            [line(f"{g} = [t * 2 for t in (x, y)]"), line(f"x = {g}[0]")],
            [
                Statement(
                    [("try:", [line("RLOCK.acquire()"), *self.block(0, held)]), ("finally:", [line("RLOCK.release()")])]
                )
            ],
            [Statement([("if o.a > 1:", [line("return x, y")])])],
            [line("l.extend(v for v in (1, 2))")],
        ]
        if "loop" in held:
            rare += [[Statement([("if o.a > 1:", [line(self.rng.choice(("break", "continue")))])])]] * 3
        return self.rng.choice(rare)

    def context(self, depth: int, held: frozenset[str]) -> list[Statement]:
        manager = self.fill(self.rng.choice([c for c in CONTEXTS if c != "LOCK" or "lock" not in held]))
        inside = self.block(depth, held | {"lock"} if manager == "LOCK" else held)
        if "stack" in manager:
            inside.insert(0, line(self.fill("stack.callback(callback, {i})")))
            inside.insert(0, line(self.fill("stack.enter_context(Own({i}))")))
        return [Statement([(f"with {manager}:", inside)])]

    def final(self, depth: int, held: frozenset[str]) -> list[Statement]:
        return [Statement([("try:", self.block(depth, held)), ("finally:", [self.effect(), *self.block(0, held, 2)])])]

    def effect(self) -> Statement:
        return line(self.fill("LOG.append('f{i}')"))

    def handled(self, depth: int, held: frozenset[str]) -> list[Statement]:
        caught = self.rng.choice(CAUGHT)
        body = self.block(depth, held)
        if caught == "ValueError" or self.rng.random() < 0.1:
            body.append(line("raise ValueError(1)" if caught == "ValueError" else "raise Timeout('own')"))
        handler = [line("LOG.append(('caught', type(e).__name__))"), *self.block(0, held, 1)]
        if self.rng.random() < 0.3:
            handler.append(line("raise"))
        parts: list[tuple[str, list[Statement] | None]] = [("try:", body), (f"except {caught} as e:", handler)]
        optional = [False, False]
        if self.rng.random() < 0.25:
            parts.append(("else:", [self.effect(), *self.block(0, held, 1)]))
            optional.append(True)
        if self.rng.random() < 0.3:
            parts.append(("finally:", [self.effect(), *self.block(0, held, 1)]))
            optional.append(True)
        return [Statement(parts, tuple(optional))]

    def loop(self, depth: int, held: frozenset[str]) -> list[Statement]:
        header = self.rng.choice(
            ("for i in range(2):", "for i in range(3):", "for v in turns(x, 2):", "while o.more():", "for v in (x, y):")
        )
        body = self.block(depth, held | {"loop"}, 2)
        if "for v" in header:
            body.insert(0, line("x = (x + v).clamp(-8, 8)"))
        return [Statement([(header, body)])]

    def inner(self, depth: int, held: frozenset[str]) -> list[Statement]:
        """Return a nested function, called at once."""
        f = self.new("f")
        body = self.block(depth, held - {"loop"})
        made = Statement([(f"def {f}(x, y):", [line("global COUNT"), *body, line("return x, y")])])
        return [made, line(f"{self.rng.choice(('x, y', 'r'))} = {f}(x, y)")]


def program(seed: int) -> list[Statement]:
    """Return the body of a seed's program."""
    generator = Generator(seed)
    return [*generator.block(3, frozenset(), 4), *generator.block(2, frozenset(), 2)]


def case(seed: int) -> dict[str, object]:
    """Return how the seed's program is called: what arrives, the backend, the entry function, and each arrival.

    An arrival is (call, how, part). A ``first`` call translates, a ``hit`` call uses the translation. The arrival comes
    after the share ``part`` of the allocations, ticks or time that such a call takes without an arrival.
    """
    rng = random.Random(seed ^ (1 << 40))
    arrivals: list[tuple[str, str, float]] = [("first", "alloc", rng.random()) for _ in range(3)]
    arrivals += [("first", "thread", rng.random()), ("first", "tick", rng.random())]
    arrivals += [("hit", "alloc", rng.random()) for _ in range(3)]
    arrivals += [("hit", "tick", rng.random()) for _ in range(3)]
    arrivals += [("hit", "thread", rng.random())]
    assert len(arrivals) == ARRIVALS
    rounded = [(call, how, round(part, 3)) for call, how, part in arrivals]
    return {
        "kind": rng.choice(KINDS),
        "backend": rng.choice(BACKENDS),
        "through": rng.choice(("fn", "fn", "fn", "calls")),
        "arrivals": rounded,
    }


def source(seed: int, body: list[Statement]) -> str:
    """Return the whole text of a program: prelude, function, and how it is called."""
    one = case(seed)
    out = [PRELUDE, "OUT = Out()", "", HEADER]
    render_block(body, 1, out)
    out += ["    return x, y", "", "", f"CASE = {one!r}"]
    return "\n".join(out) + "\n"
