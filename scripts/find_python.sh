#!/bin/sh
# Prints the path of a CPython that godynamo knows. $PYTHON is a version, such as 3.12, or the path of an interpreter.
# By default it is 3.11. Exits with 1 and says what to install if there is none.
#
#   find_python.sh            prints the path
#   find_python.sh --version  prints the version, "3.12", and does not look for an interpreter of that version
set -u

known="3.11 3.12 3.13 3.14"
version=3.11

# Succeeds if $1 is a CPython of one of the versions $2.
is_python() {
    "$1" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] not in sys.argv[1].split() or sys.implementation.name != "cpython")' \
        "$2" >/dev/null 2>&1
}

# Prints the interpreter itself, not pyenv's shim: linked and recorded paths must not depend on the current directory.
executable() { "$1" -c 'import sys; print(sys.executable)'; }

case "${PYTHON:-}" in
"") ;;
[0-9].[0-9]*)
    version=$PYTHON
    case " $known " in
    *" $version "*) ;;
    *)
        echo "PYTHON=$version: choose one of $known" >&2
        exit 1
        ;;
    esac
    ;;
*)
    if ! is_python "$PYTHON" "$known"; then
        echo "PYTHON=$PYTHON is not a working CPython ($known)" >&2
        exit 1
    fi
    if [ "${1:-}" = --version ]; then
        "$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
    else
        executable "$PYTHON"
    fi
    exit 0
    ;;
esac
if [ "${1:-}" = --version ]; then
    echo "$version"
    exit 0
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/godynamo
for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/"python$version" \
    "$cache/python-$version/bin/python$version" python3; do
    if is_python "$candidate" "$version"; then
        executable "$candidate"
        exit 0
    fi
done
echo "no CPython $version found: install python$version with its headers (python$version-dev), or set PYTHON" >&2
exit 1
