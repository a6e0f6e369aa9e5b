#!/bin/bash
# Makes the virtual environment of the project: one for each Python, for all clones, outside of them.
#
#   venv.sh          makes it, or updates it if requirements-dev.txt has changed; prints its path
#   venv.sh --path   only prints the path
#
# $PYTHON chooses the Python (scripts/find_python.sh). $GODYNAMO_VENV is the path, by default
# <user cache directory>/godynamo/venv-py3.11, with the version of the Python. A stamp in it names the
# requirements that it was made for. A lock beside it keeps two clones from installing at once.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}
venv=${GODYNAMO_VENV:-$cache/godynamo/venv-py$(scripts/find_python.sh --version)}
if [ "${1:-}" = "--path" ]; then
    echo "$venv"
    exit 0
fi

want=$(sha256sum requirements-dev.txt | cut -d' ' -f1)
stamp=$venv/.godynamo-requirements
current() { [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; }

if ! current; then
    mkdir -p "$(dirname "$venv")"
    exec 9>"$venv.lock"
    flock 9
    if ! current; then # another clone may have made it while this one waited
        room=$(df -Pk "$(dirname "$venv")" | awk 'NR == 2 {print int($4 / 1048576)}')
        if [ ! -x "$venv/bin/python" ] && [ "${room:-7}" -lt 7 ]; then
            echo "no room for the virtual environment $venv: it needs 7 GB, and $room GB are free" >&2
            exit 1
        fi
        echo "making the virtual environment $venv: about 6 GB, 2 to 10 minutes by the network" >&2
        pip=("$venv/bin/python" -m pip)
        if [ ! -x "$venv/bin/python" ]; then
            python=$(scripts/find_python.sh)
            "$python" -c "import ensurepip" 2>/dev/null && without= || without=--without-pip
            "$python" -m venv $without "$venv" >&2
        fi
        # A Python without ensurepip has no pip: another Python's pip installs into its environment.
        "${pip[@]}" --version >/dev/null 2>&1 || pip=(python3 -m pip --python "$venv/bin/python")
        # pip's line about each package that it fetches shows the progress. Packages that are already installed are left
        # out.
        "${pip[@]}" install --disable-pip-version-check --progress-bar off -r requirements-dev.txt |
            { grep --line-buffered -v "^Requirement already satisfied" || true; } >&2
        echo "$want" >"$stamp"
    fi
fi
echo "$venv"
