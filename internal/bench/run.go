package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// Options select the workloads and engines to measure, and the numbers of processes and rounds.
type Options struct {
	Suites, Only, Modules []string // as on the command line; python/godynamo/_tools/bench has the details
	Engines               []string // labels; eager is put first if it is missing
	Processes, Rounds     int
	Quick                 bool
	Silence               time.Duration // time after which a silent child is killed
	// Command returns the child process for a command of `python -m godynamo._tools`. The process has not been
	// started.
	Command  func(args ...string) *exec.Cmd
	Progress Progress
}

// Progress is notified of the progress of a run.
type Progress interface {
	// Plan is called before the first step. It gets the maximum number of steps, the number of processes and the
	// estimated time.
	Plan(steps, processes int, about time.Duration)
	// At is called when the current activity changes.
	At(process int, workload, what string)
	// Step is called when a step is done. text is "" or a message.
	Step(process int, workload, text string)
}

// microSuite is the suite whose workloads share a process. Workloads of other suites are big: each gets its own
// process.
const microSuite = "micro"

// Run measures the workloads. The processes of each workload are spread over the run: process 1 of all workloads comes
// first, then process 2, and so on. So a slow minute does not affect all processes of one workload. A workload whose
// child dies gets that error and is not measured again. If ctx ends, Run returns its error, and a result that is marked
// as interrupted and has the measurements so far. A usage error is a Problem.
func Run(ctx context.Context, o Options) (*Result, error) {
	if !slices.Contains(o.Engines, Eager) {
		o.Engines = append([]string{Eager}, o.Engines...)
	}
	r := &runner{options: o}
	if err := r.plan(ctx); err != nil {
		return nil, err
	}
	caches := ""
	if !o.Quick {
		dir, err := os.MkdirTemp("", "godynamo-bench-")
		if err != nil {
			return nil, problemf("no temporary directory: %v", err)
		}
		defer os.RemoveAll(dir)
		caches = dir
	}
	var failed error
	for process := 1; process <= o.Processes && failed == nil; process++ {
		failed = r.process(ctx, process, caches)
		caches = ""
	}
	r.result.Interrupted = failed != nil && ctx.Err() != nil
	r.result.Workloads = slices.DeleteFunc(r.result.Workloads, func(w *Workload) bool {
		return w.Error == "" && len(w.Engines) == 0 // the workload was not started
	})
	r.result.finish()
	return r.result, failed
}

type runner struct {
	options Options
	result  *Result
}

func (r *runner) request(do string) request {
	o := r.options
	return request{
		Do: do, Suites: list(o.Suites), Only: list(o.Only), Modules: list(o.Modules), Engines: o.Engines,
		Rounds: o.Rounds,
	}
}

// list turns nil into an empty list, so that JSON shows [] and not null.
func list(names []string) []string { return append([]string{}, names...) }

// plan requests the list of workloads from a child process.
func (r *runner) plan(ctx context.Context) error {
	var answer message
	began := time.Now()
	err := child(ctx, r.options.Command, r.request("plan"), r.options.Silence, func(m message) { answer = m })
	var d died
	if errors.As(err, &d) {
		return problemf("the benchmark's Python does not work: %s", d)
	}
	if err != nil {
		return err
	}
	for _, w := range answer.Workloads {
		w.Engines = map[string]*Figures{}
	}
	r.result = &Result{
		Kind: kind, Version: 1, Machine: *answer.Machine, Workloads: answer.Workloads,
		Settings: Settings{
			Engines: r.options.Engines, Processes: r.options.Processes, Rounds: r.options.Rounds,
			Quick:       r.options.Quick,
			FreshCaches: !r.options.Quick,
		},
	}
	r.options.Progress.Plan(len(answer.Workloads)*r.options.Processes, r.options.Processes, r.about(time.Since(began)))
	return nil
}

