package cli

import (
	"github.com/spf13/cobra"
)

// newRun returns `godynamo run`.
func newRun(app *App) *cobra.Command {
	var (
		options           forwarded
		module, nopython  bool
		functions         []string
		backend, jsonFile string
		quiet, off        bool
	)
	cmd := &cobra.Command{
		Use:   "run [flags] SCRIPT [ARGS...]",
		Short: "Run a script, a module or pytest under godynamo",
		Long: `Runs a script as python would. godynamo serves everything that the script calls, or only the functions
named by --function, and reports on stderr what was captured. Exit code, output and tracebacks are the
script's. In threads and processes that the script starts, only functions named by --function are served.`,
		Example: `  godynamo run train.py --epochs 1
  godynamo run --function step --function Model.forward train.py
  godynamo run --backend inductor -m package.train --epochs 1
  godynamo run -m pytest tests/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Problemf("run needs a script: godynamo run SCRIPT [ARGS...], or -m MODULE")
			}
			options.flag(cmd, "module", module)
			options.flag(cmd, "nopython", nopython)
			options.flag(cmd, "quiet", quiet)
			options.flag(cmd, "off", off)
			options.values("function", functions...)
			options.values("backend", backend)
			if cmd.Flags().Changed("json") {
				options.values("json", jsonFile)
			}
			return app.forward("run", options, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // arguments after the script belong to the script
	flags.BoolVarP(&module, "module", "m", false, "SCRIPT is the name of a module, as with python -m")
	flags.StringArrayVarP(&functions, "function", "f", nil,
		"optimize this function and no other: NAME or CLASS.METHOD of the script, MODULE:NAME of a module (repeatable)")
	flags.StringVarP(&backend, "backend", "b", "eager",
		"backend for the graphs: a registered name, or MODULE:NAME of a callable")
	flags.BoolVar(&nopython, "nopython", false, "a graph break raises an error; with --function")
	flags.StringVar(&jsonFile, "json", "", "write the summary as JSON to this file (-: stdout)")
	flags.BoolVarP(&quiet, "quiet", "q", false, "no summary")
	flags.BoolVar(&off, "off", false, "run it without godynamo, in the same way, to compare")
	return cmd
}

// forwarded are a command's flags that are passed to Python, as `--name` or `--name=value`.
type forwarded []string

// flag adds a flag without a value if it is on.
func (f *forwarded) flag(_ *cobra.Command, name string, on bool) {
	if on {
		*f = append(*f, "--"+name)
	}
}

// values adds one flag for each value.
func (f *forwarded) values(name string, values ...string) {
	for _, v := range values {
		*f = append(*f, "--"+name+"="+v)
	}
}

// forward replaces the process with the command in Python. The arguments are the flags, "--", and args.
func (app *App) forward(command string, options forwarded, args []string) error {
	p, err := app.Python()
	if err != nil {
		return err
	}
	line := append([]string{command}, options...)
	return p.Exec(append(append(line, "--"), args...)...)
}
