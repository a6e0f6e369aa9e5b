package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/cache/disk"
)

// stored returns a folder with a translation of each function.
func stored(t *testing.T, functions ...string) *disk.Store {
	t.Helper()
	s, err := disk.Open(filepath.Join(t.TempDir(), "translations"), 0)
	require.NoError(t, err)
	for i, function := range functions {
		key := disk.Key{byte(i)}
		require.NoError(t, s.Put(key, disk.Meta{
			Function: function, File: "/home/user/project/train.py", Line: 10 + i, Backend: "eager", Python: "3.13.1",
			Torch: "2.9.0+cpu", Parts: parts("code", "abc", "torch", "2.9.0+cpu"),
		}, []byte("payload")))
		used := time.Now().Add(-time.Duration(i) * 90 * time.Minute)
		require.NoError(t, os.Chtimes(fileOf(s, key), used, used))
	}
	return s
}

func fileOf(s *disk.Store, key disk.Key) string {
	digits := key.String()
	return filepath.Join(s.Dir(), "v1", digits[:2], digits, s.Files(key)[0].Name)
}

func parts(texts ...string) (all []disk.Part) {
	for i := 0; i < len(texts); i += 2 {
		all = append(all, disk.Part{Name: texts[i], Value: texts[i+1]})
	}
	return all
}

// cache runs a command of `godynamo cache` on a folder.
func cache(s *disk.Store, args ...string) (code int, stdout, stderr string) {
	return run(append([]string{"cache", "--dir", s.Dir()}, args...)...)
}

func TestCacheList(t *testing.T) {
	s := stored(t, "Model.forward", "step", "evil\x1b[2J")
	code, stdout, stderr := cache(s, "list")
	assert.Zero(t, code, stderr)
	var lines []string
	for _, line := range strings.Split(stdout, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	size := func(i int) string { return fmt.Sprintf("%d B", s.List()[i].Size) }
	assert.Equal(t, []string{
		" function      │ place                          │ backend │ python │ torch     │  size │    used",
		"───────────────┼────────────────────────────────┼─────────┼────────┼───────────┼───────┼─────────",
		" Model.forward │ /home/user/project/train.py:10 │ eager   │ 3.13.1 │ 2.9.0+cpu │ " + size(0) + " │     now",
		" step          │ /home/user/project/train.py:11 │ eager   │ 3.13.1 │ 2.9.0+cpu │ " + size(1) + " │ 1 h ago",
		" evil?[2J      │ /home/user/project/train.py:12 │ eager   │ 3.13.1 │ 2.9.0+cpu │ " + size(2) + " │ 3 h ago",
	}, lines[:5])
	assert.Regexp(t, `^3 translations, \d+ B in `+s.Dir()+`$`, lines[6])
}

func TestCacheListFitsATerminal(t *testing.T) {
	long := strings.Repeat("Outer.", 30) + "forward"
	s := stored(t, long, "step")
	_, stdout, _ := cache(s, "list")
	for _, line := range strings.Split(stdout, "\n")[:4] {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), columns, line)
	}
	assert.Contains(t, stdout, "…er.Outer.Outer.forward │")
	assert.Contains(t, stdout, "train.py:11 │")
	_, stdout, _ = cache(s, "list", "--wide")
	assert.Contains(t, stdout, long)
}

func TestCacheSizeAndClear(t *testing.T) {
	s := stored(t, "step", "other")
	code, stdout, _ := cache(s, "size")
	assert.Zero(t, code)
	assert.Equal(t, "2 translations, 16.0 KiB on disk in "+s.Dir()+"\n", stdout)
	code, stdout, _ = cache(s, "clear")
	assert.Zero(t, code)
	assert.Equal(t, "removed 2 translations, 16.0 KiB, from "+s.Dir()+"\n", stdout)
	for _, command := range []string{"list", "size", "clear", "verify"} {
		code, stdout, stderr := cache(s, command)
		assert.Zero(t, code, stderr)
		assert.Contains(t, stdout, "no translations")
	}
}

func TestCacheVerifyRemovesBadFilesAndFails(t *testing.T) {
	s := stored(t, "step", "other")
	code, stdout, _ := cache(s, "verify")
	assert.Zero(t, code)
	assert.Equal(t, "2 translations good, 0 bad in "+s.Dir()+"\n", stdout)
	bad := fileOf(s, disk.Key{1})
	require.NoError(t, os.Truncate(bad, 200))
	code, stdout, _ = cache(s, "verify")
	assert.Equal(t, 1, code)
	assert.Equal(t, bad+": corrupt translation file: its checksum does not match; it was removed\n"+
		"1 translation good, 1 bad in "+s.Dir()+"\n", stdout)
	code, _, _ = cache(s, "verify")
	assert.Zero(t, code)
}

