"""Prints or sets the environment for compiling the packages that use CPython.

eval "$(scripts/go_env.sh)"                          then go build, go vet, go test as usual
scripts/go_env.sh go vet ./...                       one command
scripts/go_env.sh --embed go test -tags pyembed ./pyhook/...
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "build_backend"))

import native


def main(arguments: list[str]) -> int:
    """Run the command, or print shell assignments; return 2 if something is missing."""
    embed = arguments[:1] == ["--embed"]
    command = arguments[1:] if embed else arguments
    try:
        environment = native.cgo_environment(embed)
    except native.BuildError as error:
        print(f"go_env: {error}", file=sys.stderr)
        return 2
    if command:
        # Tests are about translating, so they load no translations from the user's folder.
        os.execvpe(command[0], command, {"GODYNAMO_CACHE_DIR": "0", **os.environ, **environment})
    for name, value in environment.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
