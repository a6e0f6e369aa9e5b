package report

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/godynamo/godynamo/internal/page"
)

//go:embed report.css
var style string

//go:embed report.js
var script string

//go:embed report.html
var bodySource string

var body = template.Must(template.New("report").Funcs(template.FuncMap{"duration": duration,
	"when": when}).Parse(bodySource))

// perChunk is the number of translations whose details are compressed together as a chunk. The page decompresses a
// chunk when the user opens one of its translations.
const perChunk = 32

// index is the data that the page's script reads at the start.
type index struct {
	Frames    [][4]any         `json:"frames"`    // each frame of a stack, once: function, file, line, source
	Compiles  []row            `json:"compiles"`  // the translations
	Processes []processRow     `json:"processes"` // the processes that wrote the trace
	Functions []FunctionTime   `json:"functions"`
	Flame     [][4]float64     `json:"flame"` // parent, function, own time, count
	Breaks    []BreakGroup     `json:"breaks"`
	Again     []RecompileGroup `json:"recompiles"`
	Events    []*Event         `json:"events"`
	Phases    []string         `json:"phases"`
	PerChunk  int              `json:"perChunk"`
}

type processRow struct {
	PID      int            `json:"pid"`
	Command  string         `json:"command"`
	Parent   *int           `json:"parent"`
	Started  float64        `json:"started"`
	Counters map[string]int `json:"counters"`
}

// row is a translation in the index. Stack holds indexes of frames, innermost first.
type row struct {
	Process  int     `json:"p"`
	ID       int     `json:"id"`
	Parent   *int    `json:"parent"`
	Kind     string  `json:"kind"`
	Function Place   `json:"f"`
	Resumes  *int    `json:"at"`
	Status   string  `json:"status"`
	Reason   string  `json:"why"`
	Ops      int     `json:"ops"`
	Guards   int     `json:"guards"`
	Micros   float64 `json:"us"`
	Breaks   string  `json:"breaks"` // codes and reasons, for the page's search
	NBreaks  int     `json:"nbreaks"`
	Failures int     `json:"failures"`
	Stack    []int   `json:"stack"`
}

// details is a chunk's data for one translation.
type details struct {
	*Translation
	Stack struct{} `json:"-"`
}

// phases are the phases of a translation in the order shown on the page.
var phases = []string{"decode", "translate", "guards", "backend", "lower", "install"}

// HTML writes the page for a trace.
func HTML(w io.Writer, t *Trace, s *Summary) error {
	chunks, err := pack(t)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := body.Execute(&out, struct {
		*Summary
		Index  *index
		Chunks []string
		Phases []string
	}{s, newIndex(s), chunks, phases}); err != nil {
		return err
	}
	return page.Write(w, page.Page{
		Title:    "godynamo trace: " + s.Name(),
		Subtitle: fmt.Sprintf("%s · %s translating", s.Directory, duration(s.Totals.Micros)),
		Style:    template.CSS(style),         // #nosec: a constant of the program
		Body:     template.HTML(out.String()), // #nosec: made by html/template above
		Script:   template.JS(script),         // #nosec: a constant of the program
	})
}

func newIndex(s *Summary) *index {
	x := &index{Functions: s.Functions, Breaks: s.Breaks, Again: s.Again, Events: s.Events, Phases: phases,
		PerChunk: perChunk}
	for _, p := range s.Processes {
		command := ""
		for i, a := range p.Argv {
			if i > 0 {
				command += " "
			}
			command += a
		}
		x.Processes = append(x.Processes, processRow{p.PID, command, p.Parent, p.Started, p.Counters})
	}
	frames := map[[4]any]int{}
	for i := range s.Compiles {
		c := &s.Compiles[i]
		r := row{Process: c.Process, ID: c.ID, Parent: c.Parent, Kind: c.Kind, Function: c.Function,
			Resumes: c.ResumesAt, Status: c.Status,
			Reason: c.Reason, Ops: c.Ops, Guards: c.Guards, Micros: c.Micros, NBreaks: len(c.Breaks),
			Failures: len(c.Failures), Stack: []int{}}
		for _, b := range c.Breaks {
			r.Breaks += b.Code + " " + b.Reason + " "
		}
		for _, f := range c.Stack {
			k := [4]any{f.text(0), f.text(1), f.number(2), f.text(3)}
			at, known := frames[k]
			if !known {
				at = len(x.Frames)
				frames[k] = at
				x.Frames = append(x.Frames, k)
			}
			r.Stack = append(r.Stack, at)
		}
		x.Compiles = append(x.Compiles, r)
	}
	for _, p := range s.flame {
		x.Flame = append(x.Flame, [4]float64{float64(p.parent), float64(p.function), p.self, float64(p.count)})
	}
	return x
}

// pack compresses the translations' details. Bytecode and graphs shrink to a tenth, so a browser can open a page with
// thousands of translations.
func pack(t *Trace) ([]string, error) {
	var chunks []string
	for at := 0; at < len(t.Translations); at += perChunk {
		var rows []details
		for _, x := range t.Translations[at:min(at+perChunk, len(t.Translations))] {
			rows = append(rows, details{Translation: x})
		}
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		if err := json.NewEncoder(zip).Encode(rows); err != nil {
			return nil, err
		}
		if err := zip.Close(); err != nil {
			return nil, err
		}
		chunks = append(chunks, base64.StdEncoding.EncodeToString(out.Bytes()))
	}
	return chunks, nil
}

// duration prints microseconds with three digits.
func duration(us float64) string {
	switch {
	case us < 1e3:
		return fmt.Sprintf("%.3g µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g s", us/1e6)
}

// when prints a time in UTC.
func when(seconds float64) string {
	return time.UnixMilli(int64(seconds*1e3)).UTC().Format("2006-01-02 15:04:05.000") + " UTC"
}
