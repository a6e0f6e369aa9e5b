package bench

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

const missing = "-"

// header has the names of all columns: workload and engine, then the columns that cells fills.
var header = []string{
	"workload", "engine", "correct", "warm µs", "± %", "ratio", "graphs", "breaks", "ops", "capture ms", "backend ms",
	"guards", "guards ns", "peak MiB",
}

// WriteTable writes a result as aligned tables. Errors and the comparison are below the tables.
func (r *Result) WriteTable(w io.Writer) error {
	var groups [][]table.Row
	for _, load := range r.Workloads {
		if load.Error != "" {
			groups = append(groups, []table.Row{{load.Name, "", "error"}})
			continue
		}
		var rows []table.Row
		name := load.Name
		for _, label := range r.Settings.Engines {
			if f := load.Engines[label]; f != nil {
				rows = append(rows, append(table.Row{name, label}, cells(f)...))
				name = ""
			}
		}
		groups = append(groups, rows)
	}
	var out []string
	for _, part := range inParts(header, groups, 4) {
		out = append(out, part, "")
	}
	out = append(out, wrapped(r.about()))
	for _, failed := range r.Failed() {
		out = append(out, wrapped("error: "+failed))
	}
	for _, note := range r.notes() {
		out = append(out, wrapped("note: "+note))
	}
	if r.Comparison != nil {
		out = append(out, "", r.Comparison.String())
	}
	_, err := fmt.Fprintln(w, strings.Join(out, "\n"))
	return err
}

// cells returns an engine's columns, beginning with "correct".
func cells(f *Figures) table.Row {
	if f.Error != "" {
		return table.Row{"error"}
	}
	capture, backend, ratio := missing, missing, missing
	if f.Cold != nil && f.Graphs != nil {
		capture, backend = digits(f.Cold.Capture*1e3), digits(f.Cold.Backend*1e3)
	}
	if f.Ratio != nil {
		ratio = fmt.Sprintf("%.2f [%.2f %.2f]", f.Ratio.Value, f.Ratio.Low, f.Ratio.High)
	}
	warm, spread := missing, missing
	if f.Warm != nil {
		warm, spread = digits(f.Warm.Value), percent(f.Warm)
	}
	return table.Row{
		f.Correct, warm, spread, ratio, count(f.Graphs), count(f.Breaks), count(f.Ops), capture, backend,
		count(f.Guards), nanoseconds(f.GuardsNs),
		mebibytes(f.Peak),
	}
}

// about describes how the figures were measured.
func (r *Result) about() string {
	m, s := r.Machine, r.Settings
	lines := []string{
		fmt.Sprintf("%s; %s, %d cores, load %.1f; Python %s, torch %s", m.Date, m.CPU, m.Cores, m.Load,
			m.Python, m.Torch),
		fmt.Sprintf("warm: median of %d processes' best of %d rounds, engines in turn%s", s.Processes, s.Rounds,
			intervals(s.Processes)),
	}
	if !s.FreshCaches {
		lines = append(lines, "capture and backend: the first call, with torch's caches on disk as they are")
	}
	if r.Interrupted {
		lines = append(lines, "interrupted: what was measured so far")
	}
	return strings.Join(lines, "\n")
}

// intervals describes the intervals that result from this number of processes.
func intervals(processes int) string {
	switch {
	case processes < 2:
		return ""
	case processes < 6:
		return "; ± and [ ]: where all of them lie"
	}
	return "; ± and [ ]: 95 % interval of the median"
}

// String formats the comparison as a table.
func (c *Comparison) String() string {
	var rows []table.Row
	changed := 0
	for _, row := range c.Rows {
		change, verdict := "~", ""
		if row.Significant {
			changed++
			change = fmt.Sprintf("%+.1f %%", row.Change*100)
			verdict = map[bool]string{true: "slower", false: "faster"}[row.Change > 0]
		}
		rows = append(rows, table.Row{
			row.Workload, row.Engine, interval(row.Old), interval(row.New), change,
			fmt.Sprintf("%.3f", row.Adjusted), verdict,
		})
	}
	lines := inParts([]string{"workload", "engine", "old µs", "new µs", "change", "p", ""}, [][]table.Row{rows}, 3)
	if changed == 0 {
		lines = append(lines, wrapped("no significant change to "+c.Old))
	} else {
		lines = append(lines, wrapped(fmt.Sprintf("%d of %d rows changed to %s", changed, len(c.Rows), c.Old)))
	}
	lines = append(lines, wrapped(c.Method()))
	for _, note := range append(c.Notes, c.Missing...) {
		lines = append(lines, wrapped("note: "+note))
	}
	return strings.Join(lines, "\n")
}

// Method describes how the comparison computed P.
func (c *Comparison) Method() string {
	return fmt.Sprintf("p: that the change is within %g %%, by the Mann-Whitney U test on the processes, adjusted "+
		"for %d rows (Holm); ~: p ≥ %.2f",
		c.Margin*100, len(c.Rows), c.Alpha)
}

// interval formats a figure with its uncertainty.
func interval(i *Interval) string {
	if p := percent(i); p != missing {
		return digits(i.Value) + " ±" + p + " %"
	}
	return digits(i.Value)
}

// percent formats the larger of the distances between an interval's figure and its two bounds, as a percentage of the
// figure.
func percent(i *Interval) string {
	if i == nil || i.Confidence == 0 || i.Value == 0 {
		return missing
	}
	return fmt.Sprintf("%.1f", 100*math.Max(i.High-i.Value, i.Value-i.Low)/i.Value)
}

// digits formats a figure with four significant digits.
func digits(x float64) string {
	switch {
	case x == 0:
		return "0"
	case math.Abs(x) >= 1000:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 100:
		return fmt.Sprintf("%.1f", x)
	case math.Abs(x) >= 10:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func count(n *int) string {
	if n == nil {
		return missing
	}
	return fmt.Sprint(*n)
}

func nanoseconds(x *float64) string {
	if x == nil {
		return missing
	}
	return fmt.Sprintf("%.0f", *x)
}

func mebibytes(n *int64) string {
	if n == nil {
		return missing
	}
	mib := float64(*n) / (1 << 20)
	if mib > 0 && mib < 0.0005 {
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", mib)
}
