// Command godynamo is the command line tool: it shows how a program was captured, measures how fast it is, and finds
// faults of an installation.
//
// It is pure Go and runs no user code itself: `run`, `explain` and the children of `bench` and `bisect` run in the
// Python that the package is installed in, so that fork, spawn and sys.executable are plain Python's.
package main

import (
	"os"

	"github.com/godynamo/godynamo/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
