package pyhook

// #include "bridge.h"
import "C"

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/godynamo/godynamo/pyhook/py"
)

// gdEmbed runs CPython's own command line and returns its exit code, or 127 if CPython cannot be started.
// argv[0] is the interpreter whose environment is used. The launcher calls gdEmbed in a process that has no
// Python yet.
//
//export gdEmbed
func gdEmbed(argc C.int, argv **C.char) (code C.int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "godynamo: panic: %v\n%s", r, debug.Stack())
			code = 127
		}
	}()
	var args []string
	for _, arg := range unsafe.Slice(argv, int(argc)) {
		args = append(args, C.GoString(arg))
	}
	status, err := py.Main(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "godynamo:", err)
		return 127
	}
	return C.int(status)
}
