package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// NewProgress returns a Progress that writes to w. On a terminal it shows a bar. Otherwise it prints a line for each
// workload of the first process, and a line for each later process. The second return value ends the bar.
func NewProgress(w io.Writer, terminal bool) (Progress, func()) {
	if !terminal {
		return &lines{w: w}, func() {}
	}
	b := &bar{w: w}
	return b, b.end
}

type bar struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func (b *bar) Plan(steps, processes int, about time.Duration) {
	fmt.Fprintln(b.w, planned(steps, processes, about))
	b.bar = progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(b.w), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish(),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true), progressbar.OptionSetDescription("bench"))
}

func (b *bar) At(_ int, workload, what string) {
	if b.bar != nil {
		b.bar.Describe(workload + ": " + what)
	}
}

func (b *bar) Step(int, string, string) {
	if b.bar != nil {
		_ = b.bar.Add(1)
	}
}

func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Finish()
		_ = b.bar.Clear()
	}
}

type lines struct {
	w         io.Writer
	process   int
	processes int
	began     time.Time // time of the first step
}

func (l *lines) Plan(steps, processes int, about time.Duration) {
	l.processes, l.began = processes, time.Now()
	fmt.Fprintln(l.w, planned(steps, processes, about))
}

func (l *lines) At(process int, _, _ string) {
	if process != l.process && process > 1 {
		each := time.Since(l.began) / time.Duration(process-1)
		fmt.Fprintf(l.w, "bench: process %d of %d, about %s left\n", process, l.processes,
			roughly(each*time.Duration(l.processes-process+1)))
	}
	l.process = process
}

// planned returns the line that is printed before the first step.
func planned(steps, processes int, about time.Duration) string {
	return fmt.Sprintf("bench: %d measurements in %d processes, about %s; fewer: --quick, --only, --engine, "+
		"--processes",
		steps, processes, roughly(about))
}

func (l *lines) Step(process int, workload, text string) {
	if process == 1 {
		fmt.Fprintf(l.w, "bench: %s:%s\n", workload, prefixed(text))
	}
}

func prefixed(text string) string {
	if text == "" || text[0] == ' ' {
		return text
	}
	return " " + text
}
