"""Describes the environment on which figures depend."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Return date, processor, cores, load and versions, without importing the packages."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": version("torch"),
        "godynamo": version("godynamo"),
    }


def version(package: str) -> str:
    """Return the installed version of a package; "" if it has no metadata, as a checkout on ``sys.path``."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
