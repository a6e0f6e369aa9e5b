package report

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Summary is a report on a trace. It has totals and grouped events, and is the output of `godynamo report --json`.
// Times are in microseconds. Fields named Translations hold indexes into Compiles.
type Summary struct {
	Format    string           `json:"format"` // "godynamo-report"
	Version   int              `json:"version"`
	Directory string           `json:"directory"`
	Problems  []Problem        `json:"problems"`
	Totals    Totals           `json:"totals"`
	Processes []ProcessRow     `json:"processes"`
	Compiles  []Compile        `json:"translations"`
	Breaks    []BreakGroup     `json:"breaks"`
	Again     []RecompileGroup `json:"recompiles"`
	Functions []FunctionTime   `json:"functions"`
	Events    []*Event         `json:"events"`
	flame     []pathTime
}

// Totals are sums over all processes.
type Totals struct {
	Processes       int                `json:"processes"`
	Translations    int                `json:"translations"`
	ByStatus        map[string]int     `json:"by_status"`
	Graphs          int                `json:"graphs"`
	Ops             int                `json:"ops"`
	Breaks          int                `json:"breaks"`
	Recompiles      int                `json:"recompiles"` // translations of functions that had entries
	Guards          int                `json:"guards"`
	Micros          float64            `json:"us"`
	Phases          map[string]float64 `json:"phases_us"`
	Limits          int                `json:"cache_limits"`
	BackendFailures int                `json:"backend_failures"`
	GraphFailures   int                `json:"graph_failures"`
	InternalErrors  int                `json:"internal_errors"`
}

// ProcessRow is one process with its totals.
type ProcessRow struct {
	*Process
	Translations int            `json:"translations"`
	Micros       float64        `json:"us"`
	Ended        bool           `json:"ended"` // whether the process's end event was read
	Counters     map[string]int `json:"counters"`
	// index of the parent of a forked process, if the parent is in the trace
	Parent *int `json:"parent"`
}

// Compile is a translation without the long texts.
type Compile struct {
	Process   int       `json:"process"`
	ID        int       `json:"id"`
	Parent    *int      `json:"parent"` // index of the translation whose code called this function
	Time      float64   `json:"time"`
	Kind      string    `json:"kind"`
	Function  Place     `json:"function"`
	ResumesAt *int      `json:"resumes_at,omitempty"`
	Status    string    `json:"status"`
	Reason    string    `json:"reason,omitempty"`
	Backend   string    `json:"backend"`
	Ops       int       `json:"ops"`
	Graphs    int       `json:"graphs"`
	Guards    int       `json:"guards"`
	Micros    float64   `json:"us"`
	Breaks    []Break   `json:"breaks,omitempty"`
	Failures  []Failure `json:"failures,omitempty"`
	Stack     []Row     `json:"stack"`
}

// BreakGroup is a graph break at one place. It may have occurred several times.
type BreakGroup struct {
	Code         string `json:"code"`
	Reason       string `json:"reason"`
	Hint         string `json:"hint"`
	Function     string `json:"function"`
	File         string `json:"file"`
	Line         int    `json:"line"`
	Source       string `json:"source"`
	Translations []int  `json:"translations"`
}

// RecompileGroup is a failed guard of a function, with the values that made it fail.
type RecompileGroup struct {
	Function     Place       `json:"function"`
	Reason       string      `json:"reason"` // one line, the reason of the first failure
	Guard        string      `json:"guard"`
	File         string      `json:"file"`
	Line         int         `json:"line"`
	Source       string      `json:"source"`
	Values       [][2]string `json:"values"` // pairs of old and new value, each pair once, at most maxValues
	Translations []int       `json:"translations"`
}

// maxValues bounds the values shown for a group.
const maxValues = 12

// FunctionTime is the time spent translating a user function at all places.
type FunctionTime struct {
	Place
	Translated int     `json:"translated"` // translations as an outermost frame
	Inlined    int     `json:"inlined"`    // how many times it was inlined into other functions
	Self       float64 `json:"self_us"`
	Cumulative float64 `json:"cumulative_us"` // including the functions that it calls
}

// pathTime is the time of a function at one path of calls, over all translations.
type pathTime struct {
	parent   int // index of the caller's pathTime, -1 for none
	function int // index of the function in Summary.Functions before that list is sorted
	self     float64
	count    int
}

