package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type object = map[string]any

func head(pid int, more object) object {
	return merge(object{"event": "process", "format": format, "version": 1, "pid": pid, "started": 100.5, "part": 0,
		"argv": []string{"python", "train.py"}}, more)
}

func merge(a, b object) object {
	for k, v := range b {
		a[k] = v
	}
	return a
}

// translation returns a translation of a small program. The fields in `more` replace its own.
func translation(id int, more object) object {
	return merge(object{
		"event": "translation", "id": id, "parent": nil, "time": 101 + float64(id), "kind": "call", "status": "ok",
		"backend":  "eager",
		"function": object{"name": "step", "file": "train.py", "line": 10}, "ops": 3, "graphs": 1,
		"graph":  "graph():\n    %x : ...\n",
		"stack":  [][]any{{"main", "train.py", 30, "step(x)"}},
		"guards": object{"text": "n == 2", "nodes": 2, "parts": [][]any{{"n == 2", "train.py", 11, "x * n"}}},
		"times":  object{"translate": 90.0, "guards": 10.0},
		"calls":  [][]any{{-1, "step", "train.py", 10, 1, 60.0}, {0, "helper", "train.py", 2, 2, 30.0}},
	}, more)
}

func write(t *testing.T, dir, name string, events ...object) string {
	t.Helper()
	var out strings.Builder
	for _, e := range events {
		line, err := json.Marshal(e)
		require.NoError(t, err)
		out.Write(line)
		out.WriteByte('\n')
	}
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o600))
	return path
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func read(t *testing.T, dir string) (*Trace, *Summary) {
	t.Helper()
	trace, err := Read(dir)
	require.NoError(t, err)
	return trace, Summarize(trace)
}

func html(t *testing.T, trace *Trace, s *Summary) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, HTML(&out, trace, s))
	return out.String()
}

func TestTotalsGroupsAndTimes(t *testing.T) {
	dir := t.TempDir()
	split := object{"code": "GD0101", "reason": "branch", "hint": "where",
		"stack": [][]any{{"helper", "train.py", 3, "if y:"}, {"step", "train.py", 12, "helper(x)"}}}
	failure := func(was, found string) []object {
		return []object{{"text": "n == " + was + ": found " + found, "guard": "n == " + was, "was": was, "found": found,
			"file": "train.py", "line": 11, "source": "x * n"}}
	}
	write(t, dir, "a.jsonl", head(7, nil),
		translation(1, object{"breaks": []object{split}}),
		translation(2, object{"parent": 1, "kind": "resume", "resumes_at": 12}),
		translation(3, object{"failures": failure("2", "3"), "breaks": []object{split}}),
		translation(4, object{"failures": failure("3", "4"), "status": "skipped", "graphs": 0}),
		object{"event": "limit", "limit": 8, "time": 200,
			"function": object{"name": "step", "file": "train.py", "line": 10}},
		object{"event": "end", "time": 201, "counters": object{"misses": 4}},
		object{"event": "of a later version", "time": 202})
	_, s := read(t, dir)
	assert.Empty(t, s.Problems)
	assert.Equal(t, map[string]int{"ok": 3, "skipped": 1}, s.Totals.ByStatus)
	assert.Equal(t, []int{4, 3, 12, 2, 2, 4, 1}, []int{s.Totals.Translations, s.Totals.Graphs, s.Totals.Ops,
		s.Totals.Breaks, s.Totals.Recompiles, s.Totals.Guards, s.Totals.Limits})
	assert.Equal(t, 400.0, s.Totals.Micros)
	assert.Equal(t, 0, *s.Compiles[1].Parent)
	require.Len(t, s.Breaks, 1)
	assert.Equal(t, []int{0, 2}, s.Breaks[0].Translations)
	assert.Equal(t, "if y:", s.Breaks[0].Source)
	require.Len(t, s.Again, 1, "n == 2 and n == 3 are one guard with two values")
	assert.Equal(t, [][2]string{{"2", "3"}, {"3", "4"}}, s.Again[0].Values)
	assert.Equal(t, "step", s.Functions[0].Name)
	assert.Equal(t, FunctionTime{Place{"step", "train.py", 10}, 4, 0, 240, 360}, s.Functions[0])
	assert.Equal(t, FunctionTime{Place{"helper", "train.py", 2}, 0, 8, 120, 120}, s.Functions[1])
	require.Len(t, s.flame, 2)
	assert.True(t, s.Processes[0].Ended)
}

