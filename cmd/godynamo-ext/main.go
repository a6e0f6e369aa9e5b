// Command godynamo-ext is the Go shared library that the extension module `_C` loads at the first miss. It is built
// with `go build -buildmode=c-shared`. All its code is in package pyhook, and its function main never runs.
package main

import _ "github.com/godynamo/godynamo/pyhook" // exports gdInit

func main() {}
