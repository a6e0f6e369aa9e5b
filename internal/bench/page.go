package bench

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"github.com/godynamo/godynamo/internal/page"
	"github.com/godynamo/godynamo/internal/page/echarts"
)

//go:embed page.html.tmpl
var bodyText string

//go:embed page.js
var script string

var body = template.Must(template.New("body").Parse(bodyText))

const style template.CSS = `
.about { white-space: pre-line; } .scroll { overflow-x: auto; } .chart { width: 100%; max-width: 1100px; }
table { font-variant-numeric: tabular-nums; white-space: nowrap; width: auto; } td.name { font-weight: 600; } td.bad { white-space: normal; }
th, td { padding-right: 18px; }`

// chart is one picture of the page.
type chart struct {
	Title  string `json:"-"`
	Note   string `json:"-"`
	Height int    `json:"-"` // pixels
	// Colors holds the color of each series, as an index into the colors of the page's style. An engine has the same
	// color in all charts.
	Colors []int `json:"colors"`
	// Unit is the unit of the values. The page scales values in "ns" and "µs" to readable units. "×" follows a ratio.
	Unit   string         `json:"unit"`
	Option map[string]any `json:"option"`
}

// cell is one cell of a table. Class is a class of the style sheet.
type cell struct{ Text, Class string }

type htmlRow []cell

// WriteHTML writes one page with charts and tables. The page contains the drawing script and fetches nothing.
func (r *Result) WriteHTML(w io.Writer) error {
	drawn := r.charts()
	options, err := json.Marshal(drawn) // escapes < and >, so that a workload's name cannot end the script
	if err != nil {
		return err
	}
	data := struct {
		Result              *Result
		About               string
		Failed, Notes, Head []string
		Charts              []chart
		Rows, Comparison    []htmlRow
		Script              template.JS
	}{
		// #nosec: the tool's own file
		Result: r, About: r.about(), Failed: r.Failed(), Notes: r.notes(), Head: header, Charts: drawn,
		Script: template.JS(echarts.Script),
	}
	for _, load := range r.Workloads {
		if load.Error != "" {
			data.Rows = append(data.Rows, htmlRow{{load.Name, "name"}, {"", ""}, {"error: " + load.Error, "bad"}})
		}
		for _, label := range r.Settings.Engines {
			if f := load.Engines[label]; f != nil {
				data.Rows = append(data.Rows, rowOf(load, label, f))
			}
		}
	}
	if r.Comparison != nil {
		for _, c := range r.Comparison.Rows {
			data.Comparison = append(data.Comparison, c.cells())
		}
	}
	var text strings.Builder
	if err := body.Execute(&text, data); err != nil {
		return err
	}
	return page.Write(w, page.Page{
		Title: "godynamo bench", Style: style, Body: template.HTML(text.String()), // #nosec: html/template wrote it
		// #nosec: the tool's own script, and escaped JSON
		Script: template.JS("const charts = " + string(options) + ";\n" + script),
	})
}

// rowOf returns an engine's row in the page's table.
func rowOf(load *Workload, label string, f *Figures) htmlRow {
	row := htmlRow{{load.Name, "name"}, {label, ""}}
	if f.Error != "" {
		return append(row, cell{"error: " + f.Error, "bad"})
	}
	for i, c := range cells(f) {
		class := "num"
		if i == 0 {
			class = map[bool]string{true: "", false: "warn"}[f.Correct == "yes"]
		}
		row = append(row, cell{fmt.Sprint(c), class})
	}
	return row
}

// cells returns the row of a comparison.
func (c *Change) cells() htmlRow {
	verdict, class := "~", ""
	switch {
	case c.Significant && c.Change > 0:
		verdict, class = "slower", "bad"
	case c.Significant:
		verdict, class = "faster", "good"
	}
	return htmlRow{
		{c.Workload, "name"}, {c.Engine, ""}, {interval(c.Old), "num"}, {interval(c.New), "num"},
		{fmt.Sprintf("%+.1f %%", c.Change*100), "num " + class},
		{fmt.Sprintf("%.3f", c.Adjusted), "num"}, {verdict, class},
	}
}

