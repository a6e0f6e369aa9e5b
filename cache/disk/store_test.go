package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestWhatIsPutIsRead(t *testing.T) {
	s := opened(t)
	assert.Empty(t, s.Files(key(1)))
	file := put(t, s, key(1), "payload")
	meta, payload, err := s.Read(file)
	require.NoError(t, err)
	assert.Equal(t, "payload", string(payload))
	assert.WithinDuration(t, time.Now(), meta.Created, time.Minute)
	want := described("step")
	slices.Reverse(want.Parts) // sorted
	want.Created = meta.Created
	assert.Equal(t, want, meta)
	assert.Empty(t, s.Files(key(2)), "another key has no files")

	info, err := os.Stat(s.pathOf(file))
	require.NoError(t, err)
	assert.Zero(t, info.Mode().Perm()&0o077)
	assert.Equal(t, info.Size(), file.Size)
}

func TestEqualContentIsOneFile(t *testing.T) {
	s := opened(t)
	meta := described("step")
	for _, created := range []int64{1, 2} { // two processes finish at different times
		meta.Created = time.Unix(created, 0)
		require.NoError(t, s.Put(key(1), meta, []byte("same")))
	}
	assert.Len(t, s.Files(key(1)), 1)
	require.NoError(t, s.Put(key(1), meta, []byte("other")))
	assert.Len(t, s.Files(key(1)), 2)
}

func TestTextThatIsNotUTF8IsReplaced(t *testing.T) {
	s := opened(t)
	require.NoError(t, s.Put(key(1), Meta{Function: "f\xed\xa0\x80", Parts: []Part{{Name: "a", Value: "\xff"}}}, nil))
	meta, payload, err := s.Read(s.Files(key(1))[0])
	require.NoError(t, err)
	assert.Equal(t, "f\uFFFD", meta.Function)
	assert.Equal(t, "\uFFFD", meta.Parts[0].Value)
	assert.Empty(t, payload)
}

func TestLimitsOfOneFile(t *testing.T) {
	s := opened(t)
	for name, err := range map[string]error{
		"description": s.Put(key(1), Meta{Function: strings.Repeat("f", MaxMeta)}, nil),
		"parts":       s.Put(key(1), Meta{Parts: make([]Part, maxParts+1)}, nil),
		"payload":     s.Put(key(1), Meta{}, make([]byte, MaxFile)),
	} {
		assert.ErrorIs(t, err, ErrTooLarge, name)
	}
	assert.Empty(t, s.Files(key(1)))

	small, err := Open(filepath.Join(t.TempDir(), "small"), 10_000)
	require.NoError(t, err)
	assert.ErrorIs(t, small.Put(key(1), Meta{}, make([]byte, 10_000)), ErrTooLarge)
	assert.NoDirExists(t, filepath.Join(small.dir, version))
}

func TestTheMostRecentlyUsedFileIsFirst(t *testing.T) {
	s := opened(t)
	var files []File
	for i := range 3 {
		files = append(files, put(t, s, key(1), fmt.Sprint(i)))
		age(t, s.pathOf(files[i]), time.Duration(10+i)*time.Hour)
	}
	names := func() (found []string) {
		for _, f := range s.Files(key(1)) {
			found = append(found, f.Name)
		}
		return found
	}
	assert.Equal(t, []string{files[0].Name, files[1].Name, files[2].Name}, names())
	_, _, err := s.Read(files[2])
	require.NoError(t, err)
	assert.Equal(t, []string{files[2].Name, files[0].Name, files[1].Name}, names())
}

func TestAFileIsMarkedAsUsedOnceAnHour(t *testing.T) {
	s := opened(t)
	file := put(t, s, key(1), "x")
	for _, c := range []struct {
		name   string
		age    time.Duration
		marked bool
	}{
		{"after a minute", time.Minute, false},
		{"after two hours", 2 * time.Hour, true},
		{"before, since the clock was wrong", -2 * time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			age(t, s.pathOf(file), c.age)
			before := s.Files(key(1))[0].Used
			_, _, err := s.Read(file)
			require.NoError(t, err)
			assert.Equal(t, c.marked, !before.Equal(s.Files(key(1))[0].Used))
		})
	}
}

