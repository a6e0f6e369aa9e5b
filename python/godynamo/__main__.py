"""``python -m godynamo``: runs the command line tool with this Python."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def _tool() -> str | None:
    """Return the path of the tool: next to this Python (where pip puts it), in this checkout's build, or on PATH."""
    for folder in (Path(sysconfig.get_path("scripts")), Path(__file__).parents[2] / "build" / "bin"):
        if os.access(folder / "godynamo", os.X_OK):
            return str(folder / "godynamo")
    return shutil.which("godynamo")


def main() -> None:
    """Replace this process by the tool; exit with 2 if the tool is not found."""
    tool = _tool()
    if tool is None:
        print(
            "godynamo: the command line tool is not installed: pip install godynamo puts it beside python",
            file=sys.stderr,
        )
        sys.exit(2)
    os.environ["GODYNAMO_PYTHON"] = sys.executable
    os.execv(tool, ["godynamo", *sys.argv[1:]])


if __name__ == "__main__":
    main()
