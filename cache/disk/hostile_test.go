package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// hostile are what can be at a file's place.
var hostile = map[string]func(t *testing.T, path string){
	"a pipe": func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) },
	"a folder": func(t *testing.T, path string) {
		require.NoError(t, os.MkdirAll(filepath.Join(path, "more"), 0o700))
	},
	"a link to a good file": func(t *testing.T, path string) {
		target := path + ".target"
		require.NoError(t, os.WriteFile(target, nil, 0o600))
		require.NoError(t, os.Symlink(target, path))
	},
	"a link to itself": func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) },
	"a socket": func(t *testing.T, path string) {
		// The path of a socket has at most 108 bytes.
		short, err := os.MkdirTemp("", "s")
		require.NoError(t, err)
		defer os.RemoveAll(short)
		l, err := net.Listen("unix", filepath.Join(short, "s"))
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		require.NoError(t, os.Rename(filepath.Join(short, "s"), path))
	},
}

func TestWhatIsNoFileIsAMiss(t *testing.T) {
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			file := put(t, s, key(1), "x")
			path := s.pathOf(file)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.Remove(path))
			make(t, path)
			if strings.HasPrefix(name, "a link to a good") {
				require.NoError(t, os.WriteFile(path, content, 0o600)) // through the link
			}
			assert.Empty(t, s.Files(key(1)))
			_, _, err = s.Read(file)
			assert.ErrorIs(t, err, ErrCorrupt)
			_, err = os.Lstat(path)
			assert.Equal(t, name == "a folder", err == nil, "it is removed, but not a folder")
			err = s.Put(key(1), described("step"), []byte("x"))
			assert.Equal(t, name == "a folder", err != nil)
			assert.Len(t, s.Files(key(1)), map[bool]int{false: 1}[name == "a folder"])
		})
	}
}

func TestOtherFilesThatAreHostile(t *testing.T) {
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			file := put(t, s, key(1), "x")
			top := filepath.Join(s.dir, version)
			make(t, filepath.Join(filepath.Dir(s.pathOf(file)), reasonName))
			make(t, filepath.Join(top, missesName))
			make(t, filepath.Join(top, sweepName))
			make(t, filepath.Join(top, "00"))
			make(t, filepath.Join(top, key(1).String()[:2], key(1).String()[:2]+strings.Repeat("0", 62)))
			assert.Empty(t, s.Reason(key(1)))
			assert.Empty(t, s.Misses())
			assert.Error(t, s.Miss(Record{}))
			s.sweep()
			assert.Len(t, s.List(), 1)
			require.NoError(t, s.Put(key(1), described("step"), []byte("y")))
			require.NoError(t, s.Clear())
			assert.Empty(t, s.List())
		})
	}
}

func TestAFolderOfAKeyThatIsNone(t *testing.T) {
	for name, make := range hostile {
		if name == "a folder" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			path := filepath.Join(append([]string{s.dir}, below(key(1))...)...)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			make(t, path)
			assert.Empty(t, s.Files(key(1)))
			assert.Error(t, s.Put(key(1), Meta{}, nil))
			assert.Empty(t, s.List())
		})
	}
}

func TestFilesThatOthersMayWriteAreNotRead(t *testing.T) {
	for _, mode := range []fs.FileMode{0o620, 0o602} {
		s := opened(t)
		file := put(t, s, key(1), "x")
		require.NoError(t, os.Chmod(s.pathOf(file), mode))
		assert.Empty(t, s.Files(key(1)))
		_, _, err := s.Read(file)
		assert.ErrorIs(t, err, ErrCorrupt)
		assert.NoFileExists(t, s.pathOf(file))

		file = put(t, s, key(1), "x")
		require.NoError(t, os.Chmod(filepath.Dir(s.pathOf(file)), 0o700|mode&0o022))
		assert.Empty(t, s.Files(key(1)))
		_, _, err = s.Read(file)
		assert.ErrorIs(t, err, ErrUnsafe)
	}
}

func TestNamesAreNotPaths(t *testing.T) {
	s := opened(t)
	file := put(t, s, key(1), "x")
	for _, name := range []string{"", ".", "..", "../" + key(1).String() + "/" + file.Name, "/etc/passwd", "lock",
		strings.ToUpper(file.Name), file.Name + "\x00"} {
		_, _, err := s.Read(File{Key: key(1), Name: name})
		assert.ErrorIs(t, err, ErrCorrupt, name)
	}
	_, _, err := s.Read(File{Key: key(1), Name: strings.Repeat("0", 32) + suffix})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.Len(t, s.Files(key(1)), 1)
}

func TestAFileOfAnotherKeyOrNameIsCorrupt(t *testing.T) {
	s := opened(t)
	one, two := put(t, s, key(1), "x"), put(t, s, key(2), "y")
	content, err := os.ReadFile(s.pathOf(two))
	require.NoError(t, err)
	for _, file := range []File{{Key: key(1), Name: two.Name}, one} {
		require.NoError(t, os.WriteFile(s.pathOf(file), content, 0o600))
		_, _, err = s.Read(file)
		assert.ErrorIs(t, err, ErrCorrupt)
		assert.NoFileExists(t, s.pathOf(file))
	}
}

