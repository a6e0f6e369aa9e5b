"""Runs a user's script or module as ``python`` would, with chosen functions wrapped.

The program sees the same environment as in plain Python: it is ``__main__``, with its own ``__file__``, ``sys.argv``
and ``sys.path[0]``, and multiprocessing's spawn finds it. Its exceptions are shown without our frames.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import importlib.util
import io
import os
import sys
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from .problem import Problem, nearest

Wrap = Callable[[Any], Any]

#: The name in builtins from which added decorators read their wrappers. So the program's globals need not change.
_HOOK = "__godynamo_wrap__"


@dataclass(frozen=True)
class Target:
    """A program and its arguments. ``name`` is a file or, with ``module``, the name for ``python -m``."""

    name: str
    arguments: tuple[str, ...] = ()
    module: bool = False


@dataclass
class _Program:
    path: str
    source: bytes
    namespace: dict[str, Any]
    first_on_path: str


def run_script(
    target: Target,
    wrap: Mapping[str, Wrap] | None = None,
    around: Callable[[], AbstractContextManager[Any]] = nullcontext,
    name: str = "__main__",
    namespace: dict[str, Any] | None = None,
) -> int:
    """Run a program to its end, inside ``around()``, and return its exit code.

    wrap: a function's qualified name → a decorator, which is applied after all other decorators of the function. A name
    is "step", "Model.forward", "outer.<locals>.inner", or "package.module:Model.forward" for an imported module. The
    name of a class means its ``forward``, or else its ``__call__``.

    name: the program's ``__name__``. namespace: receives the program's globals when the program has ended.

    If the program raises SystemExit, the exit code is its code, and its message is printed to stderr. Another exception
    is shown as Python shows it, without our frames, and the exit code is 1. KeyboardInterrupt is shown and raised
    again: when it leaves ``__main__``, Python runs atexit functions, flushes open files and ends by the signal. Raises
    Problem for a missing file or module, and for names that the program does not define.
    """
    program = _module(target.name) if target.module else _script(target.name)
    wrappers: list[Wrap] = []
    code = _compiled(program, dict(wrap or {}), wrappers)
    main = types.ModuleType("__main__")
    main.__dict__.update(program.namespace, __builtins__=builtins, __name__=name)
    sys.modules[name] = main
    sys.modules["__main__"], sys.argv = main, [program.path, *target.arguments]
    _first_on_path(program.first_on_path)
    if wrappers:
        setattr(builtins, _HOOK, wrappers)
    try:
        with around():
            exec(code, main.__dict__)
    except SystemExit as stop:
        return _exit_code(stop)
    except Problem:
        raise
    except KeyboardInterrupt as interrupt:
        _show(interrupt)
        sys.excepthook = _shown
        raise
    except BaseException as error:
        _show(error)
        return 1
    finally:
        if namespace is not None:
            namespace.update(main.__dict__)
    return 0  # the program's module stays in sys.modules, since threads, atexit functions and pickles may use it


def _first_on_path(folder: str) -> None:
    """Set sys.path[0] to the program's folder, as python does. ``python -m`` has set it to the current folder."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _script(name: str) -> _Program:
    if os.path.isdir(name):
        inner = os.path.join(name, "__main__.py")
        if not os.path.isfile(inner):
            raise Problem(f"{name} is a folder without __main__.py: name a script in it")
        return _program(inner, os.path.abspath(name), None, "")
    if not os.path.exists(name):
        folder, base = os.path.split(name)
        try:
            near = nearest(base, os.listdir(folder or "."))
        except OSError:
            near = ""
        raise Problem(f"there is no file {name}{near}")
    if zipfile.is_zipfile(name):
        raise Problem(f"{name} is an archive: unpack it and name its __main__.py")
    return _program(name, os.path.dirname(os.path.realpath(name)), None, None)


def _program(path: str, first: str, spec: importlib.machinery.ModuleSpec | None, package: str | None) -> _Program:
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}") from None
    absolute = os.path.abspath(path)  # as Python does for relative paths
    loader = spec.loader if spec is not None else importlib.machinery.SourceFileLoader("__main__", absolute)
    namespace: dict[str, Any] = {
        "__name__": "__main__",
        "__file__": absolute,
        "__loader__": loader,
        "__package__": package,
        "__spec__": spec,
        "__cached__": None,
        "__doc__": None,
        "__annotations__": {},
    }
    return _Program(path, source, namespace, first)


def _module(name: str) -> _Program:
    folder = os.getcwd()
    _first_on_path(folder)
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                raise Problem(f"{name} is a package without __main__: name a module of it")
    except (ImportError, ValueError) as error:
        raise Problem(f"there is no module {name}: {error}") from None
    if spec is None:
        raise Problem(f"there is no module {name} in {folder} nor where {sys.executable} looks")
    if not spec.origin or not spec.has_location or not spec.origin.endswith(".py"):
        raise Problem(f"module {name} has no Python source")
    return _program(spec.origin, folder, spec, spec.parent or "")


# ---- wrapping ----


