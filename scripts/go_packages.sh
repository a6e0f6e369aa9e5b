#!/bin/sh
# Lists the module's Go packages of one kind:
#   pure   packages that do not need CPython, and import none that does; built and tested with CGO_ENABLED=0
#   cgo    packages below pyhook/, and those that import one
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
