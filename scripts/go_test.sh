#!/bin/bash
# Runs Go tests and records their outcomes for make conformance:
#   go_test.sh [go test's flags] [packages]
# Pure packages run without cgo, the others in a binary that embeds CPython (-tags pyembed). Without packages, all run.
set -uo pipefail
cd "$(dirname "$0")/.."

flags=() packages=()
for argument in "$@"; do
    case $argument in
    ./*) packages+=("$argument") ;;
    *) flags+=("$argument") ;;
    esac
done
venv=$(scripts/venv.sh --path)
mapfile -t pure < <(scripts/go_packages.sh pure)
mapfile -t cgo < <(scripts/go_packages.sh cgo)
if [ ${#packages[@]} -gt 0 ]; then
    mapfile -t asked < <(CGO_ENABLED=1 go list -e "${packages[@]}")
    only() { printf '%s\n' "$@" | grep -Fx -f <(printf '%s\n' "${asked[@]}"); }
    mapfile -t pure < <(only "${pure[@]}")
    mapfile -t cgo < <(only "${cgo[@]}")
fi

status=0
if [ ${#pure[@]} -gt 0 ]; then
    CGO_ENABLED=0 go test -json "${flags[@]}" "${pure[@]}" | "$venv/bin/python" scripts/go_report.py || status=1
fi
if [ ${#cgo[@]} -gt 0 ]; then
    # Without -vet: make lint vets the cgo packages, and vetting them again under pyembed would compile each one more
    # time.
    PYTHON=$venv/bin/python scripts/go_env.sh --embed go test -json -vet=off -tags pyembed "${flags[@]}" "${cgo[@]}" |
        "$venv/bin/python" scripts/go_report.py || status=1
fi
exit $status