def _compiled(program: _Program, wrap: dict[str, Wrap], wrappers: list[Wrap]) -> types.CodeType:
    file = str(program.namespace["__file__"])
    try:
        if not wrap:
            return compile(program.source, file, "exec", dont_inherit=True)
        tree = ast.parse(program.source, file)
    except (SyntaxError, ValueError) as error:
        _show(error)
        raise SystemExit(1) from None
    elsewhere: dict[str, dict[str, Wrap]] = {}
    known = definitions(tree)
    imported = _imported(tree)
    for name, wrapper in wrap.items():
        module, found, inner = name.partition(":")
        if found:
            elsewhere.setdefault(module, {})[inner] = wrapper
        elif name in known:
            _decorate(_function(known, name, program.path), len(wrappers))
            wrappers.append(wrapper)
        elif name.split(".")[0] in imported:
            head, _, rest = name.partition(".")
            module, original = imported[head]
            elsewhere.setdefault(module, {})[f"{original}.{rest}" if rest else original] = wrapper
        else:
            raise Problem(f"{program.path} has no function {name}{nearest(name, [*known, *imported])}")
    if elsewhere:
        sys.meta_path.insert(0, _Finder(elsewhere))
    return compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(tree: ast.AST) -> dict[str, _Definition]:
    """Return a program's functions and classes by qualified name, the last one if several have the same name."""
    found: dict[str, _Definition] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = prefix + child.name
                found[name] = child
                walk(child, f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>.")
            else:
                walk(child, prefix)

    walk(tree, "")
    return found


def _imported(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return {name: (module, name in the module)} for each absolute ``from module import name``."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    }


def _function(known: dict[str, _Definition], name: str, path: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    node = known[name]
    if isinstance(node, ast.ClassDef):
        for method in ("forward", "__call__"):
            if isinstance(inner := known.get(f"{name}.{method}"), (ast.FunctionDef, ast.AsyncFunctionDef)):
                return inner
        raise Problem(f"{path}: {name} is a class without forward and __call__: name one of its methods")
    return node


def _decorate(node: ast.FunctionDef | ast.AsyncFunctionDef, index: int) -> None:
    """Add the decorator at the position of the function's first line, so that co_firstlineno does not change."""
    first = node.decorator_list[0] if node.decorator_list else node
    decorator = ast.Subscript(ast.Name(_HOOK, ast.Load()), ast.Constant(index), ast.Load())
    for part in ast.walk(decorator):
        if isinstance(part, ast.expr):
            part.lineno = part.end_lineno = first.lineno
            part.col_offset = part.end_col_offset = first.col_offset
    node.decorator_list.insert(0, decorator)


class _Finder:
    """A finder that wraps functions of modules after their import. The other finders do the import itself."""

    def __init__(self, wanted: dict[str, dict[str, Wrap]]) -> None:
        self._wanted = wanted
        for name in [name for name in wanted if name in sys.modules]:
            replace(sys.modules[name], wanted.pop(name))

    def find_spec(
        self, name: str, path: Any = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the module with the other finders, and replace its loader by one that also wraps functions."""
        functions = self._wanted.pop(name, None)
        if functions is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, functions)  # type: ignore[assignment]
        return spec


class _Loader:
    def __init__(self, loader: Any, functions: dict[str, Wrap]) -> None:
        self._loader = loader
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Restore the module's original loader, run the module, then wrap its functions."""
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        replace(module, self._functions)


def replace(module: types.ModuleType, functions: Mapping[str, Wrap]) -> None:
    """Wrap functions of a module by their qualified names. Raises Problem for names that the module lacks."""
    for name, wrapper in functions.items():
        *owners, last = name.split(".")
        owner: Any = module
        try:
            for part in owners:
                owner = getattr(owner, part)
            found = vars(owner)[last]
        except (AttributeError, KeyError, TypeError):
            known = [n for n, v in vars(owner).items() if callable(v)] if hasattr(owner, "__dict__") else []
            raise Problem(f"module {module.__name__} has no function {name}{nearest(last, known)}") from None
        if isinstance(found, type):
            owner, last = found, "forward" if "forward" in vars(found) else "__call__"
            if last not in vars(found):
                raise Problem(
                    f"{module.__name__}.{name} is a class without forward and __call__: name one of its methods"
                )
            found = vars(found)[last]
        setattr(owner, last, wrapper(found))


# ---- the program's end ----


def _exit_code(stop: SystemExit) -> int:
    """Return the exit code that Python would return. If the SystemExit has a text, print it to stderr."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Pass an exception to sys.excepthook without our frames, as if the program had been started by python."""
    seen: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:
        link = chain.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = _of_the_program(link.__traceback__)
            chain += [link.__cause__, link.__context__]
    sys.excepthook(type(error), error, error.__traceback__)


def _shown(*_: object) -> None:
    """Do nothing. This is the excepthook for an exception that has been shown already."""


def _of_the_program(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Drop the frames of this package and of explain.py from a traceback, also between frames of the program."""
    kept = [t for t in _levels(traceback) if not _ours(t.tb_frame.f_code.co_filename)]
    below = None
    for level in reversed(kept):
        level.tb_next, below = below, level
    return below


def _levels(traceback: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _ours(file: str) -> bool:
    folder = os.path.dirname(__file__)
    return file.startswith(folder + os.sep) or file == os.path.join(os.path.dirname(folder), "_explain", "explain.py")
