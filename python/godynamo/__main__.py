"""``python -m godynamo``: the command line tool, for this Python."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def _tool() -> str | None:
    """The tool beside this Python, where pip puts it; else that of the checkout this package lies in; else the one on PATH."""
    for folder in (Path(sysconfig.get_path("scripts")), Path(__file__).parents[2] / "build" / "bin"):
        if os.access(folder / "godynamo", os.X_OK):
            return str(folder / "godynamo")
    return shutil.which("godynamo")


def main() -> None:
    """Becomes the tool. Exits with 2 where there is none."""
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
