package pyhook

// #include <stdint.h>
// #include <stddef.h>
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"unsafe"

	"github.com/godynamo/godynamo/cache/disk"
)

// used has the keys of the translations that this process has stored or loaded.
var used = map[disk.Key]bool{}

// gdArchive exports or imports translations; see gd_golib_api. It calls no function of CPython.
//
//export gdArchive
func gdArchive(folder *C.char, limit C.int64_t, file *C.char, store C.int, why *C.char, size C.size_t) (n C.int64_t) {
	defer func() {
		if r := recover(); r != nil {
			n = failed(fmt.Errorf("panic: %v", r), why, size)
		}
	}()
	s, err := disk.Open(C.GoString(folder), int64(limit))
	if err != nil {
		return failed(err, why, size)
	}
	run := exported
	if store != 0 {
		run = imported
	}
	count, err := run(s, C.GoString(file))
	if err != nil {
		return failed(err, why, size)
	}
	return C.int64_t(count)
}

// failed copies an error to a C text, which may be shorter, and returns -1.
func failed(err error, why *C.char, size C.size_t) C.int64_t {
	if to := unsafe.Slice((*byte)(unsafe.Pointer(why)), int(size)); len(to) > 0 {
		n := copy(to[:len(to)-1], err.Error())
		to[n] = 0
	}
	return -1
}

func exported(s *disk.Store, path string) (n int, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriter(file)
	n, err = s.Export(w, func(f disk.Listed) bool { return used[f.Key] })
	if err == nil {
		err = w.Flush()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return n, err
}

func imported(s *disk.Store, path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return s.Import(bufio.NewReader(file))
}
