package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/godynamo/godynamo/internal/bench"
)

// benchFlags are the flags of `godynamo bench`.
type benchFlags struct {
	options                  bench.Options
	timeout                  time.Duration
	load, compare            string
	margin, failOn           string
	json, csv, gobench, html string
	png                      string
}

// output is one format in which a result is written.
type output struct {
	flag, file string
	write      func(*bench.Result, io.Writer) error
}

func newBench(app *App) *cobra.Command {
	f := new(benchFlags)
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure workloads under eager, torch.compile and godynamo",
		Long: `Measures workloads under several engines: correctness against eager mode, how much was captured, the cost
of the first call, and the time of a call after capture. Workloads run in child processes; the engines
take turns within each round.

Your own workload is FILE:NAME with --module, where NAME is
  - a function or nn.Module with example_inputs (a tuple of arguments, a dict of keyword arguments, or a
    function that returns one); an example_inputs in the file serves all workloads that have none;
  - or a function without parameters that returns (callable, args) or (callable, args, kwargs).
Backends that the file registers (godynamo.register_backend) can be named with --engine.

With --compare each row is tested: Mann-Whitney's U test on the best rounds of the processes, adjusted
for the number of rows, and only for changes of more than --margin.

The exit code is 1 if a workload fails or returns another result than eager mode, or by --fail-on.`,
		Example: `  godynamo bench --quick
  godynamo bench --suite timm --only 'timm.vit*' --engine torch.compile=inductor --engine godynamo=inductor
  godynamo bench --module model.py:attention --json new.json --html new.html
  godynamo bench --json new.json --compare old.json --fail-on 5%`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// The value of --json is optional, so in `--json FILE`, FILE is an argument.
			if f.json == "-" && len(args) == 1 {
				f.json, args = args[0], nil
			}
			if len(args) > 0 {
				return Problemf("bench takes no arguments, only flags: --only %s names a workload, --suite a suite",
					args[0])
			}
			return f.run(app, cmd)
		},
	}
	flags := cmd.Flags()
	o := &f.options
	flags.BoolVarP(&o.Quick, "quick", "q", false, "fewer processes and rounds, and torch's caches on disk are kept")
	flags.StringArrayVarP(&o.Suites, "suite", "s", nil,
		"workloads: micro (default), transformers, timm, torchvision (repeatable)")
	flags.StringArrayVar(&o.Only, "only", nil, "only workloads of this name, * and ? allowed (repeatable)")
	flags.StringArrayVarP(&o.Modules, "module", "m", nil, "your own workload, FILE:NAME (repeatable)")
	flags.StringArrayVarP(&o.Engines, "engine", "e", nil,
		"eager, torch.compile[=BACKEND] or godynamo[=BACKEND]; without a backend the workload's (repeatable; "+
			"default: all three)")
	flags.IntVar(&o.Processes, "processes", 0, "processes that measure each workload (default 10, with --quick 7)")
	flags.IntVar(&o.Rounds, "rounds", 0, "rounds in each process (default 40, with --quick 15)")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "end a child that prints nothing for this long")
	flags.StringVar(&f.load, "load", "", "measure nothing: show and compare this result file")
	flags.StringVar(&f.compare, "compare", "", "compare with an older result file")
	flags.StringVar(&f.margin, "margin", "5%",
		"with --compare: ignore changes within this; two runs of the same code differ by as much")
	flags.StringVar(&f.failOn, "fail-on", "",
		"with --compare: exit with 1 if a row is significantly slower by more than this, for instance 5%")
	flags.StringVar(&f.json, "json", "", "write the result as JSON to this file, or to stdout instead of the table")
	flags.Lookup("json").NoOptDefVal = "-"
	flags.StringVar(&f.csv, "csv", "", "write a line for each workload and engine to this file")
	flags.StringVar(&f.gobench, "bench", "", "write Go's benchmark format to this file, for benchstat")
	flags.StringVar(&f.html, "html", "", "write a page with charts to this file; it opens offline")
	flags.StringVar(&f.png, "png", "", "write plots into this directory")
	for flag, values := range map[string][]string{
		"suite":  {"micro", "transformers", "timm", "torchvision"},
		"engine": {"eager", "torch.compile", "torch.compile=inductor", "godynamo", "godynamo=inductor"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// run measures or loads a result, compares it, and writes it.
func (f *benchFlags) run(app *App, cmd *cobra.Command) error {
	margin, threshold, old, err := f.before()
	if err != nil {
		return benchProblem(err)
	}
	if f.failOn != "" && threshold < margin {
		fmt.Fprintf(app.Stderr,
			"godynamo: --fail-on %s is within --margin %s: what lies in between fails nothing; lower the margin too\n",
			f.failOn, f.margin)
	}
	result, failed := f.result(app)
	if result == nil {
		if errors.Is(failed, context.Canceled) {
			fmt.Fprintln(app.Stderr, "godynamo: interrupted before anything was measured")
			return ExitCode(130)
		}
		return benchProblem(failed)
	}
	if old != nil {
		result.Comparison = bench.Compare(old, result, f.compare, margin)
	}
	if err := f.write(app, result); err != nil {
		return benchProblem(err)
	}
	if failed != nil {
		if errors.Is(failed, context.Canceled) {
			fmt.Fprintln(app.Stderr, "godynamo: interrupted; what was measured so far is written")
			return ExitCode(130)
		}
		return benchProblem(failed)
	}
	return f.verdict(app, result, threshold)
}

// before makes the checks that are possible before measuring, since measuring takes minutes.
func (f *benchFlags) before() (margin, threshold float64, old *bench.Result, err error) {
	threshold = -1
	if margin, err = bench.Share("--margin", f.margin); err != nil {
		return 0, 0, nil, err
	}
	if f.failOn != "" {
		if f.compare == "" {
			return 0, 0, nil, Problemf("--fail-on needs --compare OLD.json: a regression is one against something")
		}
		if threshold, err = bench.Share("--fail-on", f.failOn); err != nil {
			return 0, 0, nil, err
		}
	}
	if f.options.Processes < 0 || f.options.Rounds < 0 {
		return 0, 0, nil, Problemf("--processes and --rounds are at least 1")
	}
	if f.compare != "" {
		if old, err = bench.Load(f.compare); err != nil {
			return 0, 0, nil, err
		}
	}
	stdout := ""
	for _, out := range f.outputs() {
		if out.file == "-" {
			if stdout != "" {
				return 0, 0, nil, Problemf("--%s and --%s both want stdout: give one of them a file", stdout, out.flag)
			}
			stdout = out.flag
		}
		if err := bench.Writable(out.file); err != nil {
			return 0, 0, nil, err
		}
	}
	return margin, threshold, old, nil
}

// result measures or loads a result. Both return values may be non-nil, since an interrupted run returns a partial
// result and an error.
func (f *benchFlags) result(app *App) (*bench.Result, error) {
	if f.load != "" {
		return bench.Load(f.load)
	}
	python, err := app.Python()
	if err != nil {
		return nil, err
	}
	if err := python.check(); err != nil {
		return nil, err
	}
	o := f.options
	if len(o.Suites) == 0 && len(o.Modules) == 0 {
		o.Suites = []string{"micro"}
	}
	if len(o.Engines) == 0 {
		o.Engines = []string{"eager", "torch.compile", "godynamo"}
	}
	processes, rounds := 10, 40
	if o.Quick {
		processes, rounds = 7, 15
	}
	if o.Processes == 0 {
		o.Processes = processes
	}
	if o.Rounds == 0 {
		o.Rounds = rounds
	}
	o.Silence, o.Command = f.timeout, python.Command
	progress, end := bench.NewProgress(app.Stderr, app.Terminal())
	defer end()
	o.Progress = progress
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return bench.Run(ctx, o)
}

// outputs returns the outputs that the flags request.
func (f *benchFlags) outputs() []output {
	var found []output
	for _, out := range []output{
		{"json", f.json, (*bench.Result).Write},
		{"csv", f.csv, (*bench.Result).WriteCSV},
		{"bench", f.gobench, (*bench.Result).WriteGo},
		{"html", f.html, (*bench.Result).WriteHTML},
	} {
		if out.file != "" {
			found = append(found, out)
		}
	}
	return found
}

// write writes all outputs, and the table unless stdout is used by an output. If one file cannot be written, the others
// are written nevertheless.
func (f *benchFlags) write(app *App, result *bench.Result) error {
	var failed []string
	table := true
	for _, out := range f.outputs() {
		if out.file == "-" {
			table = false
			if err := out.write(result, app.Stdout); err != nil {
				failed = append(failed, fmt.Sprintf("--%s: %v", out.flag, err))
			}
			continue
		}
		if err := bench.WriteFile(out.file, func(w io.Writer) error { return out.write(result, w) }); err != nil {
			failed = append(failed, fmt.Sprintf("--%s: %v", out.flag, err))
		}
	}
	if f.png != "" {
		if err := result.WritePlots(f.png); err != nil {
			failed = append(failed, fmt.Sprintf("--png: %v", err))
		}
	}
	if table {
		if err := result.WriteTable(app.Stdout); err != nil {
			failed = append(failed, err.Error())
		}
	}
	if len(failed) > 0 {
		return Problemf("%s", strings.Join(failed, "; "))
	}
	return nil
}

// verdict returns the exit code of a completed run.
func (f *benchFlags) verdict(app *App, result *bench.Result, threshold float64) error {
	code := 0
	if failed := result.Failed(); len(failed) > 0 {
		code = 1
	}
	if threshold >= 0 && result.Comparison.Blind() {
		return Problemf("--fail-on: no regression can show in this comparison: %s",
			strings.Join(append(result.Comparison.Missing, result.Comparison.Notes...), "; "))
	}
	if threshold >= 0 {
		for _, row := range result.Comparison.Worse(threshold) {
			fmt.Fprintf(app.Stderr, "godynamo: %s with %s got %.1f %% slower: %.3f µs, %.3f before\n",
				row.Workload, row.Engine, row.Change*100, row.New.Value, row.Old.Value)
			code = 1
		}
	}
	if code != 0 {
		return ExitCode(code)
	}
	return nil
}

// benchProblem converts a Problem of internal/bench to one of this package.
func benchProblem(err error) error {
	var p bench.Problem
	if errors.As(err, &p) {
		return Problemf("%s", string(p))
	}
	return err
}