func TestAKeyKeepsItsLatestFiles(t *testing.T) {
	s := opened(t)
	for i := range MaxFiles {
		age(t, s.pathOf(put(t, s, key(1), fmt.Sprint(i))), time.Duration(i)*time.Minute)
	}
	oldest := s.Files(key(1))[MaxFiles-1]
	latest := put(t, s, key(1), "one more")
	files := s.Files(key(1))
	assert.Len(t, files, MaxFiles)
	assert.Equal(t, latest.Name, files[0].Name)
	assert.NoFileExists(t, s.pathOf(oldest))

	for _, f := range files { // a wrong clock: the new file is the oldest
		age(t, s.pathOf(f), -time.Hour)
	}
	latest = put(t, s, key(1), "and one more")
	assert.FileExists(t, s.pathOf(latest))
	assert.Len(t, s.Files(key(1)), MaxFiles)
}

func TestASweepRemovesTheLeastRecentlyUsed(t *testing.T) {
	s := opened(t)
	s.roll = func() float64 { return 1 } // no sweep
	for i := range 20 {
		require.NoError(t, s.Put(key(i), Meta{}, make([]byte, 3000)))
		age(t, s.pathOf(s.Files(key(i))[0]), time.Duration(100-i)*time.Hour)
	}
	_, size := s.Size()
	assert.EqualValues(t, 20*2*blockSize, size)
	_, _, err := s.Read(s.Files(key(0))[0])
	require.NoError(t, err)

	s.limit = size * 2
	s.sweep()
	files, _ := s.Size()
	assert.Equal(t, 20, files, "the folder is small enough")

	s.limit = size / 2
	s.sweep()
	files, size = s.Size()
	assert.Equal(t, 9, files, "90 % of the limit")
	assert.LessOrEqual(t, size, s.limit*9/10)
	assert.NotEmpty(t, s.Files(key(0)), "it was used")
	for i := 1; i < 12; i++ {
		assert.Empty(t, s.Files(key(i)))
		assert.NoDirExists(t, filepath.Join(append([]string{s.dir}, below(key(i))...)...))
	}
}

func TestSweepsAreAsRareAsWrites(t *testing.T) {
	s := opened(t)
	s.limit = 100 * sweeps * blockSize
	asked := 0.0
	s.roll = func() float64 { return asked }
	swept := func() bool {
		// A sweep is seen by what it cleans.
		stale := filepath.Join(s.dir, version, key(1).String()[:2], key(1).String(), "tmp-1-0")
		require.NoError(t, os.WriteFile(stale, nil, 0o600))
		age(t, stale, 2*staleAfter)
		require.NoError(t, s.Put(key(2), Meta{}, make([]byte, 9*blockSize)))
		_, err := os.Lstat(stale)
		return errors.Is(err, fs.ErrNotExist)
	}
	put(t, s, key(1), "x")
	asked = 0.10
	assert.True(t, swept(), "11 blocks of 2,000, 20 sweeps for each 2,000")
	asked = 0.12
	assert.False(t, swept())
}

func TestPutRemovesFilesThatNobodyFinished(t *testing.T) {
	s := opened(t)
	s.roll = func() float64 { return 1 }
	file := put(t, s, key(1), "x")
	folder := filepath.Dir(s.pathOf(file))
	for name, d := range map[string]time.Duration{"tmp-1-old": 2 * staleAfter, "tmp-2-new": 0, "else": 2 * staleAfter} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
		age(t, filepath.Join(folder, name), d)
	}
	put(t, s, key(1), "y")
	assert.NoFileExists(t, filepath.Join(folder, "tmp-1-old"))
	assert.FileExists(t, filepath.Join(folder, "tmp-2-new"))
	assert.FileExists(t, filepath.Join(folder, "else"))
}

func TestASweepRemovesEmptyFoldersThatNobodyLocks(t *testing.T) {
	s := opened(t)
	for i := range 2 {
		lock, err := s.Lock(key(i))
		require.NoError(t, err)
		if i == 0 {
			lock.Unlock()
		} else {
			defer lock.Unlock()
		}
	}
	require.NoError(t, s.PutReason(key(2), "calls print"))
	s.sweep()
	assert.NoDirExists(t, filepath.Join(append([]string{s.dir}, below(key(0))...)...))
	assert.DirExists(t, filepath.Join(append([]string{s.dir}, below(key(1))...)...))
	assert.Equal(t, "calls print", s.Reason(key(2)))
	s.limit = 1
	s.sweep()
	assert.Empty(t, s.Reason(key(2)), "reasons count as well")
}

