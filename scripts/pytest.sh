#!/bin/bash
# Runs pytest on all cores, and then, alone, the tests that need the machine to themselves (marker serial). Both runs
# get PYTEST_ARGS: "-n 0" runs everything in one process, "-k word" a part. Goes on after a failure; exits with 1 if
# anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."
python=$(scripts/venv.sh --path)/bin/python

# A worker with torch takes up to 2 GiB.
workers=$(nproc)
room=$(($(awk '/^MemAvailable/ {print $2}' /proc/meminfo 2>/dev/null || echo 8388608) / 2097152))
[ "$workers" -gt "$room" ] && workers=$((room > 1 ? room : 1))

status=0 ran=0
part() { # a run without a matching test is no failure if the other run has one
    "$python" -m pytest "$@"
    local code=$?
    [ $code -ne 5 ] && ran=1
    [ $code -ne 0 ] && [ $code -ne 5 ] && status=1
}
# shellcheck disable=SC2086
part python/tests -n "$workers" --dist worksteal -m "not serial" ${PYTEST_ARGS:-}
# Collecting all tests once more would take 15 s, so only files with the marker are passed.
# shellcheck disable=SC2046,SC2086
part $(grep -rl --include='test_*.py' '^@pytest.mark.serial' python/tests) -m serial ${PYTEST_ARGS:-} -n 0
[ $ran -eq 0 ] && status=5
exit $status
