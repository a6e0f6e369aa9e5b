//go:build profile

package pyhook

// #include <stdint.h>
import "C"

import (
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"unsafe"
)

// The functions of this file are for `make pgo` and `make first-calls`, which build the library with the tag `profile`.

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

// gdStatistics writes what Go has counted since the process started: calls from Go into C, bytes and objects
// allocated, collections, and the CPU time of the collector in nanoseconds (in all threads).
//
//export gdStatistics
func gdStatistics(out *C.int64_t) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	counted := [...]int64{runtime.NumCgoCall(), int64(memory.TotalAlloc), int64(memory.Mallocs), int64(memory.NumGC),
		int64(sample[0].Value.Float64() * 1e9)}
	for i, n := range counted {
		unsafe.Slice(out, len(counted))[i] = C.int64_t(n)
	}
}
