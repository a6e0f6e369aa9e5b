package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/godynamo/godynamo/internal/bench"
	"github.com/godynamo/godynamo/internal/report"
)

// newReport returns `godynamo report`.
func newReport(app *App) *cobra.Command {
	var (
		output, jsonFile string
		open             bool
	)
	cmd := &cobra.Command{
		Use:   "report [flags] DIR",
		Short: "Make a page from the traces of GODYNAMO_TRACE",
		Long: `Reads the traces of any number of processes in a directory and writes one HTML page that needs no
network: every translation with the user's stack, its graph, guards, original and transformed bytecode,
breaks and times, and the reason for each recompile.`,
		Example: `  GODYNAMO_TRACE=trace python train.py
  godynamo report trace --open
  godynamo report trace --json | jq .totals`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Problemf("report needs the directory that GODYNAMO_TRACE named: godynamo report DIR")
			}
			trace, err := report.Read(args[0])
			if err == nil || errors.Is(err, report.ErrNothing) {
				for _, p := range trace.Problems {
					fmt.Fprintf(app.Stderr, "godynamo: %s\n", oneLine(p.String()))
				}
			}
			if err != nil {
				return reportProblem(args[0], err)
			}
			summary := report.Summarize(trace)
			if cmd.Flags().Changed("json") {
				if err := app.writeFile(jsonFile,
					func(w io.Writer) error { return writeJSON(w, summary) }); err != nil {
					return err
				}
				if !cmd.Flags().Changed("output") && !open {
					return nil
				}
			}
			if err := app.writeFile(output,
				func(w io.Writer) error { return report.HTML(w, trace, summary) }); err != nil {
				return err
			}
			if output == "-" {
				return nil
			}
			fmt.Fprintf(app.Stderr, "%s: processes: %d, translations: %d, graph breaks: %d, recompiles: %d\n", output,
				summary.Totals.Processes, summary.Totals.Translations, summary.Totals.Breaks, summary.Totals.Recompiles)
			if open {
				return openPage(output)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "report.html", "the page (-: stdout)")
	flags.BoolVar(&open, "open", false, "open the page in the browser")
	flags.StringVar(&jsonFile, "json", "-",
		"write totals, breaks, recompiles and times as JSON, to this file or stdout, and no page unless -o is given")
	flags.Lookup("json").NoOptDefVal = "-"
	return cmd
}

// reportProblem returns the one-line error for a directory from which no report can be made.
func reportProblem(dir string, err error) error {
	switch {
	case errors.Is(err, report.ErrNothing):
		return Problemf("%s holds no trace: run the program with GODYNAMO_TRACE=%s", dir, dir)
	case errors.Is(err, fs.ErrNotExist):
		return Problemf("%s: no such directory; run the program with GODYNAMO_TRACE=%s", dir, dir)
	}
	return Problemf("%s: cannot be read: %v", dir, errors.Unwrap(err))
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// writeFile writes a file completely or not at all. The name "-" means stdout.
func (app *App) writeFile(name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(app.Stdout)
	}
	if err := bench.WriteFile(name, write); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return Problemf("%s cannot be written: %v", name, err)
	}
	return nil
}

// openPage opens a page in the system's browser.
func openPage(name string) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if err := exec.Command(opener, name).Start(); err != nil {
		return Problemf("%s is written, but %s cannot be started to open it; open it by hand", name, opener)
	}
	return nil
}
