"""IPython: ``%load_ext godynamo`` adds ``%%godynamo``, ``%explain`` and ``%godynamo_stats``."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections import Counter
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class
from IPython.display import display

from .. import exc, utils
from .._called import runtime
from .._core import core
from .._explain import explain as _explain
from .._user.optimize import Optimizer, optimize, transparent

_CELL_USAGE = "%%godynamo [--backend NAME] [--nopython] [--quiet], with code in the lines below or after --"


@magics_class
class GodynamoMagics(Magics):  # type: ignore[misc, unused-ignore] # IPython's classes have no types on some versions
    """The magics of one shell."""

    shell: Any

    @line_cell_magic  # type: ignore[untyped-decorator, unused-ignore]
    def godynamo(self, line: str, cell: str | None = None) -> Any:
        """Run a cell with all functions that it calls optimized, and report the result in one line.

        ``%%godynamo [--backend NAME] [--nopython] [--quiet]`` above the cell; ``%godynamo [options] -- statement`` for
        a line. The code of the cell itself runs in CPython; functions that it defines stay as they are.
        """
        options, _, statement = f" {line} ".partition(" -- ") if cell is None else (line, "", cell)
        optimizer, quiet = _options(options)
        if not statement.strip():
            raise UsageError(_CELL_USAGE)
        heard: list[dict[str, Any]] = []
        runtime.listeners.append(heard.append)
        # Each read of heard.append is a new object. ``finally`` removes this one, by identity and not by value.
        listener = runtime.listeners[-1]
        try:
            return self._run(statement, optimizer)
        finally:
            runtime.listeners[:] = [f for f in runtime.listeners if f is not listener]
            if not quiet:
                print(_summary(heard))

    @line_magic  # type: ignore[untyped-decorator, unused-ignore]
    def explain(self, line: str) -> Any:
        """Explain a call: ``%explain f(x, n=2)`` shows its graphs, breaks and guards; ``-o`` returns the explanation.

        The result of the call is the explanation's ``result``.
        """
        give_back = line.startswith("-o ")
        text = line.removeprefix("-o ").strip()
        call = _call(text)
        names = self.shell.user_ns
        fn = eval(compile(ast.Expression(call.func), "<%explain>", "eval"), self.shell.user_global_ns, names)
        if not callable(fn):
            raise UsageError(
                f"%explain: {ast.unparse(call.func)} is of type {type(fn).__name__}, which cannot be called"
            )
        # The expressions of the arguments run here, once. They are not part of the explained call.
        call.func = ast.Name("__godynamo_explained__", ast.Load())
        code = compile(ast.fix_missing_locations(ast.Expression(call)), "<%explain>", "eval")
        explanation = eval(code, {**self.shell.user_global_ns, **names, "__godynamo_explained__": _explain.explain(fn)})
        if give_back:
            return explanation
        display({"text/plain": str(explanation), "text/html": explanation._repr_html_()}, raw=True)  # type: ignore[no-untyped-call, unused-ignore]
        return None

    @line_magic  # type: ignore[untyped-decorator, unused-ignore]
    def godynamo_stats(self, line: str) -> None:
        """Print what godynamo did in this process. With a name, print the cache of this optimized callable.

        ``%godynamo_stats``, ``%godynamo_stats f``.
        """
        text = line.strip()
        if not text:
            print(_process())
            return
        try:
            fn = eval(text, self.shell.user_global_ns, self.shell.user_ns)
        except Exception as error:
            raise UsageError(f"%godynamo_stats: {text}: {type(error).__name__}: {error}") from None
        try:
            stats = _explain.cache_stats(fn)
        except TypeError as error:
            raise UsageError(f"%godynamo_stats: {error}") from None
        print(", ".join(f"{name}: {n}" for name, n in stats.items()))
        for i, guards in enumerate(_explain.guards(fn), 1):
            print(f"entry {i}, {guards.hits} hits: {guards.text}")

    def _run(self, source: str, optimizer: Optimizer) -> Any:
        """Run statements in the user's namespace; return the value of the last one if it is an expression."""
        shell = self.shell
        text = shell.transform_cell(source)
        tree = shell.transform_ast(shell.compile.ast_parse(text))
        name = shell.compile.cache(text)  # so that tracebacks and explanations find the cell's lines
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        body = compile(tree, name, "exec")
        value = compile(ast.Expression(last.value), name, "eval") if last is not None else None
        if last is not None and text.rstrip().endswith(";"):  # IPython shows no result of such a cell
            value, body = None, compile(ast.Module([*tree.body, last], []), name, "exec")
        with optimizer:
            exec(body, shell.user_ns)
            return eval(value, shell.user_ns) if value is not None else None


