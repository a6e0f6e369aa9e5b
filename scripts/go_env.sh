#!/bin/sh
# Sets the environment for go build, vet and test by hand; see go_env.py. Uses $PYTHON, else the project's virtual
# environment, else any CPython 3.11 that is found.
here=$(dirname "$0")
if [ -z "${PYTHON:-}" ]; then
    venv=$("$here/venv.sh" --path 2>/dev/null) && [ -x "$venv/bin/python" ] && PYTHON="$venv/bin/python"
fi
python=$(PYTHON="${PYTHON:-}" "$here/find_python.sh") || exit 1
exec "$python" "$here/go_env.py" "$@"