func TestAHugeFileIsNotRead(t *testing.T) {
	s := opened(t)
	file := put(t, s, key(1), "x")
	require.NoError(t, os.Truncate(s.pathOf(file), 1<<40)) // sparse
	_, _, err := s.Read(file)
	assert.ErrorIs(t, err, ErrCorrupt)
}

func small(t testing.TB) []byte {
	data, _, err := encode(key(1), described("step"), []byte("payload"))
	require.NoError(t, err)
	return data
}

func TestEveryTruncationIsCorrupt(t *testing.T) {
	data := small(t)
	for n := range data {
		_, err := decode(data[:n])
		assert.ErrorIs(t, err, ErrCorrupt, n)
	}
	_, err := decode(append(data[:len(data):len(data)], 0))
	assert.ErrorIs(t, err, ErrCorrupt)
}

func TestEveryFlippedBitIsCorrupt(t *testing.T) {
	data := small(t)
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			_, err := decode(data)
			assert.ErrorIs(t, err, ErrCorrupt, i)
			data[i] ^= 1 << bit
		}
	}
	s := opened(t)
	file := put(t, s, key(1), "payload")
	good, err := os.ReadFile(s.pathOf(file))
	require.NoError(t, err)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		require.NoError(t, os.WriteFile(s.pathOf(file), bad, 0o600))
		_, _, err := s.Read(file)
		assert.ErrorIs(t, err, ErrCorrupt)
		assert.Empty(t, s.Files(key(1)))
	}
}

// signed returns a file with a right checksum around any bytes.
func signed(body []byte) []byte {
	data := append(bytes.Clone(body), make([]byte, 8)...)
	_, sum := sums(data, len(body))
	return append(data, sum[:]...)
}

func TestALieWithARightChecksum(t *testing.T) {
	head := func(magic string, format uint32) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte(magic), format), make([]byte, 32)...)
	}
	sections := func(sections ...[]byte) []byte {
		data := head(magic, format)
		for _, s := range sections {
			data = append(binary.LittleEndian.AppendUint32(data, uint32(len(s))), s...)
		}
		return data
	}
	encoded := func(v any) []byte {
		data, err := cbor.Marshal(v)
		require.NoError(t, err)
		return data
	}
	good := encoded(described("f").plain())
	_, err := decode(signed(sections(good, []byte("payload"))))
	require.NoError(t, err)
	for name, body := range map[string][]byte{
		"magic":                append(head("GDTRANSX", format), sections(good, nil)[headSize:]...),
		"format":               append(head(magic, 2), sections(good, nil)[headSize:]...),
		"no sections":          append(head(magic, format), make([]byte, 3)...),
		"one section":          sections(good),
		"three sections":       sections(good, nil, nil),
		"length beyond end":    append(head(magic, format), 0xff, 0xff, 0, 0, 0, 0, 0, 0),
		"largest length":       append(head(magic, format), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0),
		"large description":    sections(encoded(map[string]string{"function": strings.Repeat("f", MaxMeta)}), nil),
		"no description":       sections(nil, nil),
		"wrong type":           sections(encoded(7), nil),
		"unknown field":        sections(encoded(map[string]string{"more": ""}), nil),
		"duplicate":            sections([]byte("\xa2\x64file\x61a\x64file\x61b"), nil),
		"indefinite length":    sections([]byte("\xbf\x64file\x61a\xff"), nil),
		"deep":                 sections([]byte("\xa1\x65parts"+strings.Repeat("\x81", 9)+"\x80"), nil),
		"tag":                  sections([]byte("\xa1\x64line\xc2\x41\x01"), nil),
		"not UTF-8":            sections([]byte("\xa1\x64file\x61\xff"), nil),
		"trailing bytes":       sections(append(bytes.Clone(good), 0), nil),
		"number too large":     sections([]byte("\xa1\x64line\x1b\xff\xff\xff\xff\xff\xff\xff\xff"), nil),
		"parts not sorted":     sections(encoded(map[string]any{"parts": [][]string{{"b", ""}, {"a", ""}}}), nil),
		"many parts announced": sections([]byte("\xa1\x65parts\x9a\x7f\xff\xff\xff"), nil),
	} {
		_, err := decode(signed(body))
		assert.ErrorIs(t, err, ErrCorrupt, name)
		assert.NotContains(t, fmt.Sprint(err), "checksum", name)
	}
}

func TestAnyTranslationComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k Key
		copy(k[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")) })
		meta := Meta{Function: text.Draw(t, "function"), File: text.Draw(t, "file"), Line: rapid.Int().Draw(t, "line")}
		for range rapid.IntRange(0, 5).Draw(t, "parts") {
			meta.Parts = append(meta.Parts, Part{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")})
		}
		payload := rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
		data, name, err := encode(k, meta, payload)
		require.NoError(t, err)
		c, err := decode(data)
		require.NoError(t, err)
		assert.Equal(t, k, c.key)
		assert.Equal(t, name, c.name)
		assert.True(t, bytes.Equal(payload, c.payload))
		want := meta.plain()
		want.Created = c.meta.Created
		assert.Equal(t, want, c.meta)

		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= rapid.ByteRange(1, 255).Draw(t, "by")
		}
		if again, err := decode(data); err == nil { // two changes may undo each other
			assert.Equal(t, c.payload, again.payload)
		}
	})
}

