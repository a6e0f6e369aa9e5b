#!/bin/bash
# Runs pytest twice over one folder of translations: the second run loads what the first one stored. STORED_TESTS names
# the tests (python/tests), PYTEST_ARGS is passed on. Exits with 1 if anything failed in either run.
set -uo pipefail
cd "$(dirname "$0")/.."
python=$(scripts/venv.sh --path)/bin/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
for run in first second; do
    echo "the $run run"
    # shellcheck disable=SC2086
    GODYNAMO_CACHE_DIR=$folder "$python" -m pytest ${STORED_TESTS:-python/tests} -n "$(nproc)" --dist loadfile -q \
        ${PYTEST_ARGS:-} || status=1
    echo "translations in the folder: $(find "$folder" -name '*.gdt' | wc -l)"
done
exit $status
