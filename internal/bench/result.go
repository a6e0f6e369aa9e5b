// Package bench is `godynamo bench` without its command line: it has workloads measured in child processes, sums up what they
// say, compares two results and writes them as a table, JSON, CSV, Go's benchmark format, an HTML page and pictures.
//
// It measures nothing itself and knows no Python object: the children are `python -m godynamo._tools bench` (child.go). A result file is
//
//	{"kind": "godynamo bench", "version": 1, "machine": {...}, "settings": {...}, "interrupted": false,
//	 "workloads": [{"name": "relu", "suite": "micro", "about": "...", "backend": "eager", "engines": {"godynamo": Figures}}]}
//
// with times in the units that the names of the fields say. Statistics are in stats.go: why the best round of a process stands for it, and
// what is an interval.
package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Eager is the label of the engine that all others are compared with.
const Eager = "eager"

const kind = "godynamo bench"

// Problem is bad use, told in one line.
type Problem string

// Error implements error.
func (p Problem) Error() string { return string(p) }

func problemf(format string, args ...any) error { return Problem(fmt.Sprintf(format, args...)) }

// Machine is what figures depend on.
type Machine struct {
	Date     string  `json:"date"`
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"`
	Load     float64 `json:"load"` // of the last minute, when the run began
	Python   string  `json:"python"`
	Torch    string  `json:"torch"`
	Godynamo string  `json:"godynamo"`
}

// Settings say how a result was measured.
type Settings struct {
	Engines   []string `json:"engines"` // in the order of tables
	Processes int      `json:"processes"`
	Rounds    int      `json:"rounds"` // in each process
	Quick     bool     `json:"quick"`
	// FreshCaches tells that each engine had an empty cache of inductor's on disk, so that cold figures hold all compiling.
	FreshCaches bool `json:"fresh_caches"`
}

// Result is one run.
type Result struct {
	Kind        string      `json:"kind"`
	Version     int         `json:"version"`
	Machine     Machine     `json:"machine"`
	Settings    Settings    `json:"settings"`
	Interrupted bool        `json:"interrupted"` // by Ctrl-C: the rest was not measured, or in fewer processes
	Workloads   []*Workload `json:"workloads"`
	Comparison  *Comparison `json:"comparison,omitempty"`
}

// Workload is what was called, and how each engine did.
type Workload struct {
	Name    string `json:"name"`
	Suite   string `json:"suite"`
	About   string `json:"about"`
	Backend string `json:"backend"` // for engines that name none
	// Error: it fails under eager as well, or its process died. There are no figures then.
	Error   string              `json:"error,omitempty"`
	Engines map[string]*Figures `json:"engines"`
}

// Figures is one engine's row. With an error there are none: an engine that gives another result than eager has no speed.
type Figures struct {
	Error   string `json:"error,omitempty"`
	Correct string `json:"correct"` // "yes": eager's result bit by bit; "close": within what the backend may be off; "no"
	Backend string `json:"backend"`

	Graphs *int `json:"graphs,omitempty"`
	Breaks *int `json:"breaks,omitempty"`
	Ops    *int `json:"ops,omitempty"`
	// Internal counts errors of godynamo's own in the first call: CPython ran what they left, so the result is right and the speed eager's.
	Internal int   `json:"internal_errors,omitempty"`
	Cold     *Cold `json:"cold,omitempty"`

	Warm  *Interval `json:"warm_us,omitempty"` // µs a call
	Ratio *Interval `json:"ratio,omitempty"`   // to eager

	Guards   *int     `json:"guards,omitempty"`
	GuardsNs *float64 `json:"guards_ns,omitempty"` // to evaluate those of one call
	Calls    *int     `json:"operator_calls,omitempty"`
	Peak     *int64   `json:"peak_bytes,omitempty"` // most alive at a time of what a call allocates

	Samples [][]float64 `json:"samples_us"` // µs a call, by process and round
}

// Cold is the first call, in seconds.
type Cold struct {
	Seconds float64 `json:"seconds"`
	Capture float64 `json:"capture"` // all but the backend
	Backend float64 `json:"backend"`
}

// Interval is a figure, and where it lies.
type Interval struct {
	Value float64 `json:"value"`
	// Low and High hold the true median of all processes with Confidence; both are Value and Confidence 0 with a single process.
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// Failed tells whether anything is wrong, and names it.
func (r *Result) Failed() []string {
	var found []string
	for _, w := range r.Workloads {
		if w.Error != "" {
			found = append(found, w.Name+": "+w.Error)
			continue
		}
		for _, label := range r.Settings.Engines {
			if f := w.Engines[label]; f != nil && f.Error != "" {
				found = append(found, w.Name+", "+label+": "+f.Error)
			}
		}
	}
	return found
}

// notes say what a reader of the figures has to know and would not see.
func (r *Result) notes() []string {
	var found []string
	for _, w := range r.Workloads {
		for _, label := range r.Settings.Engines {
			if f := w.Engines[label]; f != nil && f.Internal > 0 {
				found = append(found, fmt.Sprintf("%s, %s: %d internal errors, CPython ran what they left: please report them", w.Name, label, f.Internal))
			}
		}
	}
	return found
}

// Write writes a result as JSON.
func (r *Result) Write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// Load reads a result file. What is no result of this program is a Problem that names the file.
func Load(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, problemf("there is no file %s", path)
		}
		return nil, problemf("%s cannot be read: %v", path, err)
	}
	result := new(Result)
	if err := json.Unmarshal(text, result); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + strings.Count(string(text[:min(int(syntax.Offset), len(text))]), "\n")
			return nil, problemf("%s is torn or no JSON: line %d: %v", path, line, err)
		}
		return nil, problemf("%s is no result of godynamo bench: %v", path, err)
	}
	if result.Kind != kind {
		return nil, problemf("%s is no result of godynamo bench: it has no \"kind\": %q", path, kind)
	}
	if result.Version != 1 {
		return nil, problemf("%s has version %d, and this godynamo reads 1", path, result.Version)
	}
	return result, result.check(path)
}

// check finds what a file edited by hand may lack and the rest rests on.
func (r *Result) check(path string) error {
	for i, w := range r.Workloads {
		if w == nil || w.Name == "" {
			return problemf("%s is no result of godynamo bench: workload %d has no name", path, i+1)
		}
		for label, f := range w.Engines {
			if f == nil {
				return problemf("%s is no result of godynamo bench: %s has nothing for %s", path, w.Name, label)
			}
		}
	}
	return nil
}
