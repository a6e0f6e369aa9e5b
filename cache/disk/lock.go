package disk

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockName   = "lock"
	reasonName = "reason"

	// MaxReason is the largest size of a reason, in bytes.
	MaxReason = 4 << 10

	shortestPause, longestPause = time.Millisecond, 50 * time.Millisecond
)

// Lock is the lock of a key. The kernel releases it when the process ends. A child that was forked while the lock was
// held keeps it if the parent ends without Unlock; Wait has a timeout for this.
type Lock struct {
	fd int
}

// Lock locks a key for the process that translates it, or returns ErrLocked at once. Locks are advice: Put needs none.
// Another process in Wait may hold the lock for a few microseconds, so after ErrLocked a caller should Wait, look for
// files, and try again.
func (s *Store) Lock(key Key) (*Lock, error) {
	var lock *Lock
	err := s.within(below(key), func(f *folder) (err error) {
		lock, err = f.lock(lockName)
		return err
	})
	return lock, err
}

// lock locks a file of the folder. It returns ENOENT if the file has been removed in the meantime, since other
// processes would lock another file.
func (f *folder) lock(name string) (*Lock, error) {
	path := filepath.Join(f.path, name)
	fd, err := f.open(name, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var opened, named unix.Stat_t
	err = again(func() error { return unix.Fstat(fd, &opened) })
	if err == nil {
		err = private(&opened)
	}
	if err == nil && !regular(&opened) {
		err = fmt.Errorf("%w: it is not a regular file", ErrUnsafe)
	}
	if err == nil {
		err = again(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
		if err == unix.EWOULDBLOCK {
			err = ErrLocked
		}
	}
	if err == nil {
		if err = f.stat(name, &named); err == nil && (named.Ino != opened.Ino || named.Dev != opened.Dev) {
			err = unix.ENOENT
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Lock{fd}, nil
}

// Unlock releases the lock. A second call, and a call of a nil Lock, does nothing.
func (l *Lock) Unlock() {
	if l == nil || l.fd < 0 {
		return
	}
	// A forked child has the same open file, so closing ours would not release it.
	again(func() error { return unix.Flock(l.fd, unix.LOCK_UN) })
	unix.Close(l.fd)
	l.fd = -1
}

// Wait waits until no process holds the key's lock, and reports whether that is so. It returns false after timeout, or
// when stop, which may be nil, returns true. stop is called every 50 ms or more often.
func (s *Store) Wait(key Key, timeout time.Duration, stop func() bool) bool {
	deadline := time.Now().Add(timeout)
	for pause := shortestPause; ; pause = min(pause*3/2, longestPause) {
		if !s.locked(key) {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 || stop != nil && stop() {
			return false
		}
		time.Sleep(min(pause, left))
	}
}

// locked reports whether a process holds the key's lock.
func (s *Store) locked(key Key) bool {
	f, err := s.open(below(key)...)
	if err != nil {
		return false
	}
	defer f.Close()
	fd, err := f.open(lockName, unix.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// Shared, so that those who wait do not see each other.
	return again(func() error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) }) == unix.EWOULDBLOCK
}

// PutReason stores why translations of this key cannot be stored, so that no process waits for one. Text after
// MaxReason bytes is dropped. An empty text removes the reason.
func (s *Store) PutReason(key Key, text string) error {
	text = clip(text, MaxReason)
	err := s.within(below(key), func(f *folder) error {
		if text == "" {
			f.discard(reasonName)
			return nil
		}
		return f.replace(reasonName, []byte(text))
	})
	if err == nil {
		s.sweepSometimes(int64(len(text)))
	}
	return err
}

// Reason returns the text of PutReason, or "".
func (s *Store) Reason(key Key) string {
	f, err := s.open(below(key)...)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, _, err := f.read(reasonName, MaxReason)
	if err != nil {
		return ""
	}
	return clip(string(data), MaxReason)
}

// clip returns at most n bytes of a text, in UTF-8.
func clip(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") // it may end within a character
	}
	return text
}