def _options(line: str) -> tuple[Optimizer, bool]:
    """Return (the optimizer for the cell, whether to be quiet). Raises UsageError for unknown options."""
    backend, nopython, quiet = "eager", False, False
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%godynamo: {error}") from None
    while words:
        word = words.pop(0)
        if word == "--backend" and words:
            backend = words.pop(0)
        elif word.startswith("--backend="):
            backend = word.removeprefix("--backend=")
        elif word == "--nopython":
            nopython = True
        elif word in ("--quiet", "-q"):
            quiet = True
        else:
            raise UsageError(f"{word!r} is no option: {_CELL_USAGE}")
    try:
        made = transparent(optimize(backend=backend, nopython=nopython))
        return (made if nopython else made.everywhere()), quiet
    except exc.InvalidBackend as error:
        raise UsageError(f"%%godynamo: {error}") from None


def _call(text: str) -> ast.Call:
    """Parse a line that is a call. Raises UsageError for anything else."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise UsageError(f"%explain: {error.msg}: {text}") from None
    if not isinstance(tree.body, ast.Call):
        raise UsageError(f"%explain takes a call, as in %explain f(x), not {text!r}")
    return tree.body


def _summary(heard: list[dict[str, Any]]) -> str:
    """Return a line about a cell's translations, and one per reason and place of a break, except those in IPython."""
    heard = [info for info in heard if not runtime.users_frame(info).file.startswith(_shells())]
    entries = [info.get("info") or {} for info in heard]
    done = sum(
        info["status"] == "ok" and not entry.get("nothing_to_capture")
        for info, entry in zip(heard, entries, strict=True)
    )
    breaks = Counter(
        f"{row[0]} {row[1]}" + (f" ({_place(row[3])})" if row[3] else "")
        for info, entry in zip(heard, entries, strict=True)
        for row in (*entry.get("breaks", ()), *info["breaks"])
    )
    graphs, ops = (sum(entry.get(name, 0) for entry in entries) for name in ("graphs", "ops"))
    lines = [
        f"godynamo: {done} frames translated, {graphs} graphs with {ops} operations, {sum(breaks.values())} breaks"
    ]
    return "\n".join([*lines, *(f"  {n} × {text}" for text, n in breaks.items())])


def _shells() -> tuple[str, ...]:
    """Return the folders of the packages that run cells."""
    modules = (sys.modules.get(name) for name in ("IPython", "ipykernel", "traitlets", "ipywidgets"))
    files = (getattr(module, "__file__", None) for module in modules)
    return tuple(os.path.join(os.path.dirname(file), "") for file in files if file)


def _place(stack: tuple[tuple[str, str, int], ...]) -> str:
    """Return the place of a break, the user's innermost frame, which is in this cell, another cell or a file."""
    users = [frame for frame in stack if not frame[1].startswith(_shells())]
    name, file, line = (users or stack)[0]
    number = re.search(r"<ipython-input-(\d+)", file)
    if number is not None:
        file = f"cell {number[1]}"
    elif os.path.basename(os.path.dirname(file)).startswith("ipykernel_"):
        file = "cell"
    return f"{file}:{line}, in {name}"


def _process() -> str:
    frames, stats = utils.counters["frames"], utils.counters["stats"]
    lines = [
        f"frames: {frames['ok']} of {frames['total']} translated; "
        f"{stats['unique_graphs']} graphs with {stats['calls_captured']} operations",
        f"internal errors: {core.counters().get('internal_errors', 0)}",
        *(f"break, {n} ×: {reason}" for reason, n in utils.counters["graph_break"].most_common()),
        utils.compile_times(),
    ]
    return "\n".join(lines)


def load_ipython_extension(shell: Any) -> None:
    """Add the magics, for ``%load_ext godynamo``."""
    shell.register_magics(GodynamoMagics)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics, for ``%unload_ext godynamo``."""
    for name in ("godynamo", "explain", "godynamo_stats"):
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(name, None)