func TestOpenChecksItsFolder(t *testing.T) {
	base := t.TempDir()
	path := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, os.Mkdir(path("open"), 0o700))
	require.NoError(t, os.Chmod(path("open"), 0o770)) // Mkdir's mode is changed by the umask
	require.NoError(t, os.Mkdir(path("private"), 0o700))
	require.NoError(t, os.Symlink("private", path("link")))
	require.NoError(t, os.WriteFile(path("file"), nil, 0o600))
	for _, c := range []struct{ dir, want string }{
		{path("open"), "other users may write it (mode 0770)"},
		{path("link"), "it is a symbolic link"},
		{path("link") + "/", "it is a symbolic link"},
		{path("file"), "it is not a folder"},
	} {
		_, err := Open(c.dir, 0)
		assert.ErrorIs(t, err, ErrUnsafe)
		assert.ErrorContains(t, err, c.want)
		assert.ErrorContains(t, err, filepath.Clean(c.dir))
	}
	_, err := Open("", 0)
	assert.Error(t, err)

	s, err := Open(path("link/new/folders"), 0) // a link above the folder is the user's decision
	require.NoError(t, err)
	info, err := os.Stat(s.Dir())
	require.NoError(t, err)
	assert.Equal(t, fs.ModeDir|0o700, info.Mode())
	assert.EqualValues(t, DefaultLimit, s.limit)
}

func TestAFolderThatCannotBeMadeHasNoFiles(t *testing.T) {
	// Permission bits would not stop root, but a file as a parent does. /dev/null is the home of some services.
	for _, dir := range []string{"/dev/null/.cache/translations", "/proc/no/such"} {
		s, err := Open(dir, 0)
		require.NoError(t, err, dir)
		assert.False(t, s.Exists())
		assert.Empty(t, s.Files(key(1)))
		assert.Empty(t, s.Reason(key(1)))
		assert.Empty(t, s.List())
		assert.Empty(t, s.Misses())
		assert.True(t, s.Wait(key(1), time.Second, nil))
		_, lock := s.Lock(key(1))
		for _, err := range []error{s.Put(key(1), Meta{}, nil), s.PutReason(key(1), "x"), s.Miss(Record{}), lock} {
			assert.ErrorIs(t, err, ErrReadOnly)
			assert.ErrorContains(t, err, dir)
		}
		s.sweep()
	}
}

// withoutRights is run by a process that is not root, since permission bits do not stop root.
func withoutRights(dir string) error {
	s, err := Open(filepath.Join(dir, "translations"), 0)
	if err != nil {
		return err
	}
	if err := s.Put(key(1), Meta{}, []byte("payload")); err != nil {
		return err
	}
	folder := filepath.Join(append([]string{s.dir}, below(key(1))...)...)
	file := s.Files(key(1))[0]
	for _, path := range []string{folder, filepath.Join(s.dir, version), s.dir} {
		if err := os.Chmod(path, 0o500); err != nil {
			return err
		}
		defer os.Chmod(path, 0o700)
	}
	again, err := Open(s.dir, 0)
	if err != nil {
		return err
	}
	if _, payload, err := again.Read(file); err != nil || string(payload) != "payload" {
		return fmt.Errorf("read-only folder: %q, %v", payload, err)
	}
	for name, err := range map[string]error{
		"put": again.Put(key(1), Meta{}, nil), "another key": again.Put(key(2), Meta{}, nil),
		"reason": again.PutReason(key(1), "x"), "miss": again.Miss(Record{}), "clear": again.Clear(),
	} {
		if !errors.Is(err, ErrReadOnly) || !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Chmod(s.pathOf(file), 0); err != nil {
		return err
	}
	if _, _, err := again.Read(file); !errors.Is(err, unix.EACCES) || errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("file without rights: %v", err)
	}
	unreadable, err := Open(filepath.Join(dir, "closed", "translations"), 0)
	if err != nil {
		return err
	}
	if err := unreadable.Put(key(1), Meta{}, nil); !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("parent without rights: %v", err)
	}
	return nil
}

