"""The step `speed` of `make gpu`: launch-bound programs under eager mode, godynamo and torch.compile, side by side.

    bench/launches.py [--only NAME] [--rounds N] [--json FILE] [--no-inductor]

Small tensors, so that a GPU waits for the CPU: what counts is the time to launch. A time is microseconds per call, of
many calls in a row that end with one synchronization, the best round; the sides take turns. Each side is also checked:
equal results, and no synchronization that eager does not make (torch.cuda.set_sync_debug_mode).
GODYNAMO_DEVICE chooses the device (cuda). On the CPU the table shows that the program works, nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

import godynamo  # noqa: E402
from godynamo._tools.bench import timing  # noqa: E402

DEVICE = os.environ.get("GODYNAMO_DEVICE", "cuda")
Call = Callable[..., Any]

#: the aims of the issue: the share of eager's time, and dispatch in microseconds
AIM, DISPATCH = 0.75, 15.0
#: sizes of the decoder, and how many tokens are decoded
WIDTH, HEADS, LENGTH, VOCABULARY, TOKENS = 256, 4, 64, 100, 50


@dataclasses.dataclass
class Program:
    """A function or module, its arguments on the device, and what is timed: ``around`` of it."""

    fn: Call
    args: tuple[Any, ...]
    around: Callable[[Call], Call] = lambda call: call


def chain(x: torch.Tensor) -> torch.Tensor:
    """Run 200 elementwise operations."""
    for _ in range(50):
        x = ((x * 1.5 + 0.5).relu() - x).abs()
    return x


def identity(x: torch.Tensor) -> torch.Tensor:
    """Launch nothing: the time is dispatch alone."""
    return x


class Residual(nn.Module):
    """Twelve residual blocks of an MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)) for _ in range(12)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of x's shape, (batch, 64)."""
        for block in self.blocks:
            x = x + block(x)
        return x


class Layer(nn.Module):
    """A layer of a decoder, with a static cache of keys and values."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS))
        self.register_buffer("values", torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS))

    def forward(self, x: torch.Tensor, at: torch.Tensor | None, mask: torch.Tensor | None) -> Any:
        """Return a tensor of x's shape, (1, tokens, WIDTH). ``at``: the place of x in the cache, (1,)."""
        rows = self.qkv(self.norm(x)).view(1, -1, 3, HEADS, WIDTH // HEADS)
        q, k, v = rows.permute(2, 0, 3, 1, 4).unbind(0)
        if at is None:
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            self.keys.index_copy_(2, at, k)
            self.values.index_copy_(2, at, v)
            y = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """A decoder of twelve layers."""

    range: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(12))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("range", torch.arange(LENGTH))

    def forward(self, tokens: torch.Tensor, at: torch.Tensor | None = None) -> Any:
        """Return logits of tokens, (1, n): (1, n, VOCABULARY). With ``at``, (1,), n is 1 and the cache is used."""
        where = self.range[: tokens.shape[1]] if at is None else at
        x = self.embed(tokens) + self.places(where)
        mask = None if at is None else (self.range <= at)[None]
        for layer in self.layers:
            x = layer(x, at, mask)
        return self.head(self.norm(x))


def decoding(step: Call) -> Call:
    """Return a function that decodes TOKENS tokens greedily, one call of ``step`` for each."""
    places = list(torch.arange(TOKENS, device=DEVICE).chunk(TOKENS))

    def decode(token: torch.Tensor) -> torch.Tensor:
        found = []
        for at in places:
            token = step(token, at)[:, -1].argmax(-1, keepdim=True)
            found.append(token)
        return torch.cat(found, 1)

    return decode


