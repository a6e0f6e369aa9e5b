package disk

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// folder is an open folder that is private to the user. Files are opened relative to it, so that no link leads
// elsewhere.
type folder struct {
	*os.File
	path string
}

const (
	tempPrefix = "tmp-"
	// staleAfter is the age of a file that some process began to write and never finished.
	staleAfter = time.Hour
	// maxNames bounds what is read of a folder that something else has filled. Keys' folders have 35 names, and a
	// folder of keys has as many as fit into the limit.
	maxNames = 1 << 20

	// flags are part of every open of a file. O_NONBLOCK is for pipes, of which an open would wait for the other end.
	flags = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
)

// again calls do until no signal interrupts it.
func again(do func() error) error {
	for {
		if err := do(); err != unix.EINTR {
			return err
		}
	}
}

// makeDir makes a folder. A folder that exists is no error.
func makeDir(path string) error {
	err := again(func() error { return unix.Mkdir(path, 0o700) })
	if err == unix.EEXIST {
		return nil
	}
	return err
}

// private returns ErrUnsafe, with the reason, if other users own or may write a file.
func private(st *unix.Stat_t) error {
	switch {
	case int(st.Uid) != unix.Geteuid():
		return fmt.Errorf("%w: it belongs to user %d", ErrUnsafe, st.Uid)
	case uint32(st.Mode)&0o022 != 0:
		return fmt.Errorf("%w: other users may write it (mode %04o)", ErrUnsafe, uint32(st.Mode)&0o7777)
	}
	return nil
}

// timeOf returns the time of the last use.
func timeOf(st *unix.Stat_t) time.Time { return time.Unix(st.Mtim.Unix()) }

func regular(st *unix.Stat_t) bool { return uint32(st.Mode)&unix.S_IFMT == unix.S_IFREG }

func openFolder(path string) (*folder, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &folder{os.NewFile(uintptr(fd), path), path}
	var st unix.Stat_t
	if err = again(func() error { return unix.Fstat(fd, &st) }); err == nil {
		err = private(&st)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *folder) fd() int { return int(f.Fd()) }

// names returns the names in the folder, in no order.
func (f *folder) names() []string {
	names, _ := f.Readdirnames(maxNames)
	f.Seek(0, io.SeekStart)
	return names
}

// stat describes a name, which may be a symbolic link.
func (f *folder) stat(name string, st *unix.Stat_t) error {
	return again(func() error { return unix.Fstatat(f.fd(), name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

func (f *folder) open(name string, how int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(f.fd(), name, how|flags, mode)
		return err
	})
	return fd, err
}

// read reads a file of at most limit bytes.
func (f *folder) read(name string, limit int64) ([]byte, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := f.open(name, unix.O_RDONLY, 0)
	switch {
	case err == unix.ELOOP || err == unix.ENXIO: // a symbolic link; a socket
		return nil, st, corrupt("it is not a regular file")
	case err != nil:
		return nil, st, err
	}
	defer unix.Close(fd)
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, st, err
	}
	switch {
	case int(st.Uid) != unix.Geteuid():
		return nil, st, private(&st)
	case !regular(&st):
		return nil, st, corrupt("it is not a regular file")
	case private(&st) != nil:
		return nil, st, corrupt("%v", private(&st))
	case st.Size > limit:
		return nil, st, corrupt("it has %d bytes", st.Size)
	}
	data := make([]byte, st.Size)
	for n := 0; n < len(data); {
		var got int
		err := again(func() (err error) {
			got, err = unix.Read(fd, data[n:])
			return err
		})
		if err != nil {
			return nil, st, err
		}
		if got == 0 {
			return nil, st, corrupt("it got shorter while it was read")
		}
		n += got
	}
	return data, st, nil
}

// replace writes a file under another name and renames it, so that the file has its whole content or does not change.
func (f *folder) replace(name string, data []byte) error {
	temp := fmt.Sprintf("%s%d-%016x", tempPrefix, os.Getpid(), rand.Uint64())
	fd, err := f.open(temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(f.path, temp), err)
	}
	err = writeAll(fd, data)
	if closed := unix.Close(fd); err == nil && closed != unix.EINTR { // NFS reports ENOSPC and EDQUOT here
		err = closed
	}
	if err == nil {
		err = again(func() error { return unix.Renameat(f.fd(), temp, f.fd(), name) })
	}
	if err != nil {
		unix.Unlinkat(f.fd(), temp, 0)
		return fmt.Errorf("%s: %w", filepath.Join(f.path, name), err)
	}
	return nil
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		var n int
		err := again(func() (err error) {
			n, err = unix.Write(fd, data)
			return err
		})
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// discard removes a file of the user, and reports whether it did. It leaves folders and files of others.
func (f *folder) discard(name string) bool {
	var st unix.Stat_t
	if f.stat(name, &st) != nil || int(st.Uid) != unix.Geteuid() {
		return false
	}
	return again(func() error { return unix.Unlinkat(f.fd(), name, 0) }) == nil
}

// touch marks a file as used. On a read-only file system the mark is missing.
func (f *folder) touch(name string) {
	now := unix.NsecToTimespec(time.Now().UnixNano())
	unix.UtimesNanoAt(f.fd(), name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}

// removeStale removes files that some process began to write and never finished.
func (f *folder) removeStale() {
	for _, name := range f.names() {
		var st unix.Stat_t
		if strings.HasPrefix(name, tempPrefix) && f.stat(name, &st) == nil &&
			time.Since(timeOf(&st)) > staleAfter {
			f.discard(name)
		}
	}
}