// process runs process `number` of each workload that has no error. Every workload has its own child process, except
// that the micro set shares one.
func (r *runner) process(ctx context.Context, number int, caches string) error {
	for _, batch := range r.batches() {
		for len(batch) > 0 {
			rest, err := r.batch(ctx, number, caches, batch)
			if err != nil {
				return err
			}
			batch = rest
		}
	}
	return nil
}

// batches groups the workloads that have no error by the process in which they run.
func (r *runner) batches() [][]*Workload {
	var micro []*Workload
	var all [][]*Workload
	for _, w := range r.result.Workloads {
		switch {
		case w.Error != "":
		case w.Suite == microSuite:
			micro = append(micro, w)
		default:
			all = append(all, []*Workload{w})
		}
	}
	if len(micro) > 0 {
		all = append([][]*Workload{micro}, all...)
	}
	return all
}

// batch runs one child process. If the child dies, its current workload gets the error, and batch returns the workloads
// after that one.
func (r *runner) batch(ctx context.Context, number int, caches string,
	batch []*Workload) (rest []*Workload, err error) {
	ask := r.request("measure")
	ask.Details, ask.Caches = number == 1, caches
	for _, w := range batch {
		ask.Workloads = append(ask.Workloads, w.Name)
	}
	next := 0 // the child measures the workloads in order
	err = child(ctx, r.options.Command, ask, r.options.Silence, func(m message) {
		switch {
		case m.Workload == "":
		case m.At != "":
			r.options.Progress.At(number, m.Workload, m.At)
		case next < len(batch) && batch[next].Name == m.Workload:
			w := batch[next]
			next++
			w.Error = m.Error
			r.take(w, m.Engines, number)
			r.options.Progress.Step(number, w.Name, told(w, r.options.Engines))
		}
	})
	var d died
	if !errors.As(err, &d) {
		return nil, err
	}
	if next == len(batch) {
		return nil, nil // the child had reported all workloads
	}
	w := batch[next]
	w.Error = string(d)
	w.Engines = map[string]*Figures{}
	r.options.Progress.Step(number, w.Name, w.Error)
	return batch[next+1:], nil
}

// take adds the measurements of one process. An engine that fails in one process counts as failed.
func (r *runner) take(w *Workload, engines map[string]*measured, number int) {
	if w.Error != "" {
		w.Engines = map[string]*Figures{}
		return
	}
	for label, m := range engines {
		f := w.Engines[label]
		if f == nil {
			f = &Figures{
				Backend: m.Backend, Correct: "yes", Graphs: m.Graphs, Breaks: m.Breaks, Ops: m.Ops,
				Internal: m.Internal, Cold: m.Cold, Guards: m.Guards,
				GuardsNs: m.GuardsNs, Calls: m.Calls, Peak: m.Bytes,
			}
			w.Engines[label] = f
		}
		if m.Error != "" {
			f.Error, f.Correct = m.Error, "no"
		}
		if m.Correct == "close" && f.Correct == "yes" {
			f.Correct = "close"
		}
		samples := make([]float64, len(m.Seconds))
		for i, s := range m.Seconds {
			samples[i] = s * 1e6
		}
		// Ratios compare figures of the same process, so a process that failed leaves an empty place.
		for len(f.Samples) < number-1 {
			f.Samples = append(f.Samples, nil)
		}
		f.Samples = append(f.Samples, samples)
	}
}

// told returns the text that reports a finished workload on an output without a bar.
func told(w *Workload, engines []string) string {
	if w.Error != "" {
		return w.Error
	}
	text := ""
	for _, label := range engines {
		f := w.Engines[label]
		switch {
		case f == nil:
		case f.Error != "":
			text += fmt.Sprintf("  %s: %s", label, f.Error)
		default:
			if b := bests(f.Samples); len(b) > 0 {
				text += fmt.Sprintf("  %s %s µs", label, digits(slices.Min(b)))
			}
		}
	}
	return text
}
