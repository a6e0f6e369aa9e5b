package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"
)

// columns are the columns of the CSV file. Each has a function that returns the column's text for a row.
var columns = []struct {
	name string
	of   func(w *Workload, label string, f *Figures) string
}{
	{"suite", func(w *Workload, _ string, _ *Figures) string { return w.Suite }},
	{"workload", func(w *Workload, _ string, _ *Figures) string { return w.Name }},
	{"engine", func(_ *Workload, label string, _ *Figures) string { return label }},
	{"backend", func(_ *Workload, _ string, f *Figures) string { return f.Backend }},
	{"correct", func(_ *Workload, _ string, f *Figures) string { return f.Correct }},
	{"error", func(_ *Workload, _ string, f *Figures) string { return f.Error }},
	{"graphs", func(_ *Workload, _ string, f *Figures) string { return plain(f.Graphs) }},
	{"breaks", func(_ *Workload, _ string, f *Figures) string { return plain(f.Breaks) }},
	{"ops", func(_ *Workload, _ string, f *Figures) string { return plain(f.Ops) }},
	{"cold_s", func(_ *Workload, _ string, f *Figures) string {
		return ofCold(f, func(c *Cold) float64 { return c.Seconds })
	}},
	{"capture_s", func(_ *Workload, _ string, f *Figures) string {
		return ofCold(f, func(c *Cold) float64 { return c.Capture })
	}},
	{"backend_s", func(_ *Workload, _ string, f *Figures) string {
		return ofCold(f, func(c *Cold) float64 { return c.Backend })
	}},
	{"warm_us", func(_ *Workload, _ string, f *Figures) string { return value(f.Warm) }},
	{"warm_low_us", func(_ *Workload, _ string, f *Figures) string { return low(f.Warm) }},
	{"warm_high_us", func(_ *Workload, _ string, f *Figures) string { return high(f.Warm) }},
	{"ratio", func(_ *Workload, _ string, f *Figures) string { return value(f.Ratio) }},
	{"ratio_low", func(_ *Workload, _ string, f *Figures) string { return low(f.Ratio) }},
	{"ratio_high", func(_ *Workload, _ string, f *Figures) string { return high(f.Ratio) }},
	{"guards", func(_ *Workload, _ string, f *Figures) string { return plain(f.Guards) }},
	{"guards_ns", func(_ *Workload, _ string, f *Figures) string { return plain(f.GuardsNs) }},
	{"operator_calls", func(_ *Workload, _ string, f *Figures) string { return plain(f.Calls) }},
	{"peak_bytes", func(_ *Workload, _ string, f *Figures) string { return plain(f.Peak) }},
}

// WriteCSV writes one line per workload and engine. Unknown values are empty.
func (r *Result) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.name
	}
	_ = out.Write(head) // out.Error reports the error
	row := func(load *Workload, label string, f *Figures) {
		line := make([]string, len(columns))
		for i, c := range columns {
			line[i] = c.of(load, label, f)
		}
		_ = out.Write(line)
	}
	for _, load := range r.Workloads {
		if load.Error != "" {
			row(load, "", &Figures{Error: load.Error, Correct: "no"})
		}
		for _, label := range r.Settings.Engines {
			if f := load.Engines[label]; f != nil {
				row(load, label, f)
			}
		}
	}
	out.Flush()
	return out.Error()
}

func plain[T int | int64 | float64](x *T) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*x), 'g', 8, 64)
}

func ofCold(f *Figures, which func(*Cold) float64) string {
	if f.Cold == nil {
		return ""
	}
	x := which(f.Cold)
	return plain(&x)
}

func of(i *Interval, which func(*Interval) float64) string {
	if i == nil {
		return ""
	}
	x := which(i)
	return plain(&x)
}

func value(i *Interval) string { return of(i, func(i *Interval) float64 { return i.Value }) }
func low(i *Interval) string   { return of(i, func(i *Interval) float64 { return i.Low }) }
func high(i *Interval) string  { return of(i, func(i *Interval) float64 { return i.High }) }

// WriteGo writes Go's benchmark format, with one line per round. `benchstat -col /engine FILE` compares the engines,
// and `benchstat OLD NEW` compares two runs. Unlike `godynamo bench --compare`, benchstat treats the rounds of a run as
// independent samples.
func (r *Result) WriteGo(w io.Writer) error {
	out := benchfmt.NewWriter(w)
	m := r.Machine
	config := []benchfmt.Config{}
	for _, pair := range [][2]string{
		{"cpu", m.CPU}, {"cores", strconv.Itoa(m.Cores)}, {"date", m.Date}, {"python", m.Python}, {"torch", m.Torch},
	} {
		config = append(config, benchfmt.Config{Key: pair[0], Value: []byte(pair[1]), File: true})
	}
	for _, load := range r.Workloads {
		for _, label := range r.Settings.Engines {
			f := load.Engines[label]
			if f == nil || f.Error != "" {
				continue
			}
			name := fmt.Sprintf("%s/workload=%s/engine=%s", title(load.Suite), oneWord(load.Name), oneWord(label))
			for _, rounds := range f.Samples {
				for _, us := range rounds {
					line := &benchfmt.Result{
						Config: config, Name: benchfmt.Name(name), Iters: 1,
						Values: []benchfmt.Value{{Value: us / 1e6, Unit: "sec/op", OrigValue: us * 1e3,
							OrigUnit: "ns/op"}},
					}
					if err := out.Write(line); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// title capitalizes a name in the style of Go's benchmarks.
func title(name string) string {
	if name == "" {
		return "Workload"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// oneWord replaces characters that would end a name, or a part of a name, in this format.
func oneWord(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '/' {
			return '_'
		}
		return r
	}, name)
}
