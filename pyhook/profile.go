//go:build profile

package pyhook

import "C"

import (
	"os"
	"runtime"
	"runtime/pprof"
)

// The functions of this file are for scripts/profile_go.py, which builds the library with the tag `profile`.

var profile *os.File

// gdProfileStart writes a CPU profile to the file at path until gdProfileStop. It returns 0, or -1 on an error.
//
//export gdProfileStart
func gdProfileStart(path *C.char) C.int {
	file, err := os.Create(C.GoString(path))
	if err != nil {
		return -1
	}
	profile = file
	if pprof.StartCPUProfile(file) != nil {
		return -1
	}
	return 0
}

//export gdProfileStop
func gdProfileStop() C.int {
	pprof.StopCPUProfile()
	if profile.Close() != nil {
		return -1
	}
	return 0
}

// gdAllocations writes what has been allocated so far to the file at path.
//
//export gdAllocations
func gdAllocations(path *C.char) C.int {
	file, err := os.Create(C.GoString(path))
	if err != nil {
		return -1
	}
	runtime.GC()
	if pprof.Lookup("allocs").WriteTo(file, 0) != nil || file.Close() != nil {
		return -1
	}
	return 0
}
