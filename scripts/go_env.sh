#!/bin/sh
# Sets the environment for go build, vet and test by hand; see go_env.py. Uses $PYTHON, else the project's virtual
# environment, else any CPython that find_python.sh finds.
here=$(dirname "$0")
case "${PYTHON:-}" in
"" | [0-9].[0-9]*) # a version's environment, if it has been made
    venv=$("$here/venv.sh" --path 2>/dev/null) && [ -x "$venv/bin/python" ] && PYTHON="$venv/bin/python"
    ;;
esac
python=$(PYTHON="${PYTHON:-}" "$here/find_python.sh") || exit 1
exec "$python" "$here/go_env.py" "$@"
