#!/bin/sh
# Prints the path of a CPython 3.11: $PYTHON, python3.11, one of pyenv's, or python3 if it is 3.11.
# Exits with 1 and says what to install if there is none.
set -u

is_311() {
    "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) or sys.implementation.name != "cpython")' \
        >/dev/null 2>&1
}

for candidate in "${PYTHON:-}" python3.11 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python3.11 python3; do
    [ -n "$candidate" ] || continue
    if is_311 "$candidate"; then
        # Prints the interpreter itself, not pyenv's shim: linked and recorded paths must not depend on the current
        # directory.
        "$candidate" -c 'import sys; print(sys.executable)'
        exit 0
    fi
    if [ "$candidate" = "${PYTHON:-}" ]; then
        echo "PYTHON=$candidate is not a working CPython 3.11" >&2
        exit 1
    fi
done
echo "no CPython 3.11 found: install python3.11 with its headers (python3.11-dev), or set PYTHON" >&2
exit 1