func TestARecursiveFunctionIsCountedOnceInWhatItTook(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.jsonl", head(1, nil), translation(1, object{"calls": [][]any{
		{-1, "f", "a.py", 1, 1, 10.0}, {0, "f", "a.py", 1, 1, 20.0}, {1, "g", "a.py", 5, 1, 5.0},
		{7, "odd", "a.py", 9, 1, 1.0}}}))
	_, s := read(t, dir)
	assert.Equal(t, 35.0, s.Functions[0].Cumulative)
	assert.Equal(t, 30.0, s.Functions[0].Self)
}

func TestTheFilesOfAProcessAreJoinedAndAForkFindsItsParents(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "p.1.jsonl", head(7, object{"part": 1}), translation(2, nil))
	write(t, dir, "p.0.jsonl", head(7, nil), translation(1, nil))
	write(t, dir, "c.0.jsonl", head(9, object{"started": 103.0, "forked_from": object{"pid": 7, "last": 1}}),
		translation(2, object{"parent": 1, "time": 110}), translation(3, object{"parent": 2, "time": 111}),
		translation(4, object{"parent": 99, "time": 112}))
	trace, s := read(t, dir)
	require.Len(t, trace.Processes, 2)
	assert.Equal(t, 0, *s.Processes[1].Parent)
	of := func(i int) int { return *s.Compiles[i].Parent }
	assert.Equal(t, []int{7, 7, 9, 9, 9}, []int{pid(s, 0), pid(s, 1), pid(s, 2), pid(s, 3), pid(s, 4)})
	assert.Equal(t, 0, of(2), "number 1 was the parent's")
	assert.Equal(t, 2, of(3), "number 2 is the child's own")
	assert.Nil(t, s.Compiles[4].Parent)
}

func pid(s *Summary, i int) int { return s.Processes[s.Compiles[i].Process].PID }

func TestWhatCannotBeReadIsNamedAndTheRestReported(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir, good string)
		want  string
	}{
		{"a torn last line", func(t *testing.T, _,
			good string) {
			appendTo(t, good, `{"event":"translation","id":9,"func`)
		},
			"a.jsonl: the last line is torn (35 bytes); the lines before it are reported"},
		{"a broken line in between", func(t *testing.T, _,
			good string) {
			appendTo(t, good, "\x00\xff garbage\n{\"event\":\"end\"}\n")
		},
			"a.jsonl: line 3 cannot be read (no JSON object); it is skipped"},
		{"a field of another type", func(t *testing.T, _,
			good string) {
			appendTo(t, good, `{"event":"translation","id":"nine"}`+"\n")
		},
			`a.jsonl: line 3 cannot be read (field "id" is of another type); it is skipped`},
		{"many broken lines", func(t *testing.T, _, good string) { appendTo(t, good, strings.Repeat("x\n", 40)) },
			"a.jsonl: 35 lines more cannot be read; they are skipped"},
		{"a future version", func(t *testing.T, dir,
			_ string) {
			write(t, dir, "b.jsonl", head(8, object{"version": 2}))
		},
			"b.jsonl: written in version 2 of the format, and this godynamo reads up to version 1: use a newer one; " +
				"the file is skipped"},
		{"another program's lines", func(t *testing.T, dir,
			_ string) {
			write(t, dir, "b.jsonl", object{"level": "info"})
		},
			"b.jsonl: no trace of godynamo's: its first line does not say so; the file is skipped"},
		{"no JSON at all", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "b.jsonl"), []byte("hello\n"), 0o600))
		}, "b.jsonl: no trace of godynamo's: its first line is no JSON object; the file is skipped"},
		{"an empty file", func(t *testing.T, dir, _ string) { write(t, dir, "b.jsonl") },
			"b.jsonl: empty; the file is skipped"},
		{"a pipe", func(t *testing.T, dir, _ string) {
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "b.jsonl"), 0o600))
		},
			"b.jsonl: not a file of a trace (those end in .jsonl)"},
		{"a link that leads nowhere", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "b.jsonl")))
		}, "b.jsonl: cannot be read: no such file or directory"},
		{"another kind of file", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
		}, "notes.txt: not a file of a trace (those end in .jsonl)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.spoil(t, dir, write(t, dir, "a.jsonl", head(7, nil), translation(1, nil)))
			trace, s := read(t, dir)
			var texts []string
			for _, p := range trace.Problems {
				texts = append(texts, p.String())
			}
			assert.Contains(t, texts, c.want)
			assert.Equal(t, 1, s.Totals.Translations)
			assert.Contains(t, html(t, trace, s), `id="problems"`)
		})
	}
}

