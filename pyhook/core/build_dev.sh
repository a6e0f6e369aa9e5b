#!/bin/sh
# Builds python/godynamo/_C in place for development: PYTHON=... CC=... CFLAGS=... pyhook/core/build_dev.sh
# The package's own build (setup.py) compiles the same files.
set -eu
core=$(cd "$(dirname "$0")" && pwd)
package=$core/../../python/godynamo
python=${PYTHON:-python3}
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
mkdir -p "$package"
# Hidden visibility: only PyInit__C is exported, and calls between the core's files need no PLT entry.
# Written beside and renamed: a process that has the old file mapped keeps it.
out=$package/_C$suffix
${CC:-gcc} -O2 -g -DNDEBUG -std=gnu11 -Wall -Wextra -Werror -fvisibility=hidden -shared -fPIC ${CFLAGS:-} \
    -I"$include" -I"$core" $(find "$core" -name "*.c") -o "$out.$$" -ldl -lpthread
mv -f "$out.$$" "$out"
