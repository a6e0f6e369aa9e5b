package disk

import (
	"bytes"
	"cmp"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	sweepName = "sweep"
	blockSize = 4096
	// sweeps is how often the folder is swept while as many bytes are written as fit into it.
	sweeps = 20
)

// blocks rounds a size up to blocks. Small files would fill the disk otherwise, long before their bytes reach the
// limit.
func blocks(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// sweepSometimes sweeps after size bytes have been written, with a probability in proportion to size.
//
// A sweep takes 24 µs for each file (BenchmarkSweep), so a quarter of a second for 1 GiB in files of 100 KiB. That is
// too much for each start of a process and for each Put. With this probability a Put pays for 20 files on average, 0.5
// ms, however large the folder is and however many processes write, and they need no common counter. Between sweeps the
// folder grows by 5 % of its limit on average. So from 90 % it passes the limit with a probability of e^-2, and 120 %
// with e^-6.
func (s *Store) sweepSometimes(size int64) {
	if s.roll()*float64(s.limit) < float64((blocks(size)+blockSize)*sweeps) {
		s.sweep()
	}
}

// sweep removes the least recently used files until the folder has at most 90 % of its limit. It also removes
// unfinished files, and folders without files.
func (s *Store) sweep() {
	top, err := s.open(version)
	if err != nil {
		return
	}
	defer top.Close()
	lock, err := top.lock(sweepName)
	if err != nil {
		return // another process is sweeping
	}
	defer lock.Unlock()

	total := int64(0)
	var found []File // translations and reasons
	s.each(func(f *folder, key Key) {
		f.removeStale()
		total += blockSize
		empty := true
		for _, name := range f.names() {
			var st unix.Stat_t
			if name == lockName || f.stat(name, &st) != nil || !regular(&st) {
				continue
			}
			empty = false
			total += blocks(st.Size)
			if name == reasonName || isFileName(name) {
				found = append(found, File{Key: key, Name: name, Size: st.Size, Used: timeOf(&st)})
			}
		}
		if empty && f.dissolve() {
			total -= blockSize
		}
	})
	slices.SortFunc(found, func(a, b File) int {
		return cmp.Or(newestFirst(b, a), bytes.Compare(a.Key[:], b.Key[:]))
	})
	for _, file := range found {
		if total <= s.limit/10*9 {
			return
		}
		total -= s.evict(file)
	}
}

// evict removes a file, and its folder if it was the last one. It returns the number of bytes that are free now.
func (s *Store) evict(file File) int64 {
	f, err := s.open(below(file.Key)...)
	if err != nil {
		return blocks(file.Size) // another process has removed it
	}
	defer f.Close()
	if !f.discard(file.Name) {
		return 0
	}
	if slices.ContainsFunc(f.names(), func(name string) bool { return name != lockName }) || !f.dissolve() {
		return blocks(file.Size)
	}
	return blocks(file.Size) + blockSize
}

// dissolve removes a folder that has no file but its lock, and reports whether it did. A process that adds a file at
// this time makes the folder again: its open of the new file returns ENOENT, or the folder is not empty.
func (f *folder) dissolve() bool {
	lock, err := f.lock(lockName)
	if err != nil {
		return false // a process is translating
	}
	defer lock.Unlock()
	f.discard(lockName)
	return again(func() error { return unix.Rmdir(f.path) }) == nil
}