// Summarize counts and groups the events of a trace.
func Summarize(t *Trace) *Summary {
	s := &Summary{Format: "godynamo-report", Version: 1, Directory: t.Directory,
		Problems: append([]Problem{}, t.Problems...),
		Events:   append([]*Event{}, t.Events...), Compiles: []Compile{}, Breaks: []BreakGroup{},
		Again: []RecompileGroup{}}
	s.Totals = Totals{Processes: len(t.Processes), Translations: len(t.Translations), ByStatus: map[string]int{},
		Phases: map[string]float64{}}
	for _, p := range t.Processes {
		s.Processes = append(s.Processes, ProcessRow{Process: p})
	}
	parents := newParents(t, s)
	for i, x := range t.Translations {
		s.add(i, x, parents)
	}
	for _, e := range t.Events {
		s.event(e)
	}
	s.breaks(t)
	s.again(t)
	s.functionTimes(t)
	return s
}

func (s *Summary) add(i int, x *Translation, parents *parents) {
	us := x.Micros()
	t := &s.Totals
	t.ByStatus[x.Status]++
	t.Graphs += x.Graphs
	t.Ops += x.Ops
	t.Breaks += len(x.Breaks)
	t.Guards += len(x.Guards.Parts)
	if len(x.Failures) > 0 {
		t.Recompiles++
	}
	t.Micros += us
	for phase, spent := range x.Times {
		t.Phases[phase] += spent
	}
	p := &s.Processes[x.process]
	p.Translations++
	p.Micros += us
	s.Compiles = append(s.Compiles, Compile{
		Process: x.process, ID: x.ID, Parent: parents.of(i, x), Time: x.Time, Kind: x.Kind, Function: x.Function,
		ResumesAt: x.ResumesAt,
		Status:    x.Status, Reason: x.Reason, Backend: x.Backend, Ops: x.Ops, Graphs: x.Graphs,
		Guards: len(x.Guards.Parts), Micros: us,
		Breaks: x.Breaks, Failures: x.Failures, Stack: x.Stack,
	})
}

func (s *Summary) event(e *Event) {
	switch e.Event {
	case "limit":
		s.Totals.Limits++
	case "backend_failed":
		s.Totals.BackendFailures++
	case "graph_failed":
		s.Totals.GraphFailures++
	case "internal_error":
		s.Totals.InternalErrors++
	case "end":
		s.Processes[e.Process].Ended = true
		s.Processes[e.Process].Counters = e.Counters
	}
}

// parents finds translations by process and number. The older translations of a forked process were made by its parent.
type parents struct {
	byID   []map[int]int // one map per process
	parent []int
	last   []int
}

func newParents(t *Trace, s *Summary) *parents {
	p := &parents{}
	for i, q := range t.Processes {
		p.byID = append(p.byID, map[int]int{})
		parent, last := -1, 0
		if q.ForkedFrom != nil {
			last = q.ForkedFrom.Last
			for k := range i { // the latest of the earlier processes with that PID
				if t.Processes[k].PID == q.ForkedFrom.PID {
					parent = k
				}
			}
			if parent >= 0 {
				s.Processes[i].Parent = &parent
			}
		}
		p.parent, p.last = append(p.parent, parent), append(p.last, last)
	}
	for i, x := range t.Translations {
		p.byID[x.process][x.ID] = i
	}
	return p
}

func (p *parents) of(i int, x *Translation) *int {
	if x.Parent == nil {
		return nil
	}
	process := x.process
	for process >= 0 && *x.Parent <= p.last[process] {
		process = p.parent[process]
	}
	if process < 0 {
		return nil
	}
	if found, ok := p.byID[process][*x.Parent]; ok && found != i {
		return &found
	}
	return nil // the translation is in a file that was deleted by rotation
}