def programs() -> dict[str, Program]:
    """Return the programs by name."""
    torch.manual_seed(0)
    decoder = Decoder().to(DEVICE).eval()
    return {
        "identity": Program(identity, (torch.ones(64, device=DEVICE),)),
        "200 operations": Program(chain, (torch.rand(64, device=DEVICE),)),
        "MLP of 12 blocks": Program(Residual().to(DEVICE).eval(), (torch.rand(4, 64, device=DEVICE),)),
        "12 layers, batch 1": Program(decoder, (torch.randint(VOCABULARY, (1, 16), device=DEVICE),)),
        f"decoding {TOKENS} tokens": Program(decoder, (torch.zeros(1, 1, dtype=torch.long, device=DEVICE),), decoding),
    }


def wait() -> None:
    """Wait for the device."""
    if DEVICE != "cpu":
        torch.get_device_module(DEVICE).synchronize()


def timed(call: Call, args: tuple[Any, ...]) -> Callable[[int], float]:
    """Return run(n), which returns the seconds of n calls and of the wait at their end."""

    def run(n: int) -> float:
        wait()
        began = time.perf_counter()
        for _ in range(n):
            call(*args)
        wait()
        return time.perf_counter() - began

    return run


def synchronizes(call: Call, args: tuple[Any, ...]) -> bool:
    """Return whether a call that has been captured waits for the device."""
    if DEVICE != "cuda":
        return False
    wait()
    torch.cuda.set_sync_debug_mode("error")
    try:
        call(*args)
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        return True
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return False


def sides(fn: Call, inductor: bool) -> dict[str, Call]:
    """Return what is compared."""
    found: dict[str, Call] = {timing.EAGER: fn, "godynamo": godynamo.optimize(fn)}
    if inductor:
        found["godynamo, inductor"] = godynamo.optimize(fn, backend="inductor")
        found["torch.compile"] = torch.compile(fn)
        if DEVICE == "cuda":
            found["godynamo, reduce-overhead"] = godynamo.compile(fn, mode="reduce-overhead")
            found["torch.compile, reduce-overhead"] = torch.compile(fn, mode="reduce-overhead")
    return found


def measure(program: Program, rounds: int, inductor: bool) -> dict[str, Any]:
    """Return {side: {"us", "ratio", "waits", "error"}} of one program."""
    calls = {name: program.around(side) for name, side in sides(program.fn, inductor).items()}
    args = program.args
    rows: dict[str, dict[str, Any]] = {}
    with torch.no_grad():
        expected = calls[timing.EAGER](*args).clone()
        for name, call in list(calls.items()):
            rows[name] = {}
            try:
                for _ in range(4):
                    got = call(*args)
                torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
                del got  # a CUDA graph's own memory
                rows[name]["waits"] = synchronizes(call, args)
            except Exception as error:
                rows[name]["error"] = f"{type(error).__name__}: {error}"[:300]
                del calls[name]
        figures = timing.in_turn({name: timed(call, args) for name, call in calls.items()}, rounds, 0.02)
    for name, figure in figures.items():
        rows[name] |= {"us": figure.best * 1e6, "ratio": figure.best / figures[timing.EAGER].best}
    return rows


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="*", help="names of programs, with wildcards")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-inductor", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    failed = False
    for name, program in programs().items():
        if not fnmatch.fnmatch(name, options.only):
            continue
        found[name] = rows = measure(program, options.rounds, not options.no_inductor)
        print(f"\n{name}", flush=True)
        for side, row in rows.items():
            failed |= "error" in row or row["waits"] > rows[timing.EAGER]["waits"]
            figures = f"{row['us']:10.2f} µs {row['ratio']:6.2f} of eager" if "us" in row else row["error"]
            print(f"  {side:32} {figures}{'  waits for the device' if row.get('waits') else ''}")
    if DEVICE != "cpu":
        ours = {name: rows["godynamo"].get("ratio", float("nan")) for name, rows in found.items() if name != "identity"}
        added = found["identity"]["godynamo"].get("us", float("nan")) - found["identity"][timing.EAGER]["us"]
        print(f"\nat most {AIM} of eager's time: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ours.items()))
        print(f"dispatch at most {DISPATCH} µs: {added:.2f} µs over eager for identity")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"device": DEVICE, "programs": found}, indent=1))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
