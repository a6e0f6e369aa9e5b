#!/bin/bash
# make roundtrip: checks lower(decode(f)) == f for every code object of the standard library, of torch, and of 2,000
# generated programs. Sources are compiled, never imported. The dumps go to build/ (100 MB). They are made again if they
# are missing, or if the programs that make them have changed.
#   roundtrip.sh [stdlib|torch|generated[:COUNT]|PATH ...]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(scripts/venv.sh --path)/bin/python
version=$("$python" -c 'import sys; print("%d%d" % sys.version_info[:2])')
what=("$@")
[ ${#what[@]} -gt 0 ] || what=(stdlib torch generated)
mkdir -p build
for library in "${what[@]}"; do
    dump=$PWD/build/code-py$version-$(basename "${library//:/-}").bin sources=$library
    if [[ $library == generated* ]]; then
        count=${library#generated}
        count=${count#:}
        sources=$PWD/build/py$version-${library//:/-}
        if [ ! -e "$dump" ] || [ python/tests/roundtrip/syntax.py -nt "$dump" ]; then
            rm -rf "$sources" "$dump"
            "$python" python/tests/roundtrip/syntax.py "$sources" "${count:-2000}"
        fi
    fi
    if [ ! -e "$dump" ] || [ testdata/dump_code.py -nt "$dump" ]; then
        "$python" testdata/dump_code.py --out "$dump.tmp" "$sources"
        mv "$dump.tmp" "$dump"
    fi
    echo "round trip: $library"
    GODYNAMO_CODE_DUMP=$dump CGO_ENABLED=0 go test ./bytecode -run '^TestIdentityDump$' -count=1 -v |
        grep -vE '^(=== RUN|PASS$)'
done
