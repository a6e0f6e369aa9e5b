"""make fuzz-cache: damages stored translations and changes the programs that they are made from.

    cache_run.py [--count N] [--seed FIRST] [--show] [--only damage|edits]

N trials damage a file; a damaged file must be a miss, and no file may end the process. Who can write a file with a
correct checksum has the user's rights: the result of a sealed change is not judged. N / 10 more trials edit a program
that shares a folder with all earlier ones: its calls must be CPython's.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from cache_damage import Files, Trial, trials
from cache_edits import Edited, edited
from cache_format import split
from cache_judge import compiled, difference, read, run, run_with, write
from cache_programs import PROGRAMS
from harness.fuzz_children import Programs, in_child
from harness.fuzz_compare import Mismatch, narrowed

BATCH = 200
TIMEOUT = 60.0  #: seconds for one trial, on a machine that is busy with other work
MEMORY = 8 << 30  #: bytes of a child's data; a damaged constant may be the size of a tensor
BAD = ("wrong", "crash", "hang", "internal error", "loaded", "not removed", "translated again", "harness")

Judge = Callable[[str, bool], Mismatch | None]


def children(judge: Judge, names: list[str]) -> Iterator[tuple[str, Mismatch]]:
    """Judge names in as many forked children as necessary. A judge returns what became of each."""
    kind = Programs("CPython", lambda seed: [], lambda seed, body: "", judge, lambda seed: False)
    while names:
        done = 0
        for name, found in in_child(kind, [(name, name, False) for name in names[:BATCH]], TIMEOUT):
            yield name, found or Mismatch("nothing", 0)
            done += 1
        names = names[done:]


def stored(folder: Path) -> dict[str, Files]:
    """Translate each program in a child. Return the files; each of them is loaded by a second run.

    They keep their order: a file that no run reads, since a newer one fits as well, would not be found damaged.
    """

    def judge(name: str, _: bool) -> Mismatch:
        codes = compiled(PROGRAMS[name])
        run_with(folder / name, codes)
        files = read(folder / name)
        again = run_with(folder / name, codes)
        write(folder / name, files)
        return Mismatch("stored", again.loaded - len(files), again.translated)

    for name, found in children(judge, list(PROGRAMS)):
        assert (found.kind, found.call, found.expected) == ("stored", 0, 0), (name, found)
    return {name: read(folder / name) for name in PROGRAMS}


class Damage:
    """Judges trials with damaged files, in a child."""

    def __init__(self, folder: Path) -> None:
        self.good = stored(folder)
        self.folder = folder / "damaged"
        self.codes = {name: compiled(sources) for name, sources in PROGRAMS.items()}
        self.trials: dict[str, Trial] = {}
        self.expected: dict[str, Any] = {}

    def judge(self, seed: str, _: bool) -> Mismatch:
        if not self.expected:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        trial = self.trials[seed]
        codes = self.codes[trial.program]
        if trial.program not in self.expected:
            self.expected[trial.program] = run(codes, lambda fn: fn)
        # A process gives a key up after several files that do not fit, so each trial has a folder of its own.
        folder = self.folder / seed
        write(folder, trial.files)
        torch.set_grad_enabled(True)  # changed code may have left it off
        ran = run_with(folder, codes)
        now = read(folder)
        shutil.rmtree(folder)
        other = difference(self.expected[trial.program], ran.calls)
        good = self.good[trial.program]
        if ran.internal:
            return Mismatch("internal error", 0, None, ran.internal[0])
        if trial.plain:
            return self._plain(trial, other, ran.loaded, good, now)
        if other is not None:
            return Mismatch("sealed: another result", other[1], *narrowed(*other[2:]))
        return Mismatch("sealed: a miss" if ran.loaded < len(good) else "sealed: no effect", 0)

    def _plain(self, trial: Trial, other: Any, loaded: int, good: Files, now: Files) -> Mismatch:
        if other is not None:
            return Mismatch("wrong", other[1], *narrowed(*other[2:]))
        if loaded > len(good) - len(trial.hurt & set(good)):
            return Mismatch("loaded", 0, None, loaded)
        hurt = trial.hurt & set(trial.files)
        if all(now.get(path) == trial.files[path] for path in hurt):  # of two that are swapped, one may never be read
            return Mismatch("not removed", 0, None, sorted(trial.hurt))
        return Mismatch("plain: a miss", 0)

    def run(self, seeds: list[int]) -> Iterator[tuple[Trial, Mismatch]]:
        for at in range(0, len(seeds), BATCH):
            self.trials = {str(t.seed): t for t in trials(self.good, seeds[at : at + BATCH])}
            for plain in (True, False):  # a sealed change may leave the process in any state
                names = [name for name, trial in self.trials.items() if trial.plain == plain]
                for name, found in children(self.judge, names):
                    if found.kind in BAD and not plain:
                        ((_, alone),) = children(self.judge, [name])
                        found = alone if alone.kind in BAD else found
                        found.kind += "" if alone.kind in BAD else " after others"
                    yield self.trials[name], found


class Edits:
    """Judges edited programs that share a folder, each in a child of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "edits"
        self.programs: dict[str, Edited] = {}

    def judge(self, seed: str, _: bool) -> Mismatch:
        program = self.programs[seed]
        codes = compiled(program.sources)
        expected = run(codes, lambda fn: fn, *program.arguments)
        ran = run_with(self.folder, codes, *program.arguments)
        other = difference(expected, ran.calls)
        if other is not None:
            return Mismatch("wrong", other[1], *narrowed(*other[2:]))
        if ran.internal:
            return Mismatch("internal error", 0, None, ran.internal[0])
        return Mismatch("edited", ran.translated, ran.loaded)

    def cause(self, program: Edited) -> str:
        """Return in words the files without which a wrong result is right."""
        files, folder = list(read(self.folder).items()), self.folder
        self.folder = folder.with_name("halves")

        def wrong(some: list[tuple[str, bytes]]) -> bool:
            write(self.folder, dict(some))
            return self.one(program).kind != "edited"

        step = -(-len(files) // 2)
        try:
            if wrong([]):
                return "it is wrong without files"
            if not wrong(files):
                return "it is right when it runs again"
            while step:
                for at in range(0, len(files), step):
                    if wrong(rest := files[:at] + files[at + step :]):
                        files = rest
                        break
                else:
                    step = step // 2 if step == 1 else -(-step // 2)
            return "\n  ".join(f"{name}: {split(data).meta[:300]!r}" for name, data in files)
        finally:
            self.folder = folder

    def one(self, program: Edited) -> Mismatch:
        """Run a program in a process of its own."""
        self.programs[str(program.seed)] = program
        ((_, found),) = children(self.judge, [str(program.seed)])
        return found

    def run(self, seeds: list[int]) -> Iterator[tuple[Edited, Mismatch]]:
        """Run the programs of the seeds. Each fourth runs again, and so does the program without edits after it."""
        for n, seed in enumerate(seeds):
            program = edited(seed)
            found = self.one(program)
            if found.kind == "wrong":
                program.text += f"\n  {self.cause(program)}"
            yield program, found
            if found.kind != "edited" or n % 4:
                continue
            again = self.one(program)
            if again.kind == "edited":
                again.kind = "edited: again, loaded" if again.call == 0 else "edited: again, translated"
            yield program, again
            first = edited(seed, edits=0)
            for last in (False, True):
                found = self.one(first)
                if found.kind == "edited":
                    found.kind = "unchanged" if found.call == 0 or not last else "translated again"
                yield first, found


def said(what: Trial | Edited, found: Mismatch) -> str:
    text = f"{found.kind} in call {found.call}\n  expected: {found.expected}\n  got: {found.got}"
    return f"== seed {what.seed}, {what.program}: {what.text}\n  {text}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", choices=("damage", "edits"))
    parser.add_argument("--show", action="store_true", help="print what each trial does")
    args = parser.parse_args()
    torch.set_num_threads(1)
    started, kinds, ran, bad = time.monotonic(), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as name:
        runs: list[Iterator[tuple[Any, Mismatch]]] = []
        seeds = range(args.seed, args.seed + args.count)
        if args.only != "edits":
            runs.append(Damage(Path(name)).run(list(seeds)))
        if args.only != "damage":
            runs.append(Edits(Path(name)).run(list(seeds[: -(-args.count // (10 if args.only is None else 1))])))
        for what, found in (pair for each in runs for pair in each):
            ran += 1
            kinds[found.kind] += 1
            failed = found.kind.removesuffix(" after others") in BAD
            bad += failed
            if failed or args.show:
                print(said(what, found), flush=True)
            if ran % 1000 == 0:
                print(f"{ran}, {ran / (time.monotonic() - started):.0f} a second", file=sys.stderr, flush=True)
    crashed = sum(number for kind, number in kinds.items() if kind.startswith(("crash", "hang")))
    each = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    print(f"{ran} trials from seed {args.seed}: {bad - crashed} wrong, {crashed} crashed; {each}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