func TestALastLineWithoutALineBreakCounts(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "a.jsonl", head(7, nil), translation(1, nil))
	line, err := json.Marshal(translation(2, nil))
	require.NoError(t, err)
	appendTo(t, path, string(line))
	_, s := read(t, dir)
	assert.Empty(t, s.Problems)
	assert.Equal(t, 2, s.Totals.Translations)
}

func TestADirectoryWithoutATrace(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(dir)
	assert.ErrorIs(t, err, ErrNothing)
	_, err = Read(filepath.Join(dir, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	write(t, dir, "a.jsonl", object{"level": "info"})
	trace, err := Read(dir)
	assert.True(t, errors.Is(err, ErrNothing))
	assert.Len(t, trace.Problems, 1)
	page := filepath.Join(dir, "report.html")
	require.NoError(t, os.WriteFile(page, nil, 0o600))
	trace, _ = Read(dir)
	assert.Len(t, trace.Problems, 1, "a page made of a trace is not taken for one")
}

func TestTheUsersTextsReachThePageAsTextAlone(t *testing.T) {
	evil := `</script><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}` + "\u2028"
	dir := t.TempDir()
	write(t, dir, "a.jsonl", head(7, object{"argv": []string{evil}}), translation(1, object{
		"function": object{"name": evil, "file": evil, "line": 1}, "reason": evil, "graph": evil,
		"stack":  [][]any{{evil, evil, 3, evil}},
		"breaks": []object{{"code": evil, "reason": evil, "hint": evil, "stack": [][]any{{evil, evil, 3, evil}}}},
		"failures": []object{{"text": evil, "guard": evil, "found": evil, "was": evil, "file": evil, "line": 1,
			"source": evil}},
		"calls": [][]any{{-1, evil, evil, 1, 1, 1.0}}}),
		object{"event": "internal_error", "error": evil})
	appendTo(t, filepath.Join(dir, "a.jsonl"), evil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "<b>.txt"), nil, 0o600))
	trace, s := read(t, dir)
	text := html(t, trace, s)
	// this is the name of an XML namespace, which the browser does not load
	text = strings.ReplaceAll(text, `"http://www.w3.org/2000/svg"`, "")
	for _, bad := range []string{"<script>alert", "<img", "<b>.txt", "\u2028", "</script><script>", "http:", "https:"} {
		assert.False(t, strings.Contains(text, bad), "the page has %q in it", bad)
	}
}

func TestHugeTextsAndManyTranslationsStayOnePage(t *testing.T) {
	dir := t.TempDir()
	events := []object{head(7, nil)}
	listing := strings.Repeat("              2 LOAD_FAST                0 (x)\n", 200)
	for i := range 3000 {
		events = append(events, translation(i+1,
			object{"bytecode": object{"original": listing, "transformed": listing}}))
	}
	events = append(events, translation(4000, object{"graph": strings.Repeat("g", 9<<20)}))
	write(t, dir, "a.jsonl", events...)
	trace, s := read(t, dir)
	assert.Equal(t, 3001, s.Totals.Translations)
	text := html(t, trace, s)
	assert.Less(t, len(text), 4<<20, "details are packed")
	assert.Contains(t, text, fmt.Sprintf(`id="chunk%d"`, 3000/perChunk))
}

func TestDurationsArePrintedInTheirUnit(t *testing.T) {
	for us, want := range map[float64]string{0: "0 µs", 12.34: "12.3 µs", 1500: "1.5 ms", 2.5e6: "2.5 s"} {
		assert.Equal(t, want, duration(us))
	}
}
