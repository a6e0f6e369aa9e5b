#!/bin/bash
# Runs all tests: Go, Go with an embedded CPython, pytest. Goes on after a failure; exits with 1 if anything failed.
# The last lines of the output are the runners' own summaries.
set -uo pipefail
cd "$(dirname "$0")/.."
status=0
scripts/go_test.sh || status=1
scripts/roundtrip.sh generated:50 || status=1
scripts/pytest.sh || status=1
exit $status
