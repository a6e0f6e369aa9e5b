#!/bin/bash
# make identity: lower(decode(f)) == f for every code object of the standard library and of torch.
# The libraries' sources are compiled, never imported; the dump goes to build/ (100 MB) and is made again when missing.
#   identity.sh [stdlib|torch|PATH ...]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(scripts/venv.sh --path)/bin/python
what=("$@")
[ ${#what[@]} -gt 0 ] || what=(stdlib torch)
mkdir -p build
for library in "${what[@]}"; do
    dump=$PWD/build/code-$(basename "$library").bin
    if [ ! -e "$dump" ]; then
        "$python" testdata/dump_code.py --out "$dump.tmp" "$library"
        mv "$dump.tmp" "$dump"
    fi
    echo "identity: $library"
    GODYNAMO_CODE_DUMP=$dump CGO_ENABLED=0 go test ./bytecode -run '^TestIdentityDump$' -count=1 -v |
        grep -vE '^(=== RUN|PASS$)'
done
