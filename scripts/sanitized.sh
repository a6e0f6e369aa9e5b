#!/bin/bash
# Builds the package into build/sanitized, with AddressSanitizer in both libraries, and runs a command with it:
#
#   sanitized.sh COMMAND...
#
# The command has build/sanitized first on PYTHONPATH, and libasan in GODYNAMO_ASAN_PRELOAD. Leaks are not checked:
# CPython and torch keep much memory until the end.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
PY=$(scripts/venv.sh --path)/bin/python
out=$root/build/sanitized
mkdir -p "$out"
rm -rf "$out/godynamo"
cp -r python/godynamo "$out/godynamo"
rm -f "$out"/godynamo/*.so
flags="-fsanitize=address -fno-omit-frame-pointer -g -O1"
include=$("$PY" -c 'import sysconfig; print(sysconfig.get_path("include"))')
suffix=$("$PY" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
library=$("$PY" -c 'import sys; sys.path.insert(0, "build_backend"); import native; print(native.GO_LIBRARY)')
sources=$("$PY" -c 'import sys; sys.path.insert(0, "build_backend"); import native; print(*native.core_sources())')
echo "sanitized: compiling the core" >&2
# shellcheck disable=SC2086
gcc $flags -shared -fPIC -std=gnu11 -fvisibility=hidden -I"$include" -Ipyhook/core $sources -o "$out/godynamo/_C$suffix" -ldl -lpthread
echo "sanitized: compiling the Go library" >&2
eval "$(PYTHON=$PY scripts/go_env.sh)"
CGO_CFLAGS="$CGO_CFLAGS $flags" CGO_LDFLAGS="$CGO_LDFLAGS -fsanitize=address" \
    go build -asan -buildmode=c-shared -trimpath -o "$out/godynamo/$library" ./cmd/godynamo-ext
rm -f "$out/godynamo/${library%.so}.h"
# libstdc++ is preloaded as well: AddressSanitizer looks for the real __cxa_throw when it starts.
GODYNAMO_ASAN_PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libstdc++.so)"
export GODYNAMO_ASAN_PRELOAD PYTHONPATH="$out${PYTHONPATH:+:$PYTHONPATH}"
exec "$@"
