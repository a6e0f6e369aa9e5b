package bench

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Each process is one sample, represented by its best round.
//
// Rounds are not samples: the rounds of one process share its memory layout, its hash seeds and the minute in which
// they run. They differ only because other programs slow the machine down. The best round excludes these delays
// (bench/report.py also uses it). All processes of a run start in the same way, so they are comparable samples. The
// figure of a workload is the median of its processes. Its interval comes from order statistics, which assume nothing
// about the distribution.

const confidence = 0.95

// bests returns the best round of each process.
func bests(samples [][]float64) []float64 {
	var out []float64
	for _, rounds := range samples {
		if len(rounds) > 0 {
			out = append(out, slices.Min(rounds))
		}
	}
	return out
}

// ratios returns the ratio of a process's best round to its best round with eager, for each process that measured
// both.
func ratios(samples, eager [][]float64) []float64 {
	var out []float64
	for i := range min(len(samples), len(eager)) {
		if len(samples[i]) > 0 && len(eager[i]) > 0 {
			out = append(out, slices.Min(samples[i])/slices.Min(eager[i]))
		}
	}
	return out
}

// summary returns the median of the processes' figures and its interval, or nil if there are no figures. Fewer than six
// processes have no interval with 95 % confidence. Then the interval spans all figures and states its confidence.
func summary(values []float64) *Interval {
	if len(values) == 0 {
		return nil
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	s := benchmath.AssumeNothing.Summary(sample, confidence)
	if len(values) == 1 {
		return &Interval{Value: s.Center, Low: s.Center, High: s.Center}
	}
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		n := float64(len(values))
		return &Interval{s.Center, sample.Values[0], sample.Values[len(values)-1], 1 - math.Pow(2, 1-n)}
	}
	return &Interval{s.Center, s.Lo, s.Hi, s.Confidence}
}

// finish computes every figure that depends on samples.
func (r *Result) finish() {
	for _, w := range r.Workloads {
		var eager [][]float64
		if f := w.Engines[Eager]; f != nil {
			eager = f.Samples
		}
		for _, f := range w.Engines {
			if f.Error != "" {
				*f = Figures{Error: f.Error, Correct: f.Correct, Backend: f.Backend}
				continue
			}
			f.Warm = summary(bests(f.Samples))
			f.Ratio = summary(ratios(f.Samples, eager))
		}
	}
}