func (s *Summary) breaks(t *Trace) {
	type key struct {
		code, reason, file string
		line               int
	}
	at := map[key]int{}
	for i, x := range t.Translations {
		for _, b := range x.Breaks {
			g := BreakGroup{Code: b.Code, Reason: b.Reason, Hint: b.Hint, Function: x.Function.Name,
				File: x.Function.File, Line: x.Function.Line}
			if len(b.Stack) > 0 {
				top := b.Stack[0]
				g.Function, g.File, g.Line, g.Source = top.text(0), top.text(1), int(top.number(2)), top.text(3)
			}
			k := key{g.Code, g.Reason, g.File, g.Line}
			n, known := at[k]
			if !known {
				n = len(s.Breaks)
				at[k] = n
				s.Breaks = append(s.Breaks, g)
			}
			s.Breaks[n].Translations = append(s.Breaks[n].Translations, i)
		}
	}
	sort.SliceStable(s.Breaks, func(i, j int) bool {
		return len(s.Breaks[i].Translations) > len(s.Breaks[j].Translations)
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (s *Summary) again(t *Trace) {
	type key struct {
		function    Place
		guard, file string
		line        int
	}
	at := map[key]int{}
	for i, x := range t.Translations {
		seen := map[int]bool{}
		for _, f := range x.Failures {
			guard := deref(f.Guard)
			if guard == "" {
				guard = f.Text
			}
			k := key{x.Function, subject(guard), f.File, f.Line}
			n, known := at[k]
			if !known {
				n = len(s.Again)
				at[k] = n
				s.Again = append(s.Again, RecompileGroup{Function: x.Function, Reason: f.Reason, Guard: guard,
					File: f.File, Line: f.Line, Source: f.Source})
			}
			g := &s.Again[n]
			if pair := [2]string{deref(f.Was), deref(f.Found)}; len(g.Values) < maxValues && pair != [2]string{} &&
				!slices.Contains(g.Values, pair) {
				g.Values = append(g.Values, pair)
			}
			if !seen[n] {
				seen[n] = true
				g.Translations = append(g.Translations, i)
			}
		}
	}
	sort.SliceStable(s.Again, func(i, j int) bool {
		return len(s.Again[i].Translations) > len(s.Again[j].Translations)
	})
}

var addresses = regexp.MustCompile(`\b\d{6,}\b`)

// subject returns a guard's text without the compared value, so that the guards n == 2 and n == 3 have the same
// subject.
func subject(guard string) string {
	text, _, _ := strings.Cut(guard, " == ")
	return addresses.ReplaceAllString(text, "N")
}

// functionTimes adds up the call trees and merges them by path.
func (s *Summary) functionTimes(t *Trace) {
	type path struct{ parent, function int }
	functions, paths := map[Place]int{}, map[path]int{}
	list := []FunctionTime{}
	for _, x := range t.Translations {
		n := len(x.Calls)
		merged, function, total := make([]int, n), make([]int, n), make([]float64, n)
		for i, row := range x.Calls {
			place := Place{row.text(1), row.text(2), int(row.number(3))}
			f, known := functions[place]
			if !known {
				f = len(list)
				functions[place] = f
				list = append(list, FunctionTime{Place: place})
			}
			parent, above := int(row.number(0)), -1
			if parent >= 0 && parent < i {
				above = merged[parent]
				list[f].Inlined += int(row.number(4))
			} else {
				parent = -1
				list[f].Translated++
			}
			k := path{above, f}
			at, known := paths[k]
			if !known {
				at = len(s.flame)
				paths[k] = at
				s.flame = append(s.flame, pathTime{parent: above, function: f})
			}
			s.flame[at].self += row.number(5)
			s.flame[at].count += int(row.number(4))
			list[f].Self += row.number(5)
			merged[i], function[i], total[i] = at, f, row.number(5)
		}
		for i := n - 1; i >= 0; i-- {
			parent := int(x.Calls[i].number(0))
			if parent >= 0 && parent < i {
				total[parent] += total[i]
			}
			recursive := false
			for p := parent; p >= 0 && p < n && !recursive; p = int(x.Calls[p].number(0)) {
				recursive = function[p] == function[i]
				if int(x.Calls[p].number(0)) >= p {
					break
				}
			}
			if !recursive {
				list[function[i]].Cumulative += total[i]
			}
		}
	}
	s.Functions = list
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[b].Cumulative, list[a].Cumulative) })
	sorted, place := make([]FunctionTime, len(list)), make([]int, len(list))
	for to, from := range order {
		sorted[to], place[from] = list[from], to
	}
	s.Functions = sorted
	for i := range s.flame {
		s.flame[i].function = place[s.flame[i].function]
	}
}

// Name returns the name of the trace's directory, for titles.
func (s *Summary) Name() string { return filepath.Base(filepath.Clean(s.Directory)) }
