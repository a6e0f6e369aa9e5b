"""Known text, bytes and numbers: methods, formatting, conversions, numpy scalars."""

from __future__ import annotations

import numpy as np
import pytest

from harness.cases import Case, Cases, check

cases = Cases()


@cases
def text_methods(x):
    s = "Hello, World"
    return (
        (
            s.lower(),
            s.upper(),
            s.split(", "),
            s.replace("l", "L"),
            s.find("W"),
            s.index("o"),
            s.count("l"),
            s.title(),
            s.swapcase(),
        ),
        (
            s.startswith("He"),
            s.endswith(("x", "d")),
            s.partition(","),
            s.rpartition("o"),
            s.center(20, "*"),
            s.zfill(15),
            s.ljust(14),
        ),
        (
            "a,b,c".split(",", 1),
            "a\nb".splitlines(),
            "-".join(["a", "b"]),
            " a ".strip(),
            "abc".isalpha(),
            "12".isdigit(),
            s.encode(),
        ),
        (
            s.removeprefix("Hello"),
            s.translate({72: "J"}),
            s[::-1],
            s[1:3],
            s[0],
            len(s),
            "W" in s,
            s * 2,
            s + "!",
            s < "I",
            ord("a"),
        ),
        x + 1,
    )


@cases
def joins(x):
    words = [str(i) for i in range(3)]
    return (
        ",".join(words),
        "".join(c for c in "abc"),
        "/".join(("a", "b")),
        "+".join({"k": 1}),
        "".join(map(str, [1, 2])),
        x + 1,
    )


@cases
def formatting(x):
    name, n, f = "layer", 3, 2.5
    return (
        (
            f"{name}.{n}",
            f"{n:03d}",
            f"{f:.2f}",
            f"{name!r}",
            f"{name:>10}",
            f"{n=}",
            f"{[1, 2]}",
            f"{(n, name)}",
            f"{{{n}}}",
            f"{n:{n}}",
        ),
        ("%s-%d" % (name, n), "%5.1f" % f, "%(a)s" % {"a": 1}, "%r" % name, "%s" % [1, 2], "%s" % (None,)),
        (
            "{}.{}".format(name, n),
            "{0}{1}{0}".format("a", "b"),
            "{a:>4}".format(a=n),
            "{0[1]}".format([1, 2]),
            format(f, ".1f"),
        ),
        (
            str(n),
            repr(name),
            str([1, "a"]),
            repr({"a": 1}),
            str((1,)),
            str(None),
            ascii("é"),
            bin(5),
            hex(255),
            oct(8),
            chr(97),
        ),
        x + 1,
    )


@cases
def bytes_methods(x):
    b = b"abc"
    return (
        b.upper(),
        b[0],
        b[1:],
        list(b),
        b.hex(),
        bytes([1, 2]),
        bytes.fromhex("ff"),
        b.decode(),
        b + b"d",
        b"b" in b,
        len(b),
        int.from_bytes(b, "big"),
        x + 1,
    )


@cases
def integers(x):
    n = 10
    return (
        n.bit_length(),
        (-7) // 2,
        (-7) % 3,
        divmod(7, -2),
        n.to_bytes(2, "big"),
        int("12"),
        int("ff", 16),
        int(3.9),
        n.real,
        n.as_integer_ratio(),
        pow(2, 10, 7),
        abs(-3),
        ~n,
        n << 2,
        True + 1,
        round(15, -1),
        x + 1,
    )


@cases
def floats(x):
    f = 2.5
    return (
        f.is_integer(),
        f.hex(),
        float("1e3"),
        float("inf"),
        round(f),
        round(2.675, 2),
        f.as_integer_ratio(),
        float.fromhex("0x1p3"),
        int(f),
        f // 2,
        f % 2,
        divmod(f, 2),
        -f,
        abs(-f),
        x + 1,
    )


@cases
def complexes(x):
    c = complex(1, 2)
    return c.real, c.imag, c.conjugate(), abs(3 + 4j), c * 2, complex("1+2j"), c == 1 + 2j, x + 1


@cases
def numbers_mixed(x):
    return (
        1 == 1.0,
        1 < 2.5,
        0.1 + 0.2,
        7 / 2,
        2**-1,
        2**0.5,
        10**20,
        1_000_000 * 1_000_000,
        int(True),
        float(1),
        bool(0.0),
        min(1, 2.0),
        max(1.0, 1),
        sum([0.1] * 3),
        x + 1,
    )


@cases(breaks=1)
def bad_conversion(x):
    y = x + 1
    return y, int("abc")


@cases(breaks=1)
def division_by_zero(x):
    y = x + 1
    return y, 1 // 0


@cases(breaks=1)
def bad_operands(x):
    y = x + 1
    return y, "a" + 1


@cases(args=lambda: (np.float32(2.5), np.int64(3)))
def numpy_scalars(x, f, i):
    return f + 1, i * 2, f * i, int(i), float(f), i == 3, x * float(f)


@cases(args=lambda: ("prefix", 3, 0.5))
def text_of_arguments(x, s, n, f):
    key = f"{s}.{n}.{f:.1f}"
    return key.split("."), s.upper() + str(n), {key: x + n}, s[n:], n.__class__.__name__, type(f).__name__


@cases
def branches_on_text(x):
    mode = "reflect"
    if mode.startswith("ref") and mode in ("reflect", "same"):
        x = x + len(mode)
    return x, mode == "reflect", mode is not None


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_texts(case: Case) -> None:
    check(case)
