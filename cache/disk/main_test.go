package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// children are what a test starts as processes of their own: the test's binary with GODYNAMO_DISK_CHILD set. An error
// is printed and ends the process with status 1.
var children = map[string]func(dir string) error{
	"hammer":      hammer,
	"hold a lock": holdLock,
	"unprivileged": func(dir string) error {
		if os.Geteuid() == 0 {
			if err := syscall.Setuid(nobody); err != nil {
				return err
			}
		}
		return withoutRights(dir)
	},
	"full disk":      onFullDisk,
	"read-only disk": onReadOnlyDisk,
}

const nobody = 65534

func TestMain(m *testing.M) {
	if do := children[os.Getenv("GODYNAMO_DISK_CHILD")]; do != nil {
		if err := do(os.Getenv("GODYNAMO_DISK_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(name, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GODYNAMO_DISK_CHILD="+name, "GODYNAMO_DISK_DIR="+dir)
	return cmd
}

// inNamespace runs a child that may mount file systems, which nobody else sees.
func inNamespace(t *testing.T, name string) {
	t.Helper()
	cmd := child(name, t.TempDir())
	var out bytes.Buffer
	cmd.Stderr = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("this machine allows no user namespaces: %v", err)
	}
	err := cmd.Wait()
	if bytes.Contains(out.Bytes(), []byte("mount: ")) {
		t.Skipf("this machine allows no mounts in a user namespace: %s", &out)
	}
	require.NoError(t, err, out.String())
}

func opened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "translations"), 0)
	require.NoError(t, err)
	return s
}

func key(n int) (k Key) {
	binary.BigEndian.PutUint64(k[:], uint64(n)*0x9e3779b97f4a7c15)
	return k
}

func described(function string) Meta {
	return Meta{
		Function: function, File: "train.py", Line: 12, Python: "3.13.1", Torch: "2.9.0", Godynamo: "0.4",
		Backend: "eager",
		Parts:   []Part{{Name: "torch", Value: "2.9.0"}, {Name: "code", Value: "abc"}},
	}
}

func put(t *testing.T, s *Store, k Key, payload string) File {
	t.Helper()
	before := map[string]bool{}
	for _, f := range s.Files(k) {
		before[f.Name] = true
	}
	require.NoError(t, s.Put(k, described("step"), []byte(payload)))
	for _, f := range s.Files(k) {
		if !before[f.Name] {
			return f
		}
	}
	t.Fatal("Put added no file")
	return File{}
}

func (s *Store) pathOf(f File) string {
	return filepath.Join(append(append([]string{s.dir}, below(f.Key)...), f.Name)...)
}

// age sets the time of the last use.
func age(t *testing.T, path string, d time.Duration) {
	t.Helper()
	then := time.Now().Add(-d)
	require.NoError(t, os.Chtimes(path, then, then))
}
