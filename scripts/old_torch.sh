#!/bin/bash
# Makes a virtual environment with an older torch, for the smoke test of one binary on several versions of torch
# (`make old-torch`).
#
#   old_torch.sh            makes the environment if it does not exist yet; prints its path
#   old_torch.sh --path     only prints the path
#   old_torch.sh --version  only prints the version of torch
#
# $GODYNAMO_OLD_TORCH is the version; by default it is 2.6.0, and 2.11.0 for a Python that 2.6.0 has no wheel for.
# $GODYNAMO_OLD_TORCH_VENV is the path, by default
# <user cache directory>/godynamo/torch-<version>-py3.11. torch is installed without its dependencies: the wheel on the
# package index is the CUDA one, and its libraries are another 2.5 GB that are useless without a device. torch runs on
# the CPU with the stand-ins that scripts/stub_libraries.py makes for them. The environment takes about 1.7 GB of disk.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(scripts/find_python.sh --version)
case $python in
3.11 | 3.12 | 3.13) version=${GODYNAMO_OLD_TORCH:-2.6.0} ;;
*) version=${GODYNAMO_OLD_TORCH:-2.11.0} ;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}
venv=${GODYNAMO_OLD_TORCH_VENV:-$cache/godynamo/torch-$version-py$python}
if [ "${1:-}" = "--version" ]; then
    echo "$version"
    exit 0
fi
if [ "${1:-}" = "--path" ]; then
    echo "$venv"
    exit 0
fi

# The dependencies of `import torch`, and numpy, since torch warns without it.
dependencies=(typing_extensions sympy networkx jinja2 filelock fsspec numpy)
stamp=$venv/.godynamo-old-torch
want="$version $(cat scripts/old_torch.sh scripts/stub_libraries.py | sha256sum | cut -d' ' -f1)"

if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
    mkdir -p "$(dirname "$venv")"
    exec 9>"$venv.lock"
    flock 9
    if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then # another clone may have made it while this one waited
        found=$(scripts/find_python.sh)
        pip=("$venv/bin/python" -m pip)
        if "$found" -c "import ensurepip" 2>/dev/null; then
            "$found" -m venv --clear "$venv" >&2
        else # another Python's pip installs into an environment without one
            "$found" -m venv --clear --without-pip "$venv" >&2
            pip=(python3 -m pip --python "$venv/bin/python")
        fi
        pip+=(install --disable-pip-version-check --quiet)
        "${pip[@]}" "${dependencies[@]}" >&2
        "${pip[@]}" --no-deps --no-cache-dir "torch==$version" >&2
        lib=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/torch/lib
        "$venv/bin/python" scripts/stub_libraries.py "$lib"
        # Half of the wheel is code for absent devices. It stays, since libtorch_python links to it.
        "$venv/bin/python" -c 'import torch; torch.ones(2).add_(1)' >&2
        echo "$want" >"$stamp"
    fi
fi
echo "$venv"
