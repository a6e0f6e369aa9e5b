// Command godynamo-ext is the Go shared library that _C opens at the first miss: `go build -buildmode=c-shared`. All
// its code is in package pyhook; main is never run.
package main

import _ "github.com/godynamo/godynamo/pyhook" // exports gdInit

func main() {}
