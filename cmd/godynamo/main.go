// Command godynamo is the command line tool: what became of a program, how fast it is, and what is wrong with an installation.
//
// It is pure Go and runs nothing of the user: `run`, `explain` and the children of `bench` and `bisect` are the Python that the
// package is installed in, so that fork, spawn and sys.executable are plain Python's.
package main

import (
	"os"

	"github.com/godynamo/godynamo/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
