//go:build pyembed

// Package embedtest runs the Go tests of packages that need CPython inside a process that embeds it.
package embedtest

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// onPython passes the bodies of tests to the thread that holds the GIL.
var onPython = make(chan func())

// Main is a package's TestMain: embed starts CPython on the main thread, which then runs the bodies passed
// to On.
func Main(m *testing.M, embed func()) {
	runtime.LockOSThread()
	embed()
	done := make(chan int)
	go func() { done <- m.Run() }()
	serve(done)
}

// serve runs bodies of tests until all tests have ended, and then ends the process. A body that fails exits
// by runtime.Goexit, which cannot be stopped: the deferred call continues serving in its place.
func serve(done <-chan int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "panic: %v\n%s", r, debug.Stack())
			os.Exit(2)
		}
		serve(done)
	}()
	for {
		select {
		case body := <-onPython:
			body()
		case code := <-done:
			os.Exit(code)
		}
	}
}

// On runs body on the interpreter's thread and returns when it has ended, even if it ends by t.FailNow.
func On(body func()) {
	finished := make(chan struct{})
	onPython <- func() {
		defer close(finished)
		body()
	}
	<-finished
}