func TestCacheExportAndImport(t *testing.T) {
	from, to := stored(t, "Model.forward", "step"), stored(t)
	file := filepath.Join(t.TempDir(), "all.gdx")
	code, _, stderr := cache(from, "export", file)
	assert.Zero(t, code)
	assert.Equal(t, file+": 2 translations\n", stderr)
	code, stdout, stderr := cache(to, "import", file)
	assert.Zero(t, code, stderr)
	assert.Equal(t, "imported 2 translations into "+to.Dir()+"\n", stdout)
	assert.Len(t, to.List(), 2)

	code, stdout, stderr = cache(from, "export", "-", "--function", "forward")
	assert.Zero(t, code, stderr)
	require.NoError(t, to.Clear())
	n, err := to.Import(strings.NewReader(stdout))
	require.NoError(t, err)
	assert.Equal(t, 1, n)

	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, whole[:len(whole)-10], 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"import", file},
			file + ": corrupt translation file: it ends before its last file (imported before: 1 translation)"},
		{[]string{"import", file + "x"}, "open " + file + "x: no such file or directory"},
		{[]string{"import"}, "cache import needs one file: godynamo cache import FILE [flags]"},
		{[]string{"export", file, "-f", "setp"}, "no translation of setp is stored; did you mean step?"},
		{[]string{"export", "/dev/full/x"}, "/dev/full/x cannot be written: not a directory"},
	} {
		code, stdout, stderr := cache(from, c.args...)
		assert.Equal(t, 2, code, c.args)
		assert.Empty(t, stdout)
		assert.Equal(t, "godynamo: "+c.want+"\n", stderr)
	}
}

func TestCacheImportReadsStdinAndMakesTheFolder(t *testing.T) {
	var archive, out, errs bytes.Buffer
	_, err := stored(t, "step").Export(&archive, nil)
	require.NoError(t, err)
	root := newRoot(&App{Stdin: &archive, Stdout: &out, Stderr: &errs})
	dir := filepath.Join(t.TempDir(), "new", "folder")
	root.SetArgs([]string{"cache", "import", "-", "--dir", dir})
	require.Zero(t, exitCode(&errs, root.Execute()), errs.String())
	assert.Equal(t, "imported 1 translation into "+dir+"\n", out.String())

	file := filepath.Join(t.TempDir(), "all.gdx")
	code, _, stderr := cache(stored(t, "step"), "export", file)
	require.Zero(t, code, stderr)
	code, _, stderr = run("cache", "import", file, "--dir", "/dev/null/translations")
	assert.Equal(t, 2, code)
	assert.Equal(t, "godynamo: "+file+": /dev/null/translations: the folder of translations cannot be written: "+
		"not a directory (imported before: no translations)\n", stderr)
}

func TestCacheWhy(t *testing.T) {
	s := stored(t, "Model.forward", "step")
	miss := func(function string, age time.Duration, reason string, texts ...string) {
		require.NoError(t, s.Miss(disk.Record{Time: time.Now().Add(-age), Function: function,
			File: "/home/user/project/train.py", Line: 12, Parts: parts(texts...), Reason: reason}))
	}
	code, stdout, _ := cache(s, "why")
	assert.Zero(t, code)
	assert.Equal(t, "no misses in "+s.Dir()+"\n", stdout)

	long := strings.Repeat("0123456789", 5)
	miss("other", 50*time.Hour, "", "code", "abc")
	miss("step", 3*time.Hour, "the guards failed: x has 2 dimensions", "code", "abc", "torch", "2.9.0+cpu")
	miss("Model.forward", 10*time.Minute, "", "code", "a"+long, "option dynamic", "True")
	code, stdout, stderr := cache(s, "why")
	assert.Zero(t, code, stderr)
	at := "(/home/user/project/train.py:12)"
	assert.Equal(t, `Model.forward `+at+`, 10 min ago
  The nearest stored translation, used now, differs in:
    code: stored abc, now a0123456789012345678901234567…
    option dynamic: not in the stored key, now True
    torch: stored 2.9.0+cpu, not in the key now
step `+at+`, 3 h ago
  the guards failed: x has 2 dimensions
  A translation with this key is stored: it was stored after this miss, or is for other values.
other `+at+`, 2 d ago
  No translation of this function is stored.
`, stdout)

	_, stdout, _ = cache(s, "why", "forward")
	assert.True(t, strings.HasPrefix(stdout, "Model.forward "))
	assert.NotContains(t, stdout, "step")
	_, stdout, _ = cache(s, "why", "-n", "1")
	assert.Contains(t, stdout, "\n... and 2 earlier (--count)\n")
	code, _, stderr = cache(s, "why", "setp")
	assert.Equal(t, 2, code)
	assert.Equal(t, "godynamo: no miss of setp; did you mean step?\n", stderr)
}

