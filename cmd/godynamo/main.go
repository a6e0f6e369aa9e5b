// Command godynamo is the command line tool. It shows how a program was captured, measures how fast the program is,
// and finds faults of an installation.
//
// It is pure Go and runs no user code itself. `run`, `explain` and the children of `bench` and `bisect` run in the
// Python in which the package is installed, so fork, spawn and sys.executable work as in plain Python.
package main

import (
	"os"

	"github.com/godynamo/godynamo/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
