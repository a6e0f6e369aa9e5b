"""The package has no import cycles, even with imports in functions: each module can be read and tested alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import project_support

PACKAGE = Path(project_support.ROOT) / "python" / "godynamo"


def modules(package: Path) -> dict[str, Path]:
    found = {}
    for path in package.rglob("*.py"):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_statements(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield all import statements except those for type checkers, which never run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        yield from import_statements(node)


def imported(module: str, path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of ``known`` that a module imports.

    The package's __init__ is left out, since it has run before any of its modules is imported.
    """
    within = module.split(".")[: None if path.name == "__init__.py" else -1]
    names = set()
    for node in import_statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
            continue
        parts = within[: len(within) - node.level + 1] if node.level else []
        base = ".".join([*parts, *filter(None, [node.module])])
        for alias in node.names:
            below = f"{base}.{alias.name}"
            names.add(below if below in known else base)
    return {n for n in names if n in known and "." in n} - {module}


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Return one cycle, or []."""
    done: set[str] = set()

    def walk(at: str, path: list[str]) -> list[str]:
        if at in path:
            return [*path[path.index(at) :], at]
        if at in done:
            return []
        for to in sorted(edges[at]):
            if found := walk(to, [*path, at]):
                return found
        done.add(at)
        return []

    return next((found for at in sorted(edges) if (found := walk(at, []))), [])


def test_no_module_imports_another_in_a_circle() -> None:
    known = modules(PACKAGE)
    assert len(known) > 100
    assert cycle({m: imported(m, path, known) for m, path in known.items()}) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "made"
    (package / "sub").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sub" / "__init__.py").write_text("")
    (package / "a.py").write_text("from .sub import b\n")
    (package / "sub" / "b.py").write_text("def f():\n    from .. import c\n")
    (package / "c.py").write_text("from made.a import x\n")
    known = modules(package)
    edges = {m: imported(m, path, known) for m, path in known.items()}
    assert cycle(edges) == ["made.a", "made.sub.b", "made.c", "made.a"]
    (package / "c.py").write_text("if TYPE_CHECKING:\n    from made.a import x\n")
    assert cycle({m: imported(m, path, known) for m, path in known.items()}) == []