func TestTheNearestTranslationHasTheFewestDifferences(t *testing.T) {
	list := []disk.Listed{
		{Meta: disk.Meta{Function: "f", Parts: parts("a", "1", "b", "1")}},
		{Meta: disk.Meta{Function: "g", Parts: parts("a", "2", "b", "2")}},
		{Meta: disk.Meta{Function: "f", Parts: parts("a", "2", "b", "1")}},
	}
	lines := explained(disk.Record{Function: "f", Parts: parts("a", "2", "b", "2")}, list)
	assert.Equal(t, []string{"  b: stored 1, now 2"}, lines[1:])
	lines = explained(disk.Record{Function: "g", File: "moved.py", Parts: parts("a", "2", "b", "2")}, list)
	assert.Equal(t, []string{"  file: stored , now moved.py"}, lines[1:])
	long := strings.Repeat("x", 40)
	assert.Equal(t, []string{"a: stored and now are long texts that differ"},
		differing(parts("a", long+"1"), parts("a", long+"2")))
	assert.Empty(t, differing(parts("a", "1", "a", "2"), parts("a", "1", "a", "2")))
}

func TestTheFolderOfTranslations(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	for _, c := range []struct{ flag, own, xdg, want string }{
		{"", "", "", "/home/u/.cache/godynamo/translations"},
		{"", "", "relative", "/home/u/.cache/godynamo/translations"},
		{"", "", "/xdg", "/xdg/godynamo/translations"},
		{"", "/own", "/xdg", "/own"},
		{"/flag", "/own", "/xdg", "/flag"},
	} {
		t.Setenv("GODYNAMO_CACHE_DIR", c.own)
		t.Setenv("XDG_CACHE_HOME", c.xdg)
		dir, err := (&cacheCommand{dir: c.flag}).folder()
		require.NoError(t, err)
		assert.Equal(t, c.want, dir)
	}
}

func TestCacheProblemsAreOneLine(t *testing.T) {
	base := t.TempDir()
	t.Setenv("GODYNAMO_CACHE_DIR", filepath.Join(base, "none"))
	code, stdout, _ := run("cache", "list")
	assert.Zero(t, code)
	assert.Equal(t, "no translations in "+base+"/none\n", stdout)
	assert.NoDirExists(t, filepath.Join(base, "none"), "looking makes no folder")
	require.NoError(t, os.Symlink(base, filepath.Join(base, "link")))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lst"}, `unknown command "lst" for "godynamo cache"; did you mean list?`},
		{[]string{"list", "more"}, "cache list takes no arguments, only flags, not more"},
		{[]string{"list", "--wid"},
			"unknown flag: --wid; did you mean --wide, --dir? (godynamo cache list --help lists them)"},
		{[]string{"why", "a", "b"}, `cache why takes one function, not "b" as well`},
		{[]string{"why", "-n", "0", "--dir", base}, "--count is at least 1"},
		{[]string{"size", "--dir", base + "/none"}, base + "/none: no such folder"},
		{[]string{"size", "--dir", base + "/link"}, base + "/link: not private to the user: it is a symbolic link"},
		{[]string{"size", "--dir", "/dev/null/x"}, "/dev/null/x: not a directory"},
	} {
		code, stdout, stderr := run(append([]string{"cache"}, c.args...)...)
		assert.Equal(t, 2, code, c.args)
		assert.Empty(t, stdout)
		assert.Equal(t, "godynamo: "+c.want+"\n", stderr)
	}
	code, stdout, _ = run("cache")
	assert.Zero(t, code)
	assert.Contains(t, stdout, "verify")
}