func FuzzDecode(f *testing.F) {
	data := small(f)
	f.Add(data[:len(data)-tailSize])
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, data := range [][]byte{body, signed(body)} {
			if _, err := decode(data); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}

func TestExportAndImport(t *testing.T) {
	from, to := opened(t), opened(t)
	for i := range 3 {
		require.NoError(t, from.Put(key(i), described(fmt.Sprint("f", i)), []byte{byte(i)}))
	}
	bad := put(t, from, key(3), "bad")
	require.NoError(t, os.WriteFile(from.pathOf(bad), nil, 0o600))
	var all, some bytes.Buffer
	n, err := from.Export(&all, nil)
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	n, err = from.Export(&some, func(l Listed) bool { return l.Meta.Function == "f1" })
	require.NoError(t, err)
	assert.Equal(t, 1, n)

	archive := all.Bytes()
	n, err = to.Import(bytes.NewReader(some.Bytes()))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	n, err = to.Import(bytes.NewReader(archive))
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Len(t, to.List(), 3)
	before, _, err := from.Read(from.Files(key(2))[0])
	require.NoError(t, err)
	after, payload, err := to.Read(to.Files(key(2))[0])
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.Equal(t, []byte{2}, payload)

	for n := range archive {
		_, err := to.Import(bytes.NewReader(archive[:n]))
		assert.ErrorIs(t, err, ErrCorrupt, n)
	}
	for i := range archive {
		lie := bytes.Clone(archive)
		lie[i] ^= 0x80
		_, err := to.Import(bytes.NewReader(lie))
		assert.ErrorIs(t, err, ErrCorrupt, i)
	}
	failure := errors.New("the disk is broken")
	_, err = to.Import(io.MultiReader(bytes.NewReader(archive[:20]), &failing{failure}))
	assert.ErrorIs(t, err, failure)
	_, err = from.Export(&failing{failure}, nil)
	assert.ErrorIs(t, err, failure)
	readOnly, err := Open("/dev/null/translations", 0)
	require.NoError(t, err)
	_, err = readOnly.Import(bytes.NewReader(archive))
	assert.ErrorIs(t, err, ErrReadOnly)
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error)  { return 0, f.err }
func (f *failing) Write([]byte) (int, error) { return 0, f.err }

// hammer uses a folder for half a second, as one of several processes. What it reads must be what one of them wrote.
func hammer(dir string) error {
	s, err := Open(dir, 400_000)
	if err != nil {
		return err
	}
	allowed := func(err error) error {
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrLocked) {
			return nil
		}
		return err
	}
	text := func(k, n int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%d-%d ", k, n)), 500*(n+1)) }
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		k, n := rand.IntN(4), rand.IntN(40)
		var failed error
		switch rand.IntN(60) {
		case 0:
			failed = s.Clear()
		case 1:
			failed = removeAll(filepath.Join(append([]string{dir}, below(key(k))...)...))
		case 2:
			s.sweep()
		case 3:
			if _, bad := s.Verify(); len(bad) > 0 {
				failed = bad[0].Err
			}
		case 4:
			_, failed = s.Export(io.Discard, nil)
		case 5, 6:
			if failed = s.PutReason(key(k), string(text(k, 0))); failed == nil {
				if got := s.Reason(key(k)); got != "" && got != string(text(k, 0)) {
					return fmt.Errorf("reason %q", got)
				}
			}
		case 7, 8:
			var lock *Lock
			lock, failed = s.Lock(key(k))
			lock.Unlock()
			s.Wait(key(k), time.Millisecond, nil)
		case 9:
			failed = s.Miss(Record{Function: "f"})
			s.Misses()
		default:
			if rand.IntN(2) == 0 {
				failed = s.Put(key(k), Meta{Line: n}, text(k, n))
				break
			}
			for _, file := range s.Files(key(k)) {
				meta, payload, err := s.Read(file)
				if err == nil && !bytes.Equal(payload, text(k, meta.Line)) {
					return fmt.Errorf("line %d has %d bytes", meta.Line, len(payload))
				}
				if failed = allowed(err); failed != nil {
					break
				}
			}
		}
		if err := allowed(failed); err != nil {
			return err
		}
	}
	return nil
}

func TestManyProcessesAtOnce(t *testing.T) {
	s := opened(t)
	var started []*exec.Cmd
	for range 6 {
		cmd := child("hammer", s.Dir())
		cmd.Stderr = new(bytes.Buffer)
		require.NoError(t, cmd.Start())
		started = append(started, cmd)
	}
	for _, cmd := range started {
		assert.NoError(t, cmd.Wait(), "%v", cmd.Stderr)
	}
	_, bad := s.Verify()
	assert.Empty(t, bad)
	require.NoError(t, s.Clear())
	entries, err := os.ReadDir(s.Dir())
	require.NoError(t, err)
	assert.Empty(t, entries)
}
