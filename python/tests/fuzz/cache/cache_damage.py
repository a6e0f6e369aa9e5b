"""Damages one of a program's translation files.

Plain damage changes the bytes of a file, or puts it in another's place: its checksum, name or key does not fit then.
Sealed damage changes the translation and writes a file whose name and checksum fit.
"""

from __future__ import annotations

import dis
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cache_format import Parts, dumps, loads, packed, sealed, split, unpacked

#: the contents of a folder of translations, by path (cache_judge.Files)
Files = dict[str, bytes]

_OPCODES = sorted(code for name, code in dis.opmap.items() if code < 256 and not name.startswith("INSTRUMENTED"))
_NUMBERS = [0, 1, -1, 2, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, (1 << 64) - 1, -(1 << 63)]

_RECORD = (
    "Objects Resumes Graphs Facts Program Function Extra Rows Levels Chains Operations Flags Info State Seed Devices "
    "Registered Folded Sizes"
).split()
_FUNCTION = "Name QualName Code Closure".split()
_CODE = (
    "Name QualName Code LineTable ExceptionTable Flags FirstLine ArgCount PosOnlyArgCount KwOnlyArgCount StackSize "
    "Names LocalsPlusNames LocalsPlusKinds Consts"
).split()
_PROGRAM = "NumSlots NumRegs NumCaches NumKept Nodes Consts Tensors Sizes Parts Files Lines Kinds Extra".split()
_OBJECT = "Kind Number Text Data Items Print Own".split()
_NODE = "Op Flags Dst Src Part A B".split()
_RESUME = "Of Target Params Computed Sizes Stack Function Inlined".split()
#: how often the fields of a record are chosen
_WEIGHTS = {"Objects": 4, "Resumes": 4, "Program": 8, "Function": 8, "Rows": 2, "Levels": 2, "Chains": 2, "Sizes": 2}

Path = tuple[int, ...]


def field_name(path: Path) -> str:
    """Return a path into a record in words: (4, 4, 3, 2) is Program.Nodes[3].Dst."""
    names: list[str] | dict[str, list[str]] | None = _RECORD
    text = ""
    of = {
        "Program": _PROGRAM, "Function": _FUNCTION, "Code": _CODE, "Objects": [_OBJECT], "Nodes": [_NODE],
        "Resumes": [_RESUME],
    }  # type: dict[str, Any]  # fmt: skip
    for step in path:
        if isinstance(names, list) and names and isinstance(names[0], list):
            text, names = f"{text}[{step}]", names[0]
        elif isinstance(names, list) and step < len(names):
            name = names[step]
            text, names = f"{text}.{name}", of.get(name)
            if name == "Code" and text.endswith("Code.Code"):
                names = None
        else:
            text, names = f"{text}[{step}]", None
    return text.lstrip(".")


def _at(tree: Any, path: Path) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _code_bytes(rng: random.Random, code: bytes) -> bytes:
    """Change instructions: an opcode, an operand, the order, the number."""
    units = [code[i : i + 2] for i in range(0, len(code), 2)]
    if not units:
        return code
    i, way = rng.randrange(len(units)), rng.randrange(7)
    unit = units[i].ljust(2, b"\0")
    if way == 0:
        units[i] = bytes([rng.choice(_OPCODES), unit[1]])
    elif way == 1:
        units[i] = bytes([unit[0], rng.choice([0, 1, 2, 3, 255, unit[1] ^ 1, unit[1] + 1 & 255, rng.randrange(256)])])
    elif way == 2:
        k = rng.randrange(len(units))
        units[i], units[k] = units[k], units[i]
    elif way == 3:
        del units[i]
    elif way == 4:
        units.insert(i, rng.choice(units))
    elif way == 5:
        units[i] = bytes([rng.choice(_OPCODES), rng.randrange(256)])
    else:
        units[i] = rng.choice(units)
    return b"".join(units)