func TestFoldersWithoutRights(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "closed"), 0o500))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
		require.NoError(t, os.Chown(dir, nobody, nobody))
	}
	out, err := child("unprivileged", dir).CombinedOutput()
	require.NoError(t, err, string(out))
}

func mount(dir, options string, flags uintptr) error {
	if err := unix.Mount("translations", dir, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

func onFullDisk(dir string) error {
	if err := mount(dir, "size=128k", 0); err != nil {
		return err
	}
	s, err := Open(filepath.Join(dir, "translations"), 0)
	if err != nil {
		return err
	}
	if err := s.Put(key(1), Meta{}, make([]byte, 50_000)); err != nil {
		return err
	}
	err = s.Put(key(1), Meta{}, make([]byte, 100_000))
	if !errors.Is(err, unix.ENOSPC) || errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("put: %v", err)
	}
	f, err := s.open(below(key(1))...)
	if err != nil {
		return err
	}
	if names := f.names(); len(names) != 1 {
		return fmt.Errorf("files that remain: %v", names)
	}
	if good, bad := s.Verify(); good != 1 || len(bad) != 0 {
		return fmt.Errorf("good %d, bad %v", good, bad)
	}
	return nil
}

func TestAFullDisk(t *testing.T) { inNamespace(t, "full disk") }

func onReadOnlyDisk(dir string) error {
	if err := mount(dir, "size=1m,mode=700", 0); err != nil {
		return err
	}
	s, err := Open(dir, 0)
	if err != nil {
		return err
	}
	if err := s.Put(key(1), Meta{}, []byte("payload")); err != nil {
		return err
	}
	file := s.Files(key(1))[0]
	old := time.Now().Add(-3 * time.Hour)
	if err := os.Chtimes(s.pathOf(file), old, old); err != nil {
		return err
	}
	if err := mount(dir, "", unix.MS_REMOUNT|unix.MS_RDONLY); err != nil {
		return err
	}
	if _, _, err := s.Read(file); err != nil {
		return err
	}
	if err := s.Put(key(1), Meta{}, nil); !errors.Is(err, ErrReadOnly) || !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("put: %v", err)
	}
	missing, err := Open(filepath.Join(dir, "new"), 0)
	if err != nil {
		return err
	}
	if err := missing.Put(key(1), Meta{}, nil); !errors.Is(err, ErrReadOnly) || !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("put: %v", err)
	}
	return nil
}

func TestAReadOnlyDisk(t *testing.T) { inNamespace(t, "read-only disk") }

func TestFilesOfOtherUsersAreIgnored(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a file to another user")
	}
	s := opened(t)
	file := put(t, s, key(1), "x")
	require.NoError(t, os.Chown(s.pathOf(file), nobody, nobody))
	assert.Empty(t, s.Files(key(1)))
	_, _, err := s.Read(file)
	assert.ErrorIs(t, err, ErrUnsafe)
	assert.NotErrorIs(t, err, ErrCorrupt)
	good, bad := s.Verify()
	assert.Zero(t, good)
	require.Len(t, bad, 1)
	assert.False(t, bad[0].Removed)
	assert.FileExists(t, s.pathOf(file))

	require.NoError(t, s.Put(key(1), described("step"), []byte("x")), "a rename replaces it")
	assert.Len(t, s.Files(key(1)), 1)

	folder := filepath.Dir(s.pathOf(file))
	require.NoError(t, os.Chown(folder, nobody, nobody))
	assert.Empty(t, s.Files(key(1)))
	assert.ErrorIs(t, s.Put(key(1), Meta{}, nil), ErrUnsafe)

	require.NoError(t, os.Chown(s.dir, nobody, nobody))
	_, err = Open(s.dir, 0)
	assert.ErrorIs(t, err, ErrUnsafe)
	assert.ErrorContains(t, err, "it belongs to user 65534")
}