// pictures are the charts. All have a logarithmic axis, since workloads differ by powers of ten. Bars on such an axis
// start at 1. So the bar of a ratio points left if the engine is faster than eager. The unit of times is so small that
// each time is greater than 1.
var pictures = []struct {
	title, note, unit string
	eager             bool // whether eager has bars in the chart
	of                func(*Figures) *float64
}{
	{"Time of a call, beside eager's", "to the left of 1: faster than eager", "×", false,
		func(f *Figures) *float64 { return scaled(f.Warm != nil && f.Ratio != nil, f.Ratio, 1) }},
	{"Time of a call", "once captured", "ns", true,
		func(f *Figures) *float64 { return scaled(f.Warm != nil, f.Warm, 1e3) }},
	{"First call: capture", "all of the first call but the backend", "µs", false, func(f *Figures) *float64 {
		return cold(f, func(c *Cold) float64 { return c.Capture })
	}},
	{"First call: backend", "what it took to compile the graphs, where that is a microsecond at all", "µs", false,
		func(f *Figures) *float64 {
			return cold(f, func(c *Cold) float64 { return c.Backend })
		}},
}

func scaled(known bool, i *Interval, by float64) *float64 {
	if !known {
		return nil
	}
	x := i.Value * by
	return &x
}

// cold returns a part of the first call in µs. It returns nil if the value is below one.
func cold(f *Figures, part func(*Cold) float64) *float64 {
	if f.Cold == nil || part(f.Cold) < 1e-6 {
		return nil
	}
	us := part(f.Cold) * 1e6
	return &us
}

// charts returns the charts for which there are figures.
func (r *Result) charts() []chart {
	var out []chart
	for _, p := range pictures {
		bar := charts.NewBar()
		bar.SetGlobalOptions(
			charts.WithLegendOpts(opts.Legend{Show: opts.Bool(true), Top: "0", Left: "0"}),
			charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "axis"}),
			charts.WithGridOpts(opts.Grid{Left: "8", Right: "80", Top: "32", Bottom: "8",
				ContainLabel: opts.Bool(true)}),
			charts.WithAnimation(false),
			charts.WithXAxisOpts(opts.XAxis{Type: "log"}),
			charts.WithYAxisOpts(opts.YAxis{Type: "category", Inverse: opts.Bool(true), Data: r.names()}),
		)
		c := chart{Title: p.title, Note: p.note, Unit: p.unit, Height: 90 +
			len(r.Workloads)*(14+14*max(1, len(r.Settings.Engines)))}
		for i, label := range r.Settings.Engines {
			if data := r.data(label, p.of); data != nil && (p.eager || label != Eager) {
				bar.AddSeries(label, data)
				c.Colors = append(c.Colors, i%8)
			}
		}
		if len(c.Colors) == 0 {
			continue
		}
		bar.Validate()
		c.Option = bar.JSON()
		out = append(out, c)
	}
	return out
}

func (r *Result) names() []string {
	out := []string{}
	for _, w := range r.Workloads {
		out = append(out, w.Name)
	}
	return out
}

// data returns one figure of an engine for all workloads, in order. Unknown values are gaps. It returns nil if all
// values are unknown.
func (r *Result) data(label string, of func(*Figures) *float64) []opts.BarData {
	var out []opts.BarData
	found := false
	for _, w := range r.Workloads {
		item := opts.BarData{Value: "-"} // ECharts writes a missing value as "-"
		if f := w.Engines[label]; f != nil {
			if x := of(f); x != nil {
				item.Value, found = rounded(*x), true
			}
		}
		out = append(out, item)
	}
	if !found {
		return nil
	}
	return out
}

// rounded rounds to four significant digits, since tooltips show all digits.
func rounded(x float64) float64 {
	var out float64
	_, _ = fmt.Sscanf(fmt.Sprintf("%.4g", x), "%g", &out)
	return out
}
