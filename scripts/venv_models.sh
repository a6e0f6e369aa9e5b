#!/bin/bash
# Makes the virtual environment of `make models`: model libraries on top of the project's environment. A .pth file makes
# the project's torch visible in it.
#
#   venv_models.sh   makes it, or updates it if requirements-models.txt has changed; prints its path
#
# $GODYNAMO_MODELS_VENV is the path, by default <user cache directory>/godynamo/models-py3.11.
set -euo pipefail
cd "$(dirname "$0")/.."

base=$(scripts/venv.sh)
cache=${XDG_CACHE_HOME:-$HOME/.cache}
venv=${GODYNAMO_MODELS_VENV:-$cache/godynamo/models-py$(scripts/find_python.sh --version)}
want="$base $(cat requirements-dev.txt requirements-models.txt | sha256sum | cut -d' ' -f1)"
stamp=$venv/.godynamo-requirements
current() { [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; }

if ! current; then
    mkdir -p "$(dirname "$venv")"
    exec 9>"$venv.lock"
    flock 9
    if ! current; then # another clone may have made it while this one waited
        "$base/bin/python" -m venv --clear "$venv" >&2
        site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
        "$base/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/godynamo-base.pth"
        "$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r requirements-models.txt >&2
        echo "$want" >"$stamp"
    fi
fi
echo "$venv"