func TestVerifyRemovesBadFiles(t *testing.T) {
	s := opened(t)
	put(t, s, key(1), "good")
	file := put(t, s, key(2), "bad")
	require.NoError(t, os.WriteFile(s.pathOf(file), []byte("short"), 0o600))
	assert.Len(t, s.List(), 1, "what is bad is not listed")
	good, bad := s.Verify()
	assert.Equal(t, 1, good)
	require.Len(t, bad, 1)
	assert.Equal(t, s.pathOf(file), bad[0].Path)
	assert.ErrorIs(t, bad[0].Err, ErrCorrupt)
	assert.True(t, bad[0].Removed)
	good, bad = s.Verify()
	assert.Equal(t, 1, good)
	assert.Empty(t, bad)
}

func TestListAndClear(t *testing.T) {
	s := opened(t)
	require.NoError(t, s.Clear(), "nothing to remove")
	for i := range 3 {
		require.NoError(t, s.Put(key(i), described(fmt.Sprint("f", i)), []byte{1}))
		age(t, s.pathOf(s.Files(key(i))[0]), time.Duration(i)*time.Hour*2)
	}
	require.NoError(t, s.Miss(Record{Function: "f"}))
	list := s.List()
	require.Len(t, list, 3)
	for i, l := range list {
		assert.Equal(t, fmt.Sprint("f", i), l.Meta.Function)
		assert.Equal(t, key(i), l.Key)
	}
	assert.WithinDuration(t, time.Now().Add(-4*time.Hour), s.Files(key(2))[0].Used, time.Minute, "a list is no use")

	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "v1.clear-1", "more"), 0o700)) // of a Clear that was ended
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "notes"), nil, 0o600))
	require.NoError(t, s.Clear())
	assert.Empty(t, s.List())
	assert.Empty(t, s.Misses())
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "notes", entries[0].Name(), "a file that is not the store's stays")
	put(t, s, key(1), "again")

	require.NoError(t, os.RemoveAll(s.dir))
	assert.Empty(t, s.Files(key(1)))
	put(t, s, key(1), "again")
}

func TestReasons(t *testing.T) {
	s := opened(t)
	assert.Empty(t, s.Reason(key(1)))
	require.NoError(t, s.PutReason(key(1), "closes over a socket"))
	assert.Equal(t, "closes over a socket", s.Reason(key(1)))
	put(t, s, key(1), "x")
	assert.Empty(t, s.Reason(key(1)), "Put clears it")

	require.NoError(t, s.PutReason(key(1), strings.Repeat("é", MaxReason)))
	assert.Equal(t, strings.Repeat("é", MaxReason/2), s.Reason(key(1)))
	require.NoError(t, s.PutReason(key(1), ""))
	assert.Empty(t, s.Reason(key(1)))
}

func TestMisses(t *testing.T) {
	s := opened(t)
	assert.Empty(t, s.Misses())
	for i := range 3 {
		require.NoError(t, s.Miss(Record{Function: fmt.Sprint("f", i), File: "a.py", Line: i,
			Parts: []Part{{Name: "torch", Value: "2"}}}))
	}
	path := filepath.Join(s.dir, version, missesName)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("{\"function\": \"cut\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, s.Miss(Record{Function: "f3"}))
	var names []string
	for _, r := range s.Misses() {
		names = append(names, r.Function)
		assert.WithinDuration(t, time.Now(), r.Time, time.Minute)
	}
	assert.Equal(t, []string{"f0", "f1", "f2", "f3"}, names)
	assert.Equal(t, "torch", s.Misses()[0].Parts[0].Name)
}

func TestTheFileOfMissesIsBounded(t *testing.T) {
	s := opened(t)
	long := Record{Function: strings.Repeat("f", 5000), Parts: make([]Part, 500)}
	for i := range long.Parts {
		long.Parts[i].Value = strings.Repeat("v", 5000)
	}
	for i := range 60 {
		long.Line = i
		require.NoError(t, s.Miss(long))
	}
	total := int64(0)
	for _, name := range []string{missesName, oldMissesName} {
		info, err := os.Stat(filepath.Join(s.dir, version, name))
		require.NoError(t, err)
		total += info.Size()
	}
	assert.Less(t, total, int64(2*maxMisses+100_000))
	found := s.Misses()
	assert.Equal(t, 59, found[len(found)-1].Line)
	assert.Len(t, found[0].Parts, maxMissParts)
}
