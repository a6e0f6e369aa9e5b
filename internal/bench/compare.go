package bench

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Alpha is the probability that a comparison of two runs of the same code shows any change, in all its rows together.
const Alpha = 0.05

// Margin is the smallest change of a figure that counts. Two runs of the same code differ, because other programs on
// the machine slow down all processes of a run alike. The margin was measured with 15 pairs of runs of the micro set,
// on two cores under a load between 1.5 and 4.5. Without a margin six pairs showed a change, with 3 % one, with 5 %
// none.
const Margin = 0.05

// Comparison is the comparison of a result with an older result, row by row.
type Comparison struct {
	Old     string    `json:"old"` // name of the older result's file
	Machine Machine   `json:"machine"`
	Alpha   float64   `json:"alpha"`
	Margin  float64   `json:"margin"` // changes smaller than this do not count
	Rows    []*Change `json:"rows"`
	// Missing lists the figures that only one of the two results has, with the reason.
	Missing []string `json:"missing"`
	// Notes are reasons to trust the comparison less, such as another machine or too few processes.
	Notes []string `json:"notes"`
}

// Change is the change of one workload with one engine.
type Change struct {
	Workload string    `json:"workload"`
	Engine   string    `json:"engine"`
	Old      *Interval `json:"old_us"`
	New      *Interval `json:"new_us"`
	Change   float64   `json:"change"` // change of the median: 0.05 means 5 % slower
	// P is the p-value of the Mann-Whitney U test on the best rounds of the processes. To test whether the change
	// exceeds the margin, the older figures are first moved by the margin towards the newer ones. Adjusted is P after
	// Holm's correction for the number of rows.
	P           float64 `json:"p"`
	Adjusted    float64 `json:"p_adjusted"`
	Significant bool    `json:"significant"`
	least       float64 // the smallest P possible with this many processes
}

// Compare compares the result now with the older result old, whose name is name. Rows are in the order of now.
func Compare(old, now *Result, name string, margin float64) *Comparison {
	c := &Comparison{Old: name, Machine: old.Machine, Alpha: Alpha, Margin: margin, Missing: []string{},
		Notes: notes(old, now)}
	known := map[string]*Workload{}
	for _, w := range old.Workloads {
		known[w.Name] = w
	}
	for _, w := range now.Workloads {
		before := known[w.Name]
		delete(known, w.Name)
		if before == nil {
			c.Missing = append(c.Missing, w.Name+": only in this run")
			continue
		}
		for _, label := range now.Settings.Engines {
			c.row(w.Name, label, before, w)
		}
	}
	for _, w := range old.Workloads {
		if known[w.Name] != nil {
			c.Missing = append(c.Missing, w.Name+": only in "+name)
		}
	}
	c.adjust()
	if blind := c.blind(); blind > 0 {
		fewest := min(old.Settings.Processes, now.Settings.Processes)
		c.Notes = append(c.Notes,
			fmt.Sprintf("%d of %d rows can show no change, whatever it is, with as few as %d processes: at least "+
				"%d, better 10",
				blind, len(c.Rows), fewest, processesFor(len(c.Rows))))
	}
	return c
}

// blind counts the rows with too few processes. Their change would not be significant even if every older figure were
// below every newer one.
func (c *Comparison) blind() int {
	n := 0
	for _, row := range c.Rows {
		if row.least*float64(len(c.Rows)) >= c.Alpha {
			n++
		}
	}
	return n
}

// Blind reports whether the comparison could not show any regression. Either nothing is compared, or all rows have too
// few processes.
func (c *Comparison) Blind() bool { return c.blind() == len(c.Rows) }

// leastP returns the smallest P of the Mann-Whitney U test on n and m figures. It is the P of a complete separation,
// in either direction.
func leastP(n, m int) float64 {
	p := 2.0
	for i := 1; i <= n; i++ {
		p *= float64(i) / float64(m+i)
	}
	return p
}

// processesFor returns the number of processes that each run needs so that a change of one row can be significant.
func processesFor(rows int) int {
	n := 1
	for leastP(n, n)*float64(rows) >= Alpha {
		n++
	}
	return n
}

// row adds the row of one engine, or records why there is none.
func (c *Comparison) row(name, label string, before, after *Workload) {
	a, b := before.Engines[label], after.Engines[label]
	va, vb := values(a), values(b)
	if len(va) == 0 || len(vb) == 0 {
		if len(va)+len(vb) > 0 {
			c.Missing = append(c.Missing, fmt.Sprintf("%s, %s: no figures in %s", name, label,
				map[bool]string{true: c.Old, false: "this run"}[len(va) == 0]))
		}
		return
	}
	change := &Change{Workload: name, Engine: label, Old: summary(va), New: summary(vb)}
	change.Change = change.New.Value/change.Old.Value - 1
	change.P = beyond(va, vb, c.Margin, change.Change)
	change.least = leastP(len(va), len(vb))
	c.Rows = append(c.Rows, change)
}

// beyond returns the probability of these figures if the true change is at most margin.
func beyond(old, now []float64, margin, change float64) float64 {
	moved := slices.Clone(old)
	by := 1 + margin
	if change < 0 {
		by = 1 / by
	}
	if (change >= 0 && 1+change <= by) || (change < 0 && 1+change >= by) {
		return 1 // the change is within the margin
	}
	for i := range moved {
		moved[i] *= by
	}
	thresholds := &benchmath.Thresholds{CompareAlpha: Alpha}
	return benchmath.AssumeNothing.Compare(benchmath.NewSample(moved, thresholds),
		benchmath.NewSample(slices.Clone(now), thresholds)).P
}

// values returns the figures of an engine that are compared, one for each process.
func values(f *Figures) []float64 {
	if f == nil || f.Error != "" {
		return nil
	}
	return bests(f.Samples)
}

// adjust applies Holm's method. Without it, two of forty rows would have a P below 0.05 by chance, and the user's CI
// would fail.
func (c *Comparison) adjust() {
	order := slices.Clone(c.Rows)
	sort.SliceStable(order, func(i, j int) bool { return order[i].P < order[j].P })
	least := 0.0
	for i, row := range order {
		least = math.Max(least, math.Min(1, row.P*float64(len(order)-i)))
		row.Adjusted = least
		row.Significant = row.Adjusted < c.Alpha
	}
}

// notes lists differences between two results that do not come from the code.
func notes(old, now *Result) []string {
	found := []string{}
	differ := func(what, a, b string) {
		if a != b {
			found = append(found, fmt.Sprintf("%s was %s and is %s", what, a, b))
		}
	}
	differ("the processor", old.Machine.CPU, now.Machine.CPU)
	differ("the number of cores", strconv.Itoa(old.Machine.Cores), strconv.Itoa(now.Machine.Cores))
	differ("Python", old.Machine.Python, now.Machine.Python)
	differ("torch", old.Machine.Torch, now.Machine.Torch)
	if old.Interrupted || now.Interrupted {
		found = append(found, "one of the runs was interrupted")
	}
	return found
}

// Worse returns the significant rows that became slower by more than share, which is 0.05 for 5 %.
func (c *Comparison) Worse(share float64) []*Change {
	var found []*Change
	for _, row := range c.Rows {
		if row.Significant && row.Change > share {
			found = append(found, row)
		}
	}
	return found
}

// Share parses the percentage of a flag. Both "5%" and "5" are 0.05. The error is a Problem.
func Share(flag, text string) (float64, error) {
	value, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	if err != nil || value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, problemf("%s %s: a percentage is wanted, for instance 5%%", flag, text)
	}
	return value / 100, nil
}