def _bytes(rng: random.Random, data: bytes) -> bytes:
    """Change bytes at random."""
    at, way = rng.randrange(len(data) + 1), rng.randrange(8)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
    if way == 2:
        return data[:at] + data[at + rng.randrange(1, 9) :]
    if way == 3:
        n = rng.choice([1, 8, 64, 4096])
        return data[:at] + bytes(len(data[at : at + n])) + data[at + n :]
    flips = 1 if way > 5 else rng.randrange(2, 20)
    out = bytearray(data)
    for _ in range(flips if data else 0):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _changed(rng: random.Random, value: Any, siblings: list[Any], code: bool) -> Any:
    """Return another value of the same type."""
    same = [v for v in siblings if type(v) is type(value)]
    if same and rng.random() < 0.2:
        return rng.choice(same)
    if value is None or isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, value + rng.randrange(-8, 9), rng.randrange(64), rng.choice(_NUMBERS)])
    if isinstance(value, bytes):
        return _code_bytes(rng, value) if code and rng.random() < 0.8 else _bytes(rng, value)
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return rng.choice(
            [
                "",
                value[:at],
                value[1:],
                value + value,
                value[:at] + chr(rng.choice([0, 1, 48, 97, 233])) + value[at + 1 :],
            ]
        )
    items, way = list(value), rng.randrange(5)
    at = rng.randrange(len(items)) if items else 0
    if not items:
        return [0] if rng.random() < 0.5 else [[0, 0]]
    if way == 0:
        del items[at]
    elif way == 1:
        items.insert(at, items[rng.randrange(len(items))])
    elif way == 2:
        other = rng.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif way == 3:
        items = items[:at]
    else:
        items[at] = items[rng.randrange(len(items))]
    return items


def _choose(rng: random.Random, record: list[Any]) -> Path:
    """Return the path of a value in a record."""
    weights = [_WEIGHTS.get(name, 1) if record[i] else 0.2 for i, name in enumerate(_RECORD)]
    path: Path = (rng.choices(range(len(_RECORD)), weights)[0],)
    while isinstance(value := _at(record, path), list) and value and rng.random() > 0.12:
        path = (*path, rng.randrange(len(value)))
    return path


def _replaced(record: list[Any], path: Path, value: Any) -> list[Any]:
    out = list(record)
    out[path[0]] = value if len(path) == 1 else _replaced(record[path[0]], path[1:], value)
    return out


def _change(rng: random.Random, record: list[Any], other: list[Any]) -> tuple[list[Any], str]:
    """Change one value of a record, or take it from another record. Return what was changed in words."""
    path = _choose(rng, record)
    old = _at(record, path)
    if rng.random() < 0.15:
        try:
            new = _at(other, path)
        except (IndexError, TypeError):
            new = old
    else:
        name = field_name(path)
        new = _changed(rng, old, _at(record, path[:-1]) if len(path) > 1 else [], name.endswith("Code.Code"))
    return _replaced(record, path, new), f"{field_name(path)}: {_short(old)} -> {_short(new)}"


def _changes(record: list[Any], payload: bytes) -> list[str]:
    """Return in words what changed bytes mean, if they are CBOR."""
    try:
        now = unpacked(loads(payload))
    except (AssertionError, IndexError, KeyError, struct.error, UnicodeDecodeError, RecursionError, MemoryError):
        return ["no CBOR"]
    out: list[str] = []

    def walk(path: Path, a: Any, b: Any) -> None:
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                walk((*path, i), x, y)
        elif a != b:
            out.append(f"{field_name(path)}: {_short(a)} -> {_short(b)}")

    walk((), record, now)
    return out[:20]


def _short(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) and len(value) < 2000 else repr(value)
    return text if len(text) < 2000 else f"{text[:200]}... ({len(text)})"


@dataclass
class Trial:
    """A program with damaged files."""

    seed: int
    program: str
    plain: bool
    text: str  #: what was changed
    files: Files
    hurt: set[str] = field(default_factory=set)  #: paths of damaged files
    #: (folder, body, name to use or None for the one that fits) of files that get a checksum
    bodies: list[tuple[str, bytes, str | None]] = field(default_factory=list)


def _seal(trial: Trial, path: str, parts: Parts, name: str | None = None) -> None:
    del trial.files[path]
    trial.bodies.append((path.rpartition("/")[0], parts.body(), name))


