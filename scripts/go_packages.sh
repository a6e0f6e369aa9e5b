#!/bin/sh
# Lists the module's Go packages of one kind:
#   pure   need nothing of CPython, nor does anything they import: build and test with CGO_ENABLED=0
#   cgo    are or import a package below pyhook/
set -eu
cd "$(dirname "$0")/.."
module=github.com/godynamo/godynamo
list() {
    CGO_ENABLED=1 go list -e -f '{{.ImportPath}} {{join .Deps " "}}' ./...
}
case "${1:-}" in
pure) list | grep -v "$module/pyhook" | cut -d' ' -f1 ;;
cgo) list | grep "$module/pyhook" | cut -d' ' -f1 ;;
*)
    echo "usage: go_packages.sh pure|cgo" >&2
    exit 2
    ;;
esac
