//go:build pyembed

// Package embedtest runs Go tests that need CPython. It runs them in a process that embeds CPython.
package embedtest

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// onPython passes the bodies of tests to the interpreter's thread.
var onPython = make(chan func())

// Main is the body of a package's TestMain. embed starts CPython on the main thread, which then runs the bodies that
// are passed to On.
func Main(m *testing.M, embed func()) {
	runtime.LockOSThread()
	embed()
	done := make(chan int)
	go func() { done <- m.Run() }()
	serve(done)
}

// serve runs the bodies of tests until all tests have ended, and then ends the process. A body that fails calls
// runtime.Goexit, which ends this call of serve; a deferred call then serves the remaining tests.
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

// On runs body on the interpreter's thread. It returns when body has ended, even if body ends by t.FailNow.
func On(body func()) {
	finished := make(chan struct{})
	onPython <- func() {
		defer close(finished)
		body()
	}
	<-finished
}
