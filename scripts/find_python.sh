#!/bin/sh
# Prints the path of a CPython that godynamo builds with. $PYTHON is a version, such as 3.12, or the path of an
# interpreter. Without it, the newest of DEFAULTS that is found. The versions are listed in build_backend/native.py.
# Exits with 1 and says what to install if there is none.
#
#   find_python.sh            prints the path
#   find_python.sh --version  prints the version, "3.12"; does not look for an interpreter of $PYTHON
#   find_python.sh --all      prints a line for each version: "3.12 /usr/bin/python3.12", or "3.12" if none is found
#   find_python.sh --supported  prints the supported versions, one a line
set -u
native=$(dirname "$0")/../build_backend/native.py

# Prints the versions on the line of native.py that sets $1, in one line: "3.11 3.12".
listed() {
    numbers=$(sed -n "s/#.*//; s/^$1 = //p" "$native" | grep -oE '\([0-9]+, [0-9]+\)' | tr -d '()' | sed 's/, /./')
    case $(grep "^$1 = " "$native") in
    *'(*SUPPORTED'*) numbers="$(listed SUPPORTED) $numbers" ;;
    esac
    # shellcheck disable=SC2086
    echo $numbers
}
known=$(listed BUILDS)

# Prints the path of the interpreter $1 if it is a CPython of one of the versions $2 and has the GIL, otherwise nothing.
# Fails if it lacks the headers or cannot make a virtual environment; Debian has packages of their own for both. The
# path is the interpreter's, not that of pyenv's shim: recorded paths must not depend on the current directory.
examine() {
    "$1" -c 'import os, sys, sysconfig
known = "%d.%d" % sys.version_info[:2] in sys.argv[1].split() and sys.implementation.name == "cpython"
if not known or sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit(1)
print(sys.executable)
import ensurepip, venv
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' "$2" 2>/dev/null
}

# Prints the path of an interpreter of version $1, a complete one if there is one. Fails if none is complete.
find_version() {
    incomplete=
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/"python$1" \
        "${XDG_CACHE_HOME:-$HOME/.cache}/godynamo/python-$1/bin/python$1" python3; do
        if found=$(examine "$candidate" "$1"); then
            echo "$found"
            return 0
        fi
        incomplete=${incomplete:-$found}
    done
    echo "$incomplete"
    return 1
}

# Prints the version to take without $PYTHON.
default_version() {
    newest_first=
    for version in $(listed DEFAULTS); do newest_first="$version $newest_first"; done
    # shellcheck disable=SC2086
    set -- $newest_first
    incomplete_version=
    for version in "$@"; do
        if [ $# = 1 ] || path=$(find_version "$version"); then
            echo "$version"
            return
        fi
        [ -z "$path" ] || incomplete_version=${incomplete_version:-$version}
    done
    echo "${incomplete_version:-$1}"
}

if [ "${1:-}" = --supported ]; then
    listed SUPPORTED | tr ' ' '\n'
    exit 0
fi
if [ "${1:-}" = --all ]; then
    for version in $known; do
        path=$(find_version "$version")
        echo "$version${path:+ $path}"
    done
    exit 0
fi
case "${PYTHON:-}" in
"") version=$(default_version) ;;
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
    path=$(examine "$PYTHON" "$known")
    if [ -z "$path" ]; then
        echo "PYTHON=$PYTHON is not a working CPython ($known) with the GIL" >&2
        exit 1
    fi
    if [ "${1:-}" = --version ]; then
        "$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
    else
        echo "$path"
    fi
    exit 0
    ;;
esac
if [ "${1:-}" = --version ]; then
    echo "$version"
    exit 0
fi
path=$(find_version "$version")
if [ -z "$path" ]; then
    echo "no CPython $version found: install python$version with its headers (python$version-dev), or set PYTHON" >&2
    exit 1
fi
echo "$path"
