package bench

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// plots are the pictures of --png. Each has a file name, a title, an axis, and the interval that it shows.
var plots = []struct {
	file, title, axis string
	eager             bool // whether eager has points in the picture
	of                func(*Figures) *Interval
}{
	{"ratio.png", "Time of a call, beside eager's", "ratio to eager", false,
		func(f *Figures) *Interval { return f.Ratio }},
	{"warm.png", "Time of a call", "µs", true, func(f *Figures) *Interval { return f.Warm }},
	{"cold.png", "First call", "ms", false, func(f *Figures) *Interval {
		if f.Cold == nil {
			return nil
		}
		return &Interval{Value: f.Cold.Seconds * 1e3, Low: f.Cold.Seconds * 1e3, High: f.Cold.Seconds * 1e3}
	}},
}

// WritePlots writes ratio.png, warm.png and cold.png into a directory, and creates the directory if necessary. The
// pictures show figures as points with their intervals. The axis is logarithmic, since workloads differ by powers of
// ten.
func (r *Result) WritePlots(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, p := range plots {
		engines := slices.DeleteFunc(slices.Clone(r.Settings.Engines),
			func(label string) bool { return label == Eager && !p.eager })
		drawn, err := r.plot(p.title, p.axis, engines, p.of)
		if err != nil {
			return err
		}
		height := vg.Length(1.4+0.28*float64(len(r.Workloads))) * vg.Inch
		if err := save(drawn, 9*vg.Inch, height, filepath.Join(dir, p.file)); err != nil {
			return err
		}
	}
	return nil
}

// plot draws a line for each workload, with the first on top. Each line has a point for each engine.
func (r *Result) plot(title, axis string, engines []string, of func(*Figures) *Interval) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, axis
	p.Add(plotter.NewGrid())
	names := make([]string, len(r.Workloads))
	found := false
	for i, label := range engines {
		var points ranges
		for j, w := range r.Workloads {
			at := len(r.Workloads) - 1 - j // gonum's axis points upwards
			names[at] = w.Name
			if f := w.Engines[label]; f != nil {
				if x := of(f); x != nil && x.Value > 0 && x.Low > 0 {
					// The engines of one workload are drawn slightly apart, so that none hides another.
					y := float64(at) + 0.5*(float64(len(engines)-1)/2-float64(i))/float64(max(1, len(engines)))
					points.add(x, y)
				}
			}
		}
		if points.Len() == 0 {
			continue
		}
		found = true
		if err := addPoints(p, label, slices.Index(r.Settings.Engines, label), points); err != nil {
			return nil, err
		}
	}
	if found {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.X.Max *= 8 // room for the legend
		p.X.Min /= 1.5
	}
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(3)
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	return p, nil
}

// ranges are points with their intervals.
type ranges struct {
	plotter.XYs
	plotter.XErrors
}

func (r *ranges) add(x *Interval, y float64) {
	r.XYs = append(r.XYs, plotter.XY{X: x.Value, Y: y})
	r.XErrors = append(r.XErrors, struct{ Low, High float64 }{x.Low - x.Value, x.High - x.Value})
}

// addPoints adds the points of one engine to a plot.
func addPoints(p *plot.Plot, label string, index int, points ranges) error {
	whiskers, err := plotter.NewXErrorBars(points)
	if err != nil {
		return err
	}
	scatter, err := plotter.NewScatter(points.XYs)
	if err != nil {
		return err
	}
	whiskers.Color = plotutil.Color(index)
	scatter.Color, scatter.Shape, scatter.Radius = plotutil.Color(index), plotutil.Shape(index), vg.Points(3)
	p.Add(whiskers, scatter)
	p.Legend.Add(label, scatter)
	return nil
}

// save writes a plot with a margin to a file. With plot.Save, which has no margin, the workloads' names would touch the
// edge.
func save(p *plot.Plot, width, height vg.Length, path string) error {
	const margin = 12
	canvas := vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
	return WriteFile(path, func(w io.Writer) error {
		_, err := canvas.WriteTo(w)
		return err
	})
}
