// Package disk is a folder of translation files that many processes share. A file holds one translation as bytes that
// this package does not interpret, and a Meta that describes it to people. The package starts no goroutine and uses no
// Python object.
//
//	DIR/v1/ab/abcd...(64 digits)/     the files of one key; ab are its first two digits
//	    0123...(32 digits).gdt        a translation, named by its content (format.go)
//	    lock                          flock: one process translates, the others wait and load
//	    reason                        why no translation of this key can be stored
//	    tmp-PID-RANDOM                a file that is being written
//	DIR/v1/misses.jsonl               the latest misses, for `godynamo cache why`; misses.old.jsonl is the part before
//	DIR/v1/sweep                      flock: one process removes old files
//
// Anything may happen to the folder while processes use it: files may be cut, replaced by pipes or links, removed, or
// all of them moved away. Each such case is a miss. Only files that belong to the effective user, and that nobody else
// may write, are read. So who can write a translation could also write to the user's Python files.
//
// A file is read, not mapped, since a mapped file that another process truncates ends this one by SIGBUS.
package disk

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The kinds of errors. An error that is none of them is the system's, for instance ENOSPC. A file that does not exist
// is fs.ErrNotExist.
var (
	// ErrReadOnly says that the folder cannot be made or cannot be written. It wraps the system's error.
	ErrReadOnly = errors.New("the folder of translations cannot be written")
	// ErrCorrupt says that a file is not what Put wrote.
	ErrCorrupt = errors.New("corrupt translation file")
	// ErrUnsafe says that other users own, or may write, a file or folder.
	ErrUnsafe = errors.New("not private to the user")
	// ErrLocked says that another process holds the lock.
	ErrLocked = errors.New("locked by another process")
	// ErrTooLarge says that a translation is larger than a file or the folder may be.
	ErrTooLarge = errors.New("too large to store")
)

const (
	// DefaultLimit is the size of a folder, in bytes, that Open takes for a limit of 0.
	DefaultLimit = 1 << 30
	// MaxFiles is the largest number of files of one key.
	MaxFiles = 32

	version = "v1" // the folder's layout; a program with another layout uses another folder
	suffix  = ".gdt"

	// touchAfter is the age after which a use of a file sets its time again. Setting it at each use would write an
	// inode for each load.
	touchAfter = time.Hour
)

// Key is the hash of all that a translation depends on.
type Key [32]byte

// String returns the key's 64 hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Store is a folder of translation files. Its methods may be called from several threads.
type Store struct {
	dir   string
	limit int64
	roll  func() float64 // uniform in [0, 1); tests replace it
}

// File is a file of a key.
type File struct {
	Key  Key
	Name string
	Size int64
	Used time.Time // the last use, exact to touchAfter
}

// Open returns the store in dir, which is made with its parents. limit is its largest size in bytes, 0 for
// DefaultLimit.
//
// Open returns ErrUnsafe if dir is a symbolic link or a file, belongs to another user, or may be written by others. If
// dir cannot be made, as in a home that is read-only, the store has no files and its writes return ErrReadOnly.
func Open(dir string, limit int64) (*Store, error) {
	if dir == "" {
		return nil, errors.New("the folder of translations has no name")
	}
	dir, err := filepath.Abs(dir) // the program may change its working directory
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	s := &Store{dir: dir, limit: limit, roll: rand.Float64}
	if err := s.makeRoot(); errors.Is(err, ErrUnsafe) {
		return nil, err
	}
	return s, nil
}

// Dir returns the absolute path of the folder.
func (s *Store) Dir() string { return s.dir }

// Exists reports whether the folder could be made. If not, the store has no files and takes none.
func (s *Store) Exists() bool {
	_, err := os.Stat(s.dir)
	return err == nil
}

// makeRoot makes the store's folder, or checks it if it exists.
func (s *Store) makeRoot() error {
	var st unix.Stat_t
	err := again(func() error { return unix.Lstat(s.dir, &st) })
	if err == unix.ENOENT {
		if err = os.MkdirAll(filepath.Dir(s.dir), 0o700); err == nil {
			err = makeDir(s.dir)
		}
		if err == nil {
			err = again(func() error { return unix.Lstat(s.dir, &st) })
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", s.dir, ErrReadOnly, err)
	}
	switch kind := uint32(st.Mode) & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return fmt.Errorf("%s: %w: it is a symbolic link", s.dir, ErrUnsafe)
	case kind != unix.S_IFDIR:
		return fmt.Errorf("%s: %w: it is not a folder", s.dir, ErrUnsafe)
	}
	if err := private(&st); err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	return nil
}

