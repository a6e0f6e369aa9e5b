#!/bin/bash
# The virtual environment of the project: one for all clones, outside of them.
#
#   venv.sh          makes or updates it when requirements-dev.txt has changed, prints its path
#   venv.sh --path   prints the path only
#
# $GODYNAMO_VENV says where, else <user cache directory>/godynamo/venv-py3.11. A stamp in it names the requirements it
# was made for; a lock beside it keeps two clones from installing at once.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}
venv=${GODYNAMO_VENV:-$cache/godynamo/venv-py3.11}
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
    if ! current; then # another clone may have done it while this one waited
        [ -x "$venv/bin/python" ] || "$(scripts/find_python.sh)" -m venv "$venv" >&2
        "$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r requirements-dev.txt >&2
        echo "$want" >"$stamp"
    fi
fi
echo "$venv"
