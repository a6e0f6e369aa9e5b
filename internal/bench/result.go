// Package bench is `godynamo bench` without its command line: child processes measure workloads, and this package
// summarizes their messages. It compares two results and writes them as a table, JSON, CSV, Go's benchmark format, an
// HTML page and pictures.
//
// It measures nothing itself and uses no Python object: the children are `python -m godynamo._tools bench` (child.go).
// A result file is
//
//	{"kind": "godynamo bench", "version": 1, "machine": {...}, "settings": {...}, "interrupted": false,
//	 "workloads": [{"name": "relu", "suite": "micro", "about": "...", "backend": "eager",
//	                "engines": {"godynamo": Figures}}]}
//
// with times in the units given by the field names. stats.go explains the statistics: why the best round represents a
// process, and how intervals are computed.
package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Eager is the label of the engine with which all other engines are compared.
const Eager = "eager"

const kind = "godynamo bench"

// Problem is a usage error, reported in one line.
type Problem string

// Error implements error.
func (p Problem) Error() string { return string(p) }

func problemf(format string, args ...any) error { return Problem(fmt.Sprintf(format, args...)) }

// Machine describes the environment on which figures depend.
type Machine struct {
	Date     string  `json:"date"`
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"`
	Load     float64 `json:"load"` // average over the last minute before the run began
	Python   string  `json:"python"`
	Torch    string  `json:"torch"`
	Godynamo string  `json:"godynamo"`
}

// Settings describe how a result was measured.
type Settings struct {
	Engines   []string `json:"engines"` // in the order of the tables
	Processes int      `json:"processes"`
	Rounds    int      `json:"rounds"` // number of rounds in each process
	Quick     bool     `json:"quick"`
	// FreshCaches reports whether each engine started with an empty inductor cache on disk. Cold figures then include
	// all compilation.
	FreshCaches bool `json:"fresh_caches"`
}

// Result is the result of one run.
type Result struct {
	Kind        string      `json:"kind"`
	Version     int         `json:"version"`
	Machine     Machine     `json:"machine"`
	Settings    Settings    `json:"settings"`
	Interrupted bool        `json:"interrupted"` // by Ctrl-C: some workloads were not measured, or in fewer processes
	Workloads   []*Workload `json:"workloads"`
	Comparison  *Comparison `json:"comparison,omitempty"`
}

// Workload is the measured code, with the figures of each engine.
type Workload struct {
	Name    string `json:"name"`
	Suite   string `json:"suite"`
	About   string `json:"about"`
	Backend string `json:"backend"` // backend used by engines whose label has none
	// Error is set if the workload fails under eager also, or if its process died. Then there are no figures.
	Error   string              `json:"error,omitempty"`
	Engines map[string]*Figures `json:"engines"`
}

// Figures are the row of one engine. If Error is set, there are no figures: a wrong result has no speed.
type Figures struct {
	Error   string `json:"error,omitempty"`
	Correct string `json:"correct"` // "yes": eager's result bit by bit; "close": within the backend's tolerance; "no"
	Backend string `json:"backend"`

	Graphs *int `json:"graphs,omitempty"`
	Breaks *int `json:"breaks,omitempty"`
	Ops    *int `json:"ops,omitempty"`
	// Internal counts godynamo's internal errors in the first call. After such an error, CPython runs the code: the
	// result is right, but the speed is eager's.
	Internal int   `json:"internal_errors,omitempty"`
	Cold     *Cold `json:"cold,omitempty"`

	Warm  *Interval `json:"warm_us,omitempty"` // µs per call
	Ratio *Interval `json:"ratio,omitempty"`   // ratio of the time to that of eager

	Guards   *int     `json:"guards,omitempty"`
	GuardsNs *float64 `json:"guards_ns,omitempty"` // time in ns to evaluate the guards of one call
	Calls    *int     `json:"operator_calls,omitempty"`
	Peak     *int64   `json:"peak_bytes,omitempty"` // peak memory allocated by a call

	Samples [][]float64 `json:"samples_us"` // µs per call, for each process and round
}

// Cold holds the parts of the first call, in seconds.
type Cold struct {
	Seconds float64 `json:"seconds"`
	Capture float64 `json:"capture"` // time in everything except the backend
	Backend float64 `json:"backend"`
}

// Interval is a figure with its confidence interval.
type Interval struct {
	Value float64 `json:"value"`
	// Low and High bound the true median of all processes with the probability Confidence. With one process, both
	// equal Value and Confidence is 0.
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// Failed lists everything that is wrong in the result.
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

// notes lists facts that a reader must know to judge the figures.
func (r *Result) notes() []string {
	var found []string
	for _, w := range r.Workloads {
		for _, label := range r.Settings.Engines {
			if f := w.Engines[label]; f != nil && f.Internal > 0 {
				found = append(found,
					fmt.Sprintf("%s, %s: %d internal errors, CPython ran what they left: please report them", w.Name,
						label, f.Internal))
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

// Load reads a result file. If the file at path is not a result of this program, the error is a Problem that contains
// the path.
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

// check returns an error if a field is missing on which the rest of the program depends. The file may have been edited
// by hand.
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