def _whole(rng: random.Random, trial: Trial, path: str, others: list[tuple[str, bytes]]) -> None:
    """Damage that concerns a whole file: its key, its format, its place."""
    data, parts, way = trial.files[path], split(trial.files[path]), rng.randrange(7)
    folder, _, name = path.rpartition("/")
    own = [one for one in others if one[0] in trial.files]
    elsewhere, other = rng.choice(own if own and rng.random() < 0.5 else others)
    if way == 0 and elsewhere in trial.files:
        trial.files[path], trial.files[elsewhere] = other, data
        trial.hurt.add(elsewhere)
        trial.text = f"swapped with {elsewhere}"
    elif way == 1:
        trial.files[path] = other
        trial.text = f"has the content of {elsewhere}"
    elif way == 2 and elsewhere.rpartition("/")[0] != folder:
        del trial.files[path]
        trial.hurt.discard(path)
        moved = f"{folder}/{elsewhere.rpartition('/')[2]}"
        trial.files[moved] = other
        trial.hurt.add(moved)
        trial.text = f"{moved} has another key"
    elif way == 3:
        number = rng.choice([0, 2, 255, 1 << 31])
        _seal(trial, path, parts._replace(format=number))
        trial.text = f"format {number}"
    elif way == 4:
        at = rng.randrange(32)
        key = parts.key[:at] + bytes([parts.key[at] ^ 1 << rng.randrange(8)]) + parts.key[at + 1 :]
        _seal(trial, path, parts._replace(key=key))
        trial.text = "key"
    elif way == 5:
        _seal(trial, path, parts._replace(meta=_other_bytes(rng, parts.meta)), name)
        trial.text = "description, under the old name"
    else:
        _seal(trial, path, parts._replace(magic=b"GDEXPORT"))
        trial.text = "magic"


def _other_bytes(rng: random.Random, data: bytes) -> bytes:
    while (out := _bytes(rng, data)) == data:
        pass
    return out


def trials(programs: dict[str, Files], seeds: list[int]) -> list[Trial]:
    """Return the trials of the seeds. ``programs`` has the files that each program's translations are stored in."""
    every = [(path, data) for files in programs.values() for path, data in _ordered(files)]
    out = [_trial(random.Random(f"cache {seed}"), seed, programs, every) for seed in seeds]
    made = iter(sealed([body for trial in out for _, body, _ in trial.bodies]))
    for trial in out:
        for folder, _, name in trial.bodies:
            fits, data = next(made)
            path = f"{folder}/{name or fits}"
            trial.files[path] = data
            trial.hurt.add(path)
    return out


def _ordered(files: Files) -> list[tuple[str, bytes]]:
    """Return the files in an order that does not depend on their names, which change with each build."""
    payloads = {name: split(data).payload for name, data in files.items()}
    return sorted(files.items(), key=lambda one: (len(payloads[one[0]]), payloads[one[0]]))


_decoded: dict[bytes, list[Any]] = {}


def _record(data: bytes) -> list[Any]:
    if data not in _decoded:
        _decoded[data] = unpacked(loads(split(data).payload))
    return _decoded[data]


def _trial(rng: random.Random, seed: int, programs: dict[str, Files], every: list[tuple[str, bytes]]) -> Trial:
    program = rng.choice(sorted(programs))
    trial = Trial(seed, program, rng.random() < 0.3, "", dict(programs[program]))
    path, data = rng.choice(_ordered(trial.files))
    if trial.plain:
        trial.hurt.add(path)
        if rng.random() < 0.3:
            _whole(rng, trial, path, [one for one in every if one[0] != path])
        else:
            trial.files[path] = _other_bytes(rng, data)
            trial.text = f"{len(data)} bytes -> {len(trial.files[path])}"
        trial.text = f"{path}: {trial.text}"
        return trial
    parts = split(data)
    if rng.random() < 0.15:
        payload = _other_bytes(rng, parts.payload)
        texts = ["bytes of the payload", *_changes(_record(data), payload)]
    else:
        record, texts, payload = _record(data), [], parts.payload
        changes: Callable[[], bool] = lambda: payload == parts.payload or rng.random() < 0.25
        while changes():
            record, text = _change(rng, record, _record(rng.choice(every)[1]))
            texts.append(text)
            try:
                payload = dumps(packed(record))
            except (ValueError, TypeError):  # a number of more than 64 bits
                record, payload = _record(data), parts.payload
                texts.clear()
    trial.text = f"{path}: " + "; ".join(text for text in texts)
    _seal(trial, path, parts._replace(payload=payload))
    return trial
