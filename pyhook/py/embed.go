//go:build pyembed

package py

import (
	"fmt"
	"os"
	"runtime"

	python3 "github.com/DataDog/go-python3"
)

// Embed starts CPython inside a Go test binary. Call it from TestMain, whose goroutine keeps the thread
// and the GIL. The environment (PYTHONHOME, PYTHONPATH) comes from scripts/go_env.sh --embed.
func Embed() {
	runtime.LockOSThread()
	python3.Py_Initialize()
	if !python3.Py_IsInitialized() {
		fmt.Fprintln(os.Stderr, "py: CPython did not start")
		os.Exit(1)
	}
	LearnKinds()
}

// Run executes Python source in a new namespace and returns the namespace.
func (s *Scope) Run(source string) (Object, error) {
	builtins, err := s.Import("builtins")
	if err != nil {
		return Object{}, err
	}
	ns, err := s.Dict([2]Object{s.Name("__builtins__"), builtins}, [2]Object{s.Name("__name__"), s.Name("embedded")})
	if err != nil {
		return Object{}, err
	}
	_, err = s.CallMethod(builtins, "exec", s.Str(source), ns)
	return ns, err
}
