"""Entry point of the pytest plugin: its options and marker. It is outside the package, whose import loads torch.

``pytest --godynamo=on`` runs every test under godynamo. ``--godynamo=strict`` also fails tests that were not captured
as their marker requires. godynamo/_tools/pytest.py is imported only with one of these options.
"""

from __future__ import annotations

import pytest

MODES = ("off", "on", "strict")

_MARKER = (
    "godynamo(off=False, nopython=False, max_breaks=None, backend=None): with --godynamo=on or strict: leave the test "
    "alone; "
    "in strict mode fail it for any graph break, or for more than so many; hand graphs to another backend"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("godynamo")
    group.addoption(
        "--godynamo",
        choices=MODES,
        default=None,
        help="run tests under godynamo: off (default), on, or strict: fail a test whose translation had an internal "
        "error, or "
        "more graph breaks than its marker allows",
    )
    group.addoption(
        "--godynamo-backend",
        metavar="NAME",
        default=None,
        help="what graphs are handed to (default: eager, written inline)",
    )
    parser.addini("godynamo", f"default of --godynamo: {', '.join(MODES)}", default="off")


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker, and the plugin itself if it is enabled."""
    config.addinivalue_line("markers", _MARKER)
    mode = config.getoption("--godynamo") or config.getini("godynamo")
    if mode not in MODES:
        raise pytest.UsageError(f"the setting godynamo is one of {', '.join(MODES)}, not {mode!r}")
    backend = config.getoption("--godynamo-backend")
    if mode == "off":
        if backend:
            raise pytest.UsageError("--godynamo-backend goes with --godynamo=on or strict")
        return
    from godynamo._tools.pytest import Plugin

    config.pluginmanager.register(Plugin(config, mode, backend), "godynamo-runner")
