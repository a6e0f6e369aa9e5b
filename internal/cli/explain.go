package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// newExplain returns `godynamo explain`.
func newExplain(app *App) *cobra.Command {
	var (
		module, toEnd      bool
		call               int
		arguments, backend string
	)
	files := []struct{ name, usage string }{
		{name: "json", usage: "write it as JSON to this file instead (-: stdout; what the script prints goes to stderr then)"},
		{name: "html", usage: "write it as a page that opens offline to this file instead"},
		{name: "svg", usage: "write a picture of the pieces and their graphs to this file instead"},
		{name: "dot", usage: "write the same in the DOT language to this file instead"},
	}
	cmd := &cobra.Command{
		Use:   "explain [flags] SCRIPT:FUNCTION [-- ARGS...]",
		Short: "Explain what a call of a function was captured as, and why the rest was not",
		Long: `Runs a script up to the first call of a function and tells what became of that call: graphs, graph breaks with code, hint and
source, how much was captured, which callee kept out the rest, guards, recompiles. What stands behind -- is the script's.`,
		Example: `  godynamo explain train.py:step
  godynamo explain train.py:Model.forward --html forward.html -- --epochs 1
  godynamo explain model.py:Model --args 'Model(), torch.ones(2, 3)'
  godynamo explain --call 3 -m package.train:step --json -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Problemf("explain needs a function: godynamo explain SCRIPT:FUNCTION")
			}
			if name, function, found := strings.Cut(args[0], ":"); !found || name == "" || function == "" {
				return Problemf("%s names no function: SCRIPT:FUNCTION, such as train.py:step or train.py:Model.forward", args[0])
			}
			if dash := cmd.ArgsLenAtDash(); len(args) > 1 && dash != 1 {
				return Problemf("%s: arguments of the script stand behind --: godynamo explain %s -- %s", args[1], args[0], strings.Join(args[1:], " "))
			}
			if call < 1 {
				return Problemf("--call counts from 1, not %d", call)
			}
			options := forwarded{}
			options.flag(cmd, "module", module)
			options.flag(cmd, "to-end", toEnd)
			options.values("call", strconv.Itoa(call))
			options.values("backend", backend)
			if cmd.Flags().Changed("args") {
				options.values("args", arguments)
			}
			for _, f := range files {
				if cmd.Flags().Changed(f.name) {
					value, _ := cmd.Flags().GetString(f.name)
					options.values(f.name, value)
				}
			}
			return app.forward("explain", options, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&module, "module", "m", false, "SCRIPT is the name of a module, as with python -m")
	flags.BoolVar(&toEnd, "to-end", false, "let the script go on after the call, to its end")
	flags.IntVar(&call, "call", 1, "explain this call of the function, counted from 1")
	flags.StringVar(&arguments, "args", "", "call it with these arguments when the script has run as a module, instead of waiting for a call")
	flags.StringVarP(&backend, "backend", "b", "eager", "as with this backend: a registered name, or MODULE:NAME of a callable")
	for _, f := range files {
		flags.String(f.name, "", f.usage)
	}
	return cmd
}
