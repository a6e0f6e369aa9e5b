package bench

import (
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"
)

// NewProgress shows progress on w: a bar on a terminal, else a line for each workload of the first process and one for each process
// behind it. The second return value ends the bar.
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

func (b *bar) Plan(steps int) {
	b.bar = progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(b.w), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish(), progressbar.OptionShowCount(),
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
	steps     int
	processes int
}

func (l *lines) Plan(steps int) {
	l.steps = steps
	fmt.Fprintf(l.w, "bench: %d measurements\n", steps)
}

func (l *lines) At(process int, _, _ string) {
	if process != l.process && process > 1 {
		fmt.Fprintf(l.w, "bench: process %d\n", process)
	}
	l.process = process
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
