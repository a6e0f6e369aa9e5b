#!/bin/bash
# Prints the lines that each Python version took, for the table in docs/porting.md: lines added and removed, and files,
# by part, in the commits that ported it. Needs the whole history.
set -euo pipefail
cd "$(dirname "$0")/.."

size() {
    local version=$1 commit
    shift
    for commit in "$@"; do git show --numstat --format= "$commit"; done | awk -v version="$version" '
        {
            part = "other"
            if ($3 ~ /_gen\.go$|\.json$|testdata/) part = "generated"
            else if ($3 ~ /^docs|README|CHANGELOG/) part = "docs"
            else if ($3 ~ /tests\/|_test\.go/) part = "tests"
            else if ($3 ~ /^bytecode\/translate|^variables/) part = "bytecode/translate, variables"
            else if ($3 ~ /^bytecode/) part = "bytecode"
            else if ($3 ~ /^pyhook/) part = "pyhook"
            else if ($3 ~ /^python/) part = "python/godynamo"
            added[part] += $1; removed[part] += $2
            if (!seen[part, $3]++) files[part]++
        }
        END { for (part in added) printf "%s  %-30s +%d -%d in %d files\n", version, part, added[part], removed[part], files[part] }' | sort
}

size 3.12 916239ca e48f33cc 922bd24f 38c7b773 145906cd 5d852815 3d498949 1259d646 8bcde261 42aef526 b3c4dab3 24faad4d \
    f22e584e 9164435c 21e0d03b 54c4e858 19f539a8 088fefa4
size 3.13 6caabc1c c42d83ed f6808275 3a2b8c5c 81db3a3d ed5b7601 e1467e5c 8e5c283c 3a041a22 43a9afc8 0e15a75b 552f7d5b 599dbb9a \
    4f9babee e5f9b13a
size 3.14 c9d0b6ad 43706bc9 7aeb84d2 c78fddde 4175e689 da7812e1 a6af3083 1f0606b0 42bf459d e7d9cbbd 3bdd0671