// below returns the names of the folders of a key, below the store's folder.
func below(key Key) []string {
	digits := key.String()
	return []string{version, digits[:2], digits}
}

// open opens a folder below the store's.
func (s *Store) open(names ...string) (*folder, error) {
	return openFolder(filepath.Join(append([]string{s.dir}, names...)...))
}

// within calls do with a folder below the store's, which is made if it does not exist. If the folder is removed in the
// meantime, do is called again with a new one.
func (s *Store) within(names []string, do func(*folder) error) error {
	var err error
	for range 8 { // a folder that disappears more often is being cleared for good
		var f *folder
		if f, err = s.make(names); err == nil {
			err = do(f)
			f.Close()
		}
		if !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	return writeError(err)
}

// make opens a folder below the store's and makes it if it does not exist.
func (s *Store) make(names []string) (*folder, error) {
	f, err := s.open(names...)
	if err == nil {
		return f, nil
	}
	if err := s.makeRoot(); err != nil { // this error names the folder that the user knows
		return nil, err
	}
	if !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	path := s.dir
	for _, name := range names {
		path = filepath.Join(path, name)
		if err := makeDir(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return s.open(names...)
}

// writeError adds ErrReadOnly to errors that mean it.
func writeError(err error) error {
	for _, errno := range []error{unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOTDIR} {
		if errors.Is(err, errno) && !errors.Is(err, ErrReadOnly) {
			return fmt.Errorf("%w: %w", ErrReadOnly, err)
		}
	}
	return err
}

// Files returns the key's files, the most recently used first. A key without a folder costs one failed open.
func (s *Store) Files(key Key) []File {
	f, err := s.open(below(key)...)
	if err != nil {
		return nil
	}
	defer f.Close()
	return f.files(key)
}

// files returns the folder's translation files, the most recently used first. It leaves out what cannot be one.
func (f *folder) files(key Key) []File {
	var found []File
	for _, name := range f.names() {
		var st unix.Stat_t
		if !isFileName(name) || f.stat(name, &st) != nil || !regular(&st) || private(&st) != nil {
			continue
		}
		found = append(found, File{Key: key, Name: name, Size: st.Size, Used: timeOf(&st)})
	}
	slices.SortFunc(found, newestFirst)
	return found
}

func newestFirst(a, b File) int {
	return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Name, b.Name))
}

// isFileName reports whether name is one that Put gives.
func isFileName(name string) bool {
	digits, found := strings.CutSuffix(name, suffix)
	return found && len(digits) == 32 && isHex(digits)
}

func isHex(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}

// Read reads and verifies a file, and marks it as used. The payload is the caller's.
//
// A file that is not what Put wrote returns ErrCorrupt and is removed if it belongs to the user. A file of another
// user returns ErrUnsafe.
func (s *Store) Read(file File) (Meta, []byte, error) {
	f, err := s.open(below(file.Key)...)
	if err != nil {
		return Meta{}, nil, err
	}
	defer f.Close()
	c, used, err := f.load(file.Key, file.Name)
	if err != nil {
		if errors.Is(err, ErrCorrupt) && isFileName(file.Name) { // another name could be a path
			f.discard(file.Name)
		}
		return Meta{}, nil, err
	}
	if age := time.Since(used); age > touchAfter || age < -touchAfter { // the clock may have been wrong
		f.touch(file.Name)
	}
	return c.meta, c.payload, nil
}

// load reads and verifies a file. used is the time of its last use.
func (f *folder) load(key Key, name string) (c *contents, used time.Time, err error) {
	if !isFileName(name) {
		return nil, used, fmt.Errorf("%q: %w: it has another name", name, ErrCorrupt)
	}
	data, st, err := f.read(name, MaxFile)
	if err == nil {
		c, err = decode(data)
	}
	switch {
	case err != nil:
	case c.key != key:
		err = corrupt("it has another key than its folder")
	case c.name != name:
		err = corrupt("it has another content than its name says")
	}
	if err != nil {
		return nil, used, fmt.Errorf("%s: %w", filepath.Join(f.path, name), err)
	}
	return c, timeOf(&st), nil
}

// Put stores a translation. A translation with the same content is replaced. Of more than MaxFiles files of the key,
// the least recently used are removed. A reason of PutReason is removed.
//
// The file appears complete or not at all. It is not synced, since that would take milliseconds: after a power cut, a
// file may be incomplete. Its checksum does not match then, and it is a miss.
func (s *Store) Put(key Key, meta Meta, payload []byte) error {
	data, name, err := encode(key, meta, payload)
	if err != nil {
		return err
	}
	return s.put(key, name, data)
}

func (s *Store) put(key Key, name string, data []byte) error {
	if size := blocks(int64(len(data))) + blockSize; size > s.limit {
		return fmt.Errorf("%w: %d bytes, and the folder may have %d", ErrTooLarge, size, s.limit)
	}
	err := s.within(below(key), func(f *folder) error {
		if err := f.replace(name, data); err != nil {
			return err
		}
		f.discard(reasonName)
		f.removeStale()
		if files := f.files(key); len(files) > MaxFiles {
			files = slices.DeleteFunc(files, func(file File) bool { return file.Name == name })
			for _, file := range files[MaxFiles-1:] {
				f.discard(file.Name)
			}
		}
		return nil
	})
	if err == nil {
		s.sweepSometimes(int64(len(data)))
	}
	return err
}

// Listed is a file with its description.
type Listed struct {
	File
	Meta Meta
}

// List reads and verifies all files, and returns those that are good, the most recently used first. It marks none of
// them as used.
func (s *Store) List() []Listed {
	var found []Listed
	s.each(func(f *folder, key Key) {
		for _, file := range f.files(key) {
			if c, _, err := f.load(key, file.Name); err == nil {
				found = append(found, Listed{file, c.meta})
			}
		}
	})
	slices.SortFunc(found, func(a, b Listed) int {
		return cmp.Or(newestFirst(a.File, b.File), bytes.Compare(a.Key[:], b.Key[:]))
	})
	return found
}

// Bad is a file that cannot be used.
type Bad struct {
	Path    string
	Err     error
	Removed bool // otherwise it belongs to another user, or the folder is read-only
}

// Verify reads all files, removes those that cannot be used, and returns how many are good.
func (s *Store) Verify() (good int, bad []Bad) {
	s.each(func(f *folder, key Key) {
		for _, name := range f.names() {
			if !strings.HasSuffix(name, suffix) {
				continue
			}
			_, _, err := f.load(key, name)
			switch {
			case err == nil:
				good++
			case !errors.Is(err, unix.ENOENT):
				removed := errors.Is(err, ErrCorrupt) && f.discard(name)
				bad = append(bad, Bad{filepath.Join(f.path, name), err, removed})
			}
		}
	})
	return good, bad
}

// Size returns the number of translation files and the size of the folder in bytes, in blocks as `du` counts them.
func (s *Store) Size() (files int, bytes int64) {
	s.each(func(f *folder, key Key) {
		bytes += blockSize
		for _, name := range f.names() {
			var st unix.Stat_t
			if f.stat(name, &st) != nil || !regular(&st) {
				continue
			}
			bytes += blocks(st.Size)
			if isFileName(name) {
				files++
			}
		}
	})
	return files, bytes
}

// Clear removes everything. A process that uses the folder at this time has misses.
//
// The folder is renamed first, so that a file that another process adds is in the new folder, not in the one that is
// being removed.
func (s *Store) Clear() error {
	top := filepath.Join(s.dir, version)
	err := again(func() error {
		return unix.Rename(top, fmt.Sprintf("%s%s%08x", top, clearing, rand.Uint32()))
	})
	if err != nil && err != unix.ENOENT {
		return writeError(fmt.Errorf("%s: %w", top, err))
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	for _, entry := range entries { // those of an earlier Clear that was ended before it was done as well
		if strings.HasPrefix(entry.Name(), version+clearing) {
			err = errors.Join(err, removeAll(filepath.Join(s.dir, entry.Name())))
		}
	}
	return writeError(err)
}

// removeAll removes a folder that others may still be adding files to, since they opened it before it was renamed.
// They add a file each, and then use the new folder.
func removeAll(path string) (err error) {
	for range 100 {
		if err = os.RemoveAll(path); !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	return err
}

const clearing = ".clear-"

// each calls visit with the open folder of each key.
func (s *Store) each(visit func(f *folder, key Key)) {
	top, err := s.open(version)
	if err != nil {
		return
	}
	defer top.Close()
	for _, first := range top.names() {
		if len(first) != 2 || !isHex(first) {
			continue
		}
		shard, err := s.open(version, first)
		if err != nil {
			continue
		}
		names := shard.names()
		shard.Close()
		for _, name := range names {
			var key Key
			if len(name) != 64 || !isHex(name) || name[:2] != first {
				continue
			}
			hex.Decode(key[:], []byte(name))
			if f, err := s.open(below(key)...); err == nil {
				visit(f, key)
				f.Close()
			}
		}
	}
}
