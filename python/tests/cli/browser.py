"""Opens our pages in a real browser: headless Chromium, offline; returns what it writes to its console.

    messages = open_page(path, SCREENSHOTS / "report.png")    # [] for a correct page
    text = dom(path, script="document.querySelector('#search').value = 'relu'")

Both skip the test, with the reason, if Chromium is not installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

#: screenshots of a test run are kept here for inspection
SCREENSHOTS = Path(__file__).resolve().parents[3] / "build" / "screenshots"

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 120
#: how far the page's clock runs before the DOM is read, in milliseconds of virtual time (timers fire without waiting)
_BUDGET = 5000
_CONSOLE = re.compile(r'^\[[^\]]*:CONSOLE[:(]\d+\)?\] "(.*?)", source: (.*?) \((\d+)\)$', re.MULTILINE | re.DOTALL)


def chromium() -> str:
    """Return the path of Chromium; GODYNAMO_CHROMIUM overrides it. Skips the test if there is none."""
    found = os.environ.get("GODYNAMO_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is installed (apt-get install chromium); pages are not opened")
    return found


def open_page(
    path: str | os.PathLike[str],
    screenshot: str | os.PathLike[str] | None = None,
    *,
    script: str = "",
    dark: bool = False,
    size: tuple[int, int] = (1400, 1000),
    fragment: str = "",
) -> list[str]:
    """Open a file and return the messages on the browser's console, as "message (source:line)".

    These are exceptions of scripts, resources that are refused or not found, and what the page logs: a correct page
    yields []. ``screenshot`` is a PNG of ``size`` pixels; its folder is created. ``script`` runs at the end of the
    page. ``fragment`` is appended after ``#``.
    """
    arguments = [f"--window-size={size[0]},{size[1]}", "--hide-scrollbars"]
    if screenshot is not None:
        target = Path(screenshot).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        arguments.append(f"--screenshot={target}")
    else:
        arguments.append("--dump-dom")
    if dark:
        arguments.append("--blink-settings=preferredColorScheme=0")
    ran = _run(path, arguments, script, fragment)
    assert screenshot is None or target.exists(), f"no picture was made: {ran.stderr[-2000:]}"
    return [f"{text} ({source}:{line})" for text, source, line in _CONSOLE.findall(ran.stderr)]


def dom(
    path: str | os.PathLike[str], *, script: str = "", fragment: str = "", size: tuple[int, int] = (1400, 1000)
) -> str:
    """Return the page's HTML after its scripts, and then ``script``, have run in a window of ``size`` pixels."""
    return _run(path, ["--dump-dom", f"--window-size={size[0]},{size[1]}"], script, fragment).stdout


def _run(
    path: str | os.PathLike[str], arguments: list[str], script: str, fragment: str
) -> subprocess.CompletedProcess[str]:
    program = chromium()
    page = Path(path).resolve()
    with tempfile.TemporaryDirectory(prefix="godynamo-chromium-") as profile:
        if script:
            page = Path(profile) / page.name
            page.write_text(f"{Path(path).read_text()}\n<script>{script}</script>\n")
        command = [
            program,
            "--headless=new",
            "--no-sandbox",  # containers have no user namespaces, and the page is our own
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",  # offline: every network request fails and is reported
            f"--user-data-dir={profile}/profile",
            "--enable-logging=stderr",
            f"--virtual-time-budget={_BUDGET}",
            *arguments,
            page.as_uri() + (f"#{fragment}" if fragment else ""),
        ]
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    assert ran.returncode == 0, f"{program} ended with {ran.returncode}: {ran.stderr[-2000:]}"
    return ran
