// Package report reads the files written with GODYNAMO_TRACE (docs/trace.md) and makes one page from them.
//
// A trace may be truncated anywhere, and its directory may contain other files. Unreadable parts are listed as
// Problems and skipped; everything else is reported. All texts in a trace come from the user's program and are escaped
// in the page.
package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Trace is the content of a directory. Processes are in the order in which they started; translations and events are
// sorted by time.
type Trace struct {
	Directory    string
	Processes    []*Process
	Translations []*Translation
	Events       []*Event
	Problems     []Problem
}

// Problem is a file, or a line of a file, that was skipped.
type Problem struct {
	File string `json:"file"`
	Text string `json:"text"`
}

func (p Problem) String() string { return p.File + ": " + p.Text }

// ErrNothing is wrapped by the error for a directory that contains no trace.
var ErrNothing = errors.New("no trace")

// Read reads the traces in the directory path, or the one file path. It returns an error if path is missing or
// unreadable, or if there is no trace (ErrNothing). Problems with single files are no error; they are listed in the
// trace.
func Read(path string) (*Trace, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	t := &Trace{Directory: path}
	names := []string{path}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		names = names[:0]
		for _, e := range entries {
			if isTraceFile(e) {
				names = append(names, filepath.Join(path, e.Name()))
			} else if !e.IsDir() && !isOutput(e.Name()) {
				t.Problems = append(t.Problems, Problem{e.Name(), "not a file of a trace (those end in .jsonl)"})
			}
		}
	}
	var files []*file
	for _, name := range names {
		f, err := readFile(name)
		if err != nil {
			f.problem("%v", err)
		}
		t.Problems = append(t.Problems, f.problems...)
		if f.process != nil {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return t, fmt.Errorf("%w in %s", ErrNothing, path)
	}
	t.join(files)
	return t, nil
}

// isTraceFile rejects pipes and other special files, since opening one could block forever.
func isTraceFile(e os.DirEntry) bool {
	return e.Type()&^os.ModeSymlink == 0 && strings.HasSuffix(e.Name(), ".jsonl")
}

// isOutput reports whether a file is expected in the directory but not part of a trace: a page made from the trace, or
// a hidden file.
func isOutput(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".html")
}

// file is the contents of one file.
type file struct {
	name         string
	process      *Process // nil if the file is not a trace, or unreadable
	translations []*Translation
	events       []*Event
	problems     []Problem
}

func (f *file) problem(format string, args ...any) {
	f.problems = append(f.problems, Problem{f.name, fmt.Sprintf(format, args...)})
}

// maxBroken is the number of a file's broken lines that are reported individually.
const maxBroken = 5

func readFile(path string) (*file, error) {
	f := &file{name: filepath.Base(path)}
	in, err := os.Open(path)
	if err != nil {
		return f, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	}
	defer in.Close()
	reader := bufio.NewReaderSize(in, 1<<20)
	broken := 0
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return f, fmt.Errorf("cannot be read from line %d on: %w", number, err)
		}
		last := err == io.EOF
		if len(bytes.TrimSpace(line)) > 0 {
			if e := f.line(line); e != nil {
				switch {
				case f.process == nil:
					f.problem("%v; the file is skipped", e)
					return f, nil
				case last && !bytes.HasSuffix(line, []byte("\n")):
					f.problem("the last line is torn (%d bytes); the lines before it are reported", len(line))
				default:
					if broken++; broken <= maxBroken {
						f.problem("line %d cannot be read (%v); it is skipped", number, e)
					}
				}
			}
		}
		if last {
			break
		}
	}
	if broken > maxBroken {
		f.problem("%d lines more cannot be read; they are skipped", broken-maxBroken)
	}
	if f.process == nil {
		f.problem("empty; the file is skipped")
	}
	return f, nil
}

// line parses one line of a file.
func (f *file) line(line []byte) error {
	var kind struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		if f.process == nil {
			return errors.New("no trace of godynamo's: its first line is no JSON object")
		}
		return plain(err)
	}
	if f.process == nil || kind.Event == "process" {
		p := &Process{}
		err := json.Unmarshal(line, p)
		switch {
		case f.process != nil:
			return errors.New("a second process in one file")
		case kind.Event != "process" || p.Format != format:
			return errors.New("no trace of godynamo's: its first line does not say so")
		case p.Version > Version:
			return fmt.Errorf("written in version %d of the format, and this godynamo reads up to version %d: use a "+
				"newer one", p.Version, Version)
		case err != nil:
			return plain(err)
		}
		f.process = p
		return nil
	}
	switch kind.Event {
	case "translation":
		t := &Translation{}
		if err := json.Unmarshal(line, t); err != nil {
			return plain(err)
		}
		f.translations = append(f.translations, t)
	case "limit", "backend_failed", "graph_failed", "internal_error", "end":
		e := &Event{}
		if err := json.Unmarshal(line, e); err != nil {
			return plain(err)
		}
		f.events = append(f.events, e)
	case "":
		return errors.New("no event")
	}
	return nil // events of later versions are ignored
}

// plain returns an error of encoding/json without that package's internal names.
func plain(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("field %q is of another type", mismatch.Field)
	}
	return errors.New("no JSON object")
}

// join merges the files of each process into the trace and sorts it.
func (t *Trace) join(files []*file) {
	type key struct {
		pid     int
		started float64
	}
	sort.SliceStable(files, func(i, j int) bool {
		a, b := files[i].process, files[j].process
		if a.Started != b.Started {
			return a.Started < b.Started
		}
		if a.PID != b.PID {
			return a.PID < b.PID
		}
		return a.Part < b.Part
	})
	index := map[key]int{}
	for _, f := range files {
		k := key{f.process.PID, f.process.Started}
		i, known := index[k]
		if !known {
			i = len(t.Processes)
			index[k] = i
			t.Processes = append(t.Processes, f.process)
		}
		for _, x := range f.translations {
			x.process = i
			t.Translations = append(t.Translations, x)
		}
		for _, e := range f.events {
			e.Process = i
			t.Events = append(t.Events, e)
		}
	}
	sort.SliceStable(t.Translations, func(i, j int) bool { return t.Translations[i].Time < t.Translations[j].Time })
	sort.SliceStable(t.Events, func(i, j int) bool { return t.Events[i].Time < t.Events[j].Time })
}
